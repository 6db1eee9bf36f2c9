package kv_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"os"
	"path/filepath"
	"time"

	"github.com/siftkv/siftkv/kv"
)

func ExampleOpenContext() {
	dir, err := os.MkdirTemp("", "siftkv")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	db, err := kv.Open(dir, nil)
	if err != nil {
		log.Fatal(err)
	}

	// A second Open is refused at once.
	_, err = kv.Open(dir, nil)
	if locked, ok := errors.AsType[*kv.LockedError](err); ok {
		fmt.Println(filepath.Base(locked.Path), locked.PID == os.Getpid())
	}
	// OpenContext waits for the lock until the context ends.
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Millisecond)
	defer cancel()
	_, err = kv.OpenContext(ctx, dir, nil)
	fmt.Println(errors.Is(err, context.DeadlineExceeded))
	fmt.Println(db.Close())
	// Output:
	// LOCK true
	// true
	// <nil>
}

func ExampleOpenReadOnly() {
	dir, err := os.MkdirTemp("", "siftkv")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	writer, err := kv.Open(dir, nil) // in this process or another
	if err != nil {
		log.Fatal(err)
	}
	defer writer.Close()

	view, err := kv.OpenReadOnly(dir, nil)
	if err != nil {
		log.Fatal(err)
	}
	defer view.Close()
	if err := writer.Set([]byte("apple"), []byte("red"), nil); err != nil {
		log.Fatal(err)
	}
	ok, err := view.Has([]byte("apple"))
	fmt.Println(ok, err)
	if err := view.Refresh(context.Background()); err != nil {
		log.Fatal(err)
	}
	ok, err = view.Has([]byte("apple"))
	fmt.Println(ok, err)
	fmt.Println(errors.Is(view.Set([]byte("pear"), nil, nil), kv.ErrReadOnly))
	// Output:
	// false <nil>
	// true <nil>
	// true
}
