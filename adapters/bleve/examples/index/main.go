// Index keeps a full-text index of bleve in step with a store. It is killed at any moment and goes on where it was.
// From adapters/bleve:
//
//	GOWORK=off go run ./examples/index DIR
package main

import (
	"context"
	"errors"
	"fmt"
	"log"
	"os"
	"path/filepath"

	"github.com/siftkv/siftkv/kv"
)

func main() {
	if len(os.Args) != 2 {
		log.Fatal("usage: index DIR")
	}
	if err := run(context.Background(), os.Args[1]); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context, dir string) (err error) {
	db, err := kv.Open(filepath.Join(dir, "store"), nil)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	set := func(key, text string) { err = errors.Join(err, db.Set([]byte(key), []byte(text), nil)) }
	set("wine/1", "a red wine with notes of cherry")
	set("wine/2", "a white wine with notes of apple")
	set("beer/1", "a red ale")
	if err != nil {
		return err
	}
	x, err := openIndex(ctx, db, filepath.Join(dir, "index")) // from a snapshot, if it is new
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, x.close()) }()
	show := func() error {
		if err := x.follow(ctx, lastChange(db)); err != nil {
			return err
		}
		keys, err := x.search("red")
		fmt.Println("red:", keys)
		return err
	}
	if err := show(); err != nil {
		return err
	}
	set("wine/3", "another red wine")
	if err = errors.Join(err, db.DeletePrefix([]byte("beer/"), nil)); err != nil {
		return err
	}
	return show()
}
