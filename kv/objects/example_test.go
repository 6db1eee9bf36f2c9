package objects_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"os"

	"github.com/siftkv/siftkv/kv"
	"github.com/siftkv/siftkv/kv/objects"
	"github.com/siftkv/siftkv/objstore"
)

// A store in an object store needs no directory: any machine can open it next.
func Example() {
	bucket := objstore.NewMem() // or s3.OpenURL(ctx, "s3://bucket/prefix?region=eu-central-1")
	db, err := kv.Open("", &kv.Options{Objects: &objects.Config{Store: bucket}})
	if err != nil {
		log.Fatal(err)
	}
	err = db.Set([]byte("key"), []byte("value"), kv.Sync) // the object store has it
	fmt.Println(err, db.Close())
	// Output: <nil> <nil>
}

// With LocalLog a write waits for the disk of this machine and sends no request.
func ExampleConfig_localLog() {
	dir, err := os.MkdirTemp("", "")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	bucket := objstore.NewMem()
	db, err := kv.Open(dir, &kv.Options{Objects: &objects.Config{Store: bucket, LocalLog: true}})
	if err != nil {
		log.Fatal(err)
	}
	err = db.Set([]byte("key"), []byte("value"), kv.Sync) // this machine's disk has it
	fmt.Println(err, db.Close())
	// Output: <nil> <nil>
}

// A checkpoint keeps what a store in an object store was, and a clone of it is a store that can be written to. They
// share files with the store, and none is copied.
func ExampleConfig_Clone() {
	ctx, bucket := context.Background(), objstore.NewMem() // or a bucket, by package objstore/s3
	set := func(o *objects.Config, value string) {
		db, err := kv.Open("", &kv.Options{Objects: o})
		if err != nil {
			log.Fatal(err)
		}
		if err := db.Set([]byte("key"), []byte(value), kv.Sync); err != nil {
			log.Fatal(err)
		}
		if err := db.Close(); err != nil {
			log.Fatal(err)
		}
	}
	show := func(o *objects.Config) {
		view, err := kv.OpenReadOnly("", &kv.Options{Objects: o})
		if err != nil {
			log.Fatal(err)
		}
		defer view.Close()
		value, err := view.Get([]byte("key"))
		fmt.Println(string(value), err)
	}
	main, trial := &objects.Config{Store: bucket}, &objects.Config{Store: bucket, Branch: "trial"}
	before := &objects.Config{Store: bucket, Checkpoint: "before"}

	set(main, "old") // opens the store, sets a key, and closes the store
	if _, err := main.PinCheckpoint(ctx, "before"); err != nil {
		log.Fatal(err)
	}
	set(main, "new")
	if err := before.Clone(ctx, "trial"); err != nil {
		log.Fatal(err)
	}
	set(trial, "tried")
	show(before)
	show(main)
	show(trial)
	fmt.Println(main.DropBranch(ctx, "trial"), main.DropCheckpoint(ctx, "before"))
	// Output:
	// old <nil>
	// new <nil>
	// tried <nil>
	// <nil> <nil>
}

// Any machine takes a store over by opening it for writing. The writer before acknowledges nothing more.
func Example_takeOver() {
	bucket := objstore.NewMem() // or a bucket, by package objstore/s3
	o := &kv.Options{Objects: &objects.Config{Store: bucket}}
	here, err := kv.Open("", o)
	if err != nil {
		log.Fatal(err)
	}
	if err := here.Set([]byte("key"), []byte("value"), kv.Sync); err != nil { // the bucket has it
		log.Fatal(err)
	}
	there, err := kv.Open("", o) // on any machine: it takes the store over
	if err != nil {
		log.Fatal(err)
	}
	value, err := there.Get([]byte("key"))
	fmt.Println(string(value), err)
	err = here.Set([]byte("key"), []byte("late"), kv.Sync)
	fmt.Println(errors.Is(err, objects.ErrFenced), errors.Is(here.Close(), objects.ErrFenced), there.Close())
	// Output:
	// value <nil>
	// true true <nil>
}
