// Cache keeps pages in memory that are made of what a store has, and drops those whose source changes. A slot names
// every key that changes, in order, so no page stays that should go.
//
//	go run ./examples/cache DIR
package main

import (
	"context"
	"errors"
	"fmt"
	"log"
	"os"
	"sync"

	"github.com/siftkv/siftkv/kv"
)

func main() {
	if len(os.Args) != 2 {
		log.Fatal("usage: cache DIR")
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
	rendered := 0
	c := newCache(db, func(text []byte) string {
		rendered++
		return fmt.Sprintf("<h1>%s</h1>", text)
	})
	show := func() {
		for range 99 {
			_, _ = c.page("page/home") // the last one has the error too
		}
		html, err := c.page("page/home")
		fmt.Println("100 requests:", html, err)
	}

	ctx, stop := context.WithCancel(context.Background())
	var follower sync.WaitGroup
	follower.Go(func() { _ = c.follow(ctx) }) // wait returns its error
	defer follower.Wait()
	defer stop()
	for _, text := range []string{"hello", "hello again"} {
		if err := db.Set([]byte("page/home"), []byte(text), nil); err != nil {
			return err
		}
		if err := c.wait(max(lastChange(db), 1)); err != nil { // 1: the first slot may not be there yet
			return err
		}
		show()
	}
	if err := db.DeletePrefix([]byte("page/"), nil); err != nil {
		return err
	}
	if err := c.wait(lastChange(db)); err != nil {
		return err
	}
	show()
	fmt.Println(rendered, "pages were rendered")
	return nil
}
