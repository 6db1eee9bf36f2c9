//go:build s3

package main

import "github.com/siftkv/siftkv/objstore/s3"

func init() { openS3 = s3.OpenURL }
