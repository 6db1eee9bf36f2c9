// Command siftkv is github.com/siftkv/siftkv/cmd/siftkv with a client of S3: stores are directories, dir://PATH, and
//
//	siftkv stats 's3://bucket/prefix?region=eu-central-1'
//	siftkv copy DIR 's3://bucket/prefix?endpoint=http://127.0.0.1:7070'
//
// Credentials are found as by all programs over the AWS SDK, and are never part of a URL.
package main

import (
	"context"

	"github.com/siftkv/siftkv/internal/storecmd"
	"github.com/siftkv/siftkv/objstore"
	"github.com/siftkv/siftkv/objstore/s3"
)

func main() { storecmd.Main(storecmd.Openers{"s3": openURL}) }

// openURL is [s3.OpenURL] that tells a wrong URL from what is wrong with the configuration.
func openURL(ctx context.Context, url string) (objstore.Store, error) {
	c, err := s3.ParseURL(url)
	if err != nil {
		return nil, storecmd.WrongURL(err)
	}
	return s3.Open(ctx, c)
}
