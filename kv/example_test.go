package kv_test

import (
	"errors"
	"fmt"
	"log"
	"os"

	"github.com/siftkv/siftkv/filterpolicy"
	"github.com/siftkv/siftkv/kv"
	"github.com/siftkv/siftkv/sstable"
)

// openExample opens a store in memory.
func openExample() *kv.DB {
	db, err := kv.Open("", &kv.Options{InMemory: true})
	if err != nil {
		log.Fatal(err)
	}
	return db
}

func Example() {
	dir, err := os.MkdirTemp("", "siftkv")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)

	db, err := kv.Open(dir, nil)
	if err != nil {
		log.Fatal(err)
	}
	if err := db.Set([]byte("apple"), []byte("red"), nil); err != nil { // durable on return
		log.Fatal(err)
	}
	color, err := db.Get([]byte("apple"))
	fmt.Printf("%s %v\n", color, err)
	_, err = db.Get([]byte("pear"))
	fmt.Println(errors.Is(err, kv.ErrNotFound))
	fmt.Println(db.Close())
	// Output:
	// red <nil>
	// true
	// <nil>
}

func ExampleOpen() {
	filter, err := filterpolicy.Parse("cuckoo:12")
	if err != nil {
		log.Fatal(err)
	}
	db, err := kv.Open("", &kv.Options{
		InMemory:    true,
		MemoryLimit: 64 << 20, // memtables, cache, filters and indexes together
		Compression: sstable.Zstd,
		Filter:      filter,
	})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(db.Close())
	// Output: <nil>
}

func ExampleDB_NewBatch() {
	db := openExample()
	defer db.Close()
	b := db.NewBatch()
	for _, k := range []string{"a", "b", "c"} {
		if err := b.Set([]byte(k), []byte("1")); err != nil {
			log.Fatal(err)
		}
	}
	if err := b.DeleteRange([]byte("b"), nil); err != nil { // all keys from "b" on
		log.Fatal(err)
	}
	fmt.Println(b.Len(), b.Commit(kv.NoSync))
	ok, err := db.Has([]byte("c"))
	fmt.Println(ok, err)
	// Output:
	// 4 <nil>
	// false <nil>
}

func ExampleDB_NewIter() {
	db := openExample()
	defer db.Close()
	for _, k := range []string{"user/ann", "user/bob", "user/eve", "zone"} {
		if err := db.Set([]byte(k), []byte(k[len(k)-3:]), kv.Async); err != nil {
			log.Fatal(err)
		}
	}
	it, err := db.NewIter(&kv.IterOptions{LowerBound: []byte("user/"), UpperBound: []byte("user0")})
	if err != nil {
		log.Fatal(err)
	}
	for it.First(); it.Valid(); it.Next() {
		fmt.Printf("%s=%s\n", it.Key(), it.Value())
	}
	fmt.Println("last:", it.Last(), string(it.Key()))
	if err := errors.Join(it.Error(), it.Close()); err != nil {
		log.Fatal(err)
	}
	// Output:
	// user/ann=ann
	// user/bob=bob
	// user/eve=eve
	// last: true user/eve
}

func ExampleDB_NewSnapshot() {
	db := openExample()
	defer db.Close()
	if err := db.Set([]byte("k"), []byte("then"), nil); err != nil {
		log.Fatal(err)
	}
	s := db.NewSnapshot()
	defer s.Close()
	if err := db.Set([]byte("k"), []byte("now"), nil); err != nil {
		log.Fatal(err)
	}
	then, _ := s.Get([]byte("k"))
	now, _ := db.Get([]byte("k"))
	fmt.Printf("%s %s\n", then, now)
	// Output: then now
}

func ExampleDB_Explain() {
	db := openExample()
	defer db.Close()
	for i := range 1000 {
		if err := db.Set(fmt.Appendf(nil, "key%04d", i), []byte("value"), kv.Async); err != nil {
			log.Fatal(err)
		}
	}
	if err := db.Compact(nil, nil); err != nil {
		log.Fatal(err)
	}
	e, err := db.Explain([]byte("key0500x")) // absent, between two keys that exist
	if err != nil {
		log.Fatal(err)
	}
	last := e.Steps[len(e.Steps)-1]
	fmt.Printf("level %d: ruled out by %s\n", last.Level, last.Verdict)
	// Output: level 6: ruled out by filter
}
