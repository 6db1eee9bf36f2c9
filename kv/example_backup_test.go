package kv_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"os"
	"path/filepath"

	"github.com/siftkv/siftkv/kv"
	"github.com/siftkv/siftkv/sstable"
)

func ExampleDB_Backup() {
	db := openExample()
	defer db.Close()
	var full, more bytes.Buffer
	if err := db.Set([]byte("monday"), []byte("written"), nil); err != nil {
		log.Fatal(err)
	}
	mark, err := db.Backup(context.Background(), &full, kv.BackupMark{}) // everything
	if err != nil {
		log.Fatal(err)
	}
	if err := db.Set([]byte("tuesday"), []byte("written too"), nil); err != nil {
		log.Fatal(err)
	}
	if _, err = db.Backup(context.Background(), &more, mark); err != nil { // what came since
		log.Fatal(err)
	}

	dir, err := os.MkdirTemp("", "siftkv")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	for _, stream := range []io.Reader{&full, &more} {
		if err := kv.Restore(context.Background(), stream, dir, nil); err != nil {
			log.Fatal(err)
		}
	}
	restored, err := kv.Open(dir, nil)
	if err != nil {
		log.Fatal(err)
	}
	defer restored.Close()
	value, err := restored.Get([]byte("tuesday"))
	fmt.Printf("%s %v\n", value, err)
	// Output: written too <nil>
}

func ExampleRestore() {
	db := openExample()
	defer db.Close()
	if err := db.Set([]byte("key"), []byte("value"), nil); err != nil {
		log.Fatal(err)
	}
	var stream bytes.Buffer
	if _, err := db.Backup(context.Background(), &stream, kv.BackupMark{}); err != nil {
		log.Fatal(err)
	}
	dir, err := os.MkdirTemp("", "siftkv")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)

	// The connection breaks, and we go on where it did.
	whole := stream.Bytes()
	err = kv.Restore(context.Background(), bytes.NewReader(whole[:len(whole)-1]), dir, nil)
	var unfinished *kv.RestoreError
	if !errors.As(err, &unfinished) {
		log.Fatal(err)
	}
	fmt.Println(kv.Restore(context.Background(), bytes.NewReader(whole[unfinished.Offset:]), dir, nil))
	// Output: <nil>
}

func ExampleDB_Ingest() {
	db := openExample()
	defer db.Close()
	dir, err := os.MkdirTemp("", "siftkv")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)

	path := filepath.Join(dir, "bulk.sst")
	f, err := os.Create(path)
	if err != nil {
		log.Fatal(err)
	}
	w := sstable.NewWriter(f, nil)
	for i := range 1000 { // in key order
		if err := w.Set(fmt.Appendf(nil, "key%04d", i), []byte("bulk")); err != nil {
			log.Fatal(err)
		}
	}
	if _, err := w.Finish(); err != nil {
		log.Fatal(err)
	}
	if err := f.Close(); err != nil {
		log.Fatal(err)
	}
	if err := db.Ingest(context.Background(), []string{path}, nil); err != nil {
		log.Fatal(err)
	}
	value, err := db.Get([]byte("key0500"))
	fmt.Printf("%s %v\n", value, err)
	// Output: bulk <nil>
}
