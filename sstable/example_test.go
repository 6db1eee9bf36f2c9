package sstable_test

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/siftkv/siftkv/filterpolicy"
	"github.com/siftkv/siftkv/sstable"
)

// Write a sorted file and look keys up in it.
func Example() {
	dir, err := os.MkdirTemp("", "sstable")
	if err != nil {
		panic(err)
	}
	defer func() { _ = os.RemoveAll(dir) }()
	path := filepath.Join(dir, "planets.sst")

	file, err := os.Create(path)
	if err != nil {
		panic(err)
	}
	w := sstable.NewWriter(file, nil)
	for _, planet := range []string{"earth", "mars", "venus"} { // ascending
		if err := w.Set([]byte(planet), []byte("rock")); err != nil {
			panic(err)
		}
	}
	info, err := w.Finish()
	if err := errors.Join(err, file.Sync(), file.Close()); err != nil {
		panic(err)
	}
	fmt.Println(info.Entries, "entries from", string(info.Smallest), "to", string(info.Largest))

	r, err := sstable.Open(path, nil)
	if err != nil {
		panic(err)
	}
	defer func() { _ = r.Close() }()
	value, err := r.Get([]byte("mars"))
	fmt.Println(string(value), err)
	_, err = r.Get([]byte("pluto"))
	fmt.Println(errors.Is(err, sstable.ErrNotFound))
	fmt.Println(r.Verify())

	// Output:
	// 3 entries from earth to venus
	// rock <nil>
	// true
	// <nil>
}

// All ranges over the live keys of a file.
func ExampleReader_All() {
	file, err := os.CreateTemp("", "*.sst")
	if err != nil {
		panic(err)
	}
	defer func() { _ = os.Remove(file.Name()) }()
	filter, err := filterpolicy.Parse("cuckoo:12")
	if err != nil {
		panic(err)
	}
	w := sstable.NewWriter(file, &sstable.WriterOptions{Compression: sstable.Zstd, Filter: filter})
	err = errors.Join(
		w.Set([]byte("a"), []byte("1")),
		w.Delete([]byte("b")), // hides b in older files
		w.Set([]byte("c"), []byte("3")),
	)
	if _, finishErr := w.Finish(); err != nil || finishErr != nil {
		panic(errors.Join(err, finishErr))
	}
	if err := file.Close(); err != nil {
		panic(err)
	}

	r, err := sstable.Open(file.Name(), nil)
	if err != nil {
		panic(err)
	}
	defer func() { _ = r.Close() }()
	for entry, err := range r.All() {
		if err != nil {
			panic(err)
		}
		fmt.Printf("%s=%s\n", entry.Key, entry.Value)
	}

	// Output:
	// a=1
	// c=3
}

// An Iter walks a range of keys, here those that begin with "user/", in both directions.
func ExampleReader_NewIter() {
	var file bytes.Buffer
	w := sstable.NewWriter(&file, nil)
	for _, key := range []string{"group/1", "user/ann", "user/bob", "user/cy", "zone"} {
		if err := w.Set([]byte(key), []byte("about "+key)); err != nil {
			panic(err)
		}
	}
	if _, err := w.Finish(); err != nil {
		panic(err)
	}

	r, err := sstable.NewReader(bytes.NewReader(file.Bytes()), int64(file.Len()), nil)
	if err != nil {
		panic(err)
	}
	defer func() { _ = r.Close() }()
	it := r.NewIter(sstable.IterOptions{})
	prefix := []byte("user/")
	for ok := it.SeekGE(prefix); ok && bytes.HasPrefix(it.Key(), prefix); ok = it.Next() {
		fmt.Printf("%s: %s\n", it.Key(), it.Value())
	}
	for ok := it.SeekLT([]byte("user/c")); ok; ok = it.Prev() {
		fmt.Printf("%s\n", it.Key())
	}
	if err := it.Close(); err != nil {
		panic(err)
	}

	// Output:
	// user/ann: about user/ann
	// user/bob: about user/bob
	// user/cy: about user/cy
	// user/bob
	// user/ann
	// group/1
}
