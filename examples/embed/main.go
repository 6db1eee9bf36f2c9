// Embed is the smallest whole program with a store: it opens one, writes, reads, walks a range of
// keys, and closes it.
//
//	go run ./examples/embed DIR
package main

import (
	"errors"
	"fmt"
	"log"
	"os"

	"github.com/siftkv/siftkv/kv"
)

func main() {
	if len(os.Args) != 2 {
		log.Fatal("usage: embed DIR")
	}
	if err := run(os.Args[1]); err != nil {
		log.Fatal(err)
	}
}

func run(dir string) (err error) {
	db, err := kv.Open(dir, nil)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()

	// One write, on stable storage when it returns.
	if err := db.Set([]byte("fruit/apple"), []byte("red"), nil); err != nil {
		return err
	}
	// Several writes that take effect together or not at all. A batch keeps its errors for Commit.
	b := db.NewBatch()
	_ = b.Set([]byte("fruit/banana"), []byte("yellow"))
	_ = b.Set([]byte("fruit/cherry"), []byte("dark red"))
	_ = b.Set([]byte("nut/almond"), []byte("brown"))
	if err := b.Commit(nil); err != nil {
		return err
	}

	color, err := db.Get([]byte("fruit/apple"))
	if err != nil {
		return err
	}
	fmt.Printf("an apple is %s\n", color)
	if _, err := db.Get([]byte("fruit/durian")); errors.Is(err, kv.ErrNotFound) {
		fmt.Println("of durians we know nothing")
	}

	var failed error
	for key, value := range db.All(&kv.IterOptions{Prefix: []byte("fruit/")}, &failed) {
		fmt.Printf("%s: %s\n", key, value) // valid until the next step: copy what is to stay
	}
	return failed
}
