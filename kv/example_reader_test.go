package kv_test

import (
	"context"
	"fmt"
	"io"
	"log"
	"os"
	"strings"

	"github.com/siftkv/siftkv/kv"
)

// A value that should not be in memory is read as it is written, from a file or a connection.
func ExampleDB_SetReader() {
	dir, err := os.MkdirTemp("", "siftkv")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	db, err := kv.Open(dir, nil)
	if err != nil {
		log.Fatal(err)
	}
	defer db.Close()
	image := strings.NewReader(strings.Repeat("pixels ", 1<<20))
	if err := db.SetReader(context.Background(), []byte("image"), image.Size(), image, nil); err != nil {
		log.Fatal(err)
	}
	size, err := db.GetSize([]byte("image"))
	fmt.Println(size, err)
	// Output: 7340032 <nil>
}

// What is read stays what it was, and its files stay, until the reader is closed.
func ExampleDB_GetReader() {
	db, err := kv.Open("", &kv.Options{InMemory: true, SeparateFrom: 4 << 10})
	if err != nil {
		log.Fatal(err)
	}
	defer db.Close()
	_ = db.Set([]byte("page"), []byte(strings.Repeat("a line\n", 1000)), nil)
	r, err := db.GetReader([]byte("page"))
	if err != nil {
		log.Fatal(err)
	}
	defer r.Close()
	_ = db.Delete([]byte("page"), nil)
	n, err := io.Copy(io.Discard, r)
	fmt.Println(r.Size(), n, err)
	// Output: 7000 7000 <nil>
}
