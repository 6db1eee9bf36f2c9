package s3_test

import (
	"context"
	"errors"
	"fmt"
	"log"

	"github.com/siftkv/siftkv/objstore"
	"github.com/siftkv/siftkv/objstore/s3"
)

func Example() {
	ctx := context.Background()
	store, err := s3.OpenURL(ctx, "s3://bucket/prefix?endpoint=http://127.0.0.1:7070")
	if err != nil {
		log.Fatal(err)
	}
	defer store.Close()
	if err := objstore.CheckConditional(ctx, store, ""); err != nil {
		log.Fatal(err) // no store to trust with anything
	}
	err = objstore.Commit(ctx, store, "manifest/1", []byte("nonce 5e81, file 12, file 13"))
	if errors.Is(err, objstore.ErrExists) {
		fmt.Println("somebody else was first")
	}
}

func ExampleParseURL() {
	c, err := s3.ParseURL("s3://bucket/prefix?endpoint=http://127.0.0.1:7070&region=eu-central-1")
	if err != nil {
		log.Fatal(err)
	}
	c.Tries = 3
	fmt.Println(c.Bucket, c.Prefix, c.Endpoint, c.Region, c.PathStyle)
	// Output: bucket prefix http://127.0.0.1:7070 eu-central-1 true
}
