// Command siftkv is github.com/siftkv/siftkv/cmd/siftkv with a client of S3: stores are directories, dir://PATH, and
//
//	siftkv stats 's3://bucket/prefix?region=eu-central-1'
//	siftkv copy DIR 's3://bucket/prefix?endpoint=http://127.0.0.1:7070'
//
// Credentials are found as by all programs over the AWS SDK, and are never part of a URL.
package main

import (
	"github.com/siftkv/siftkv/internal/storecmd"
	"github.com/siftkv/siftkv/objstore/s3"
)

func main() { storecmd.Main(storecmd.Openers{"s3": s3.OpenURL}) }
