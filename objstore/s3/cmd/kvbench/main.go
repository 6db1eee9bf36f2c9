// Command kvbench measures what a store in an object store costs, as kvbench objects of
// github.com/siftkv/siftkv/cmd/kvbench does, with a client of S3:
//
//	kvbench objects --s3 's3://bucket/prefix?region=eu-central-1'
package main

import (
	"github.com/siftkv/siftkv/internal/objectscmd"
	"github.com/siftkv/siftkv/objstore/s3"
)

func main() { objectscmd.Main(s3.OpenURL) }
