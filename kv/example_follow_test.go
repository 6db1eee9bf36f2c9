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

	// Somebody else would rather wait for a moment than be refused at once.
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Millisecond)
	defer cancel()
	_, err = kv.OpenContext(ctx, dir, nil)
	fmt.Println(errors.Is(err, kv.ErrLocked), errors.Is(err, context.DeadlineExceeded))
	if locked, ok := errors.AsType[*kv.LockedError](err); ok {
		fmt.Println(filepath.Base(locked.Path), locked.PID == os.Getpid())
	}
	fmt.Println(db.Close())
	// Output:
	// true true
	// LOCK true
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
