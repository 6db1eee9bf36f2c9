// Migrate moves a service from bbolt to this store while it goes on writing. From the start every write
// goes to both; what was there before is copied in the background, a chunk at a time; then the two are
// compared, and the service is served by the new store alone. (For a store that nobody has open,
// cmd/siftimport does all of it.)
//
//	go run ./cmd/siftimport/examples/migrate DIR
package main

import (
	"context"
	"errors"
	"fmt"
	"log"
	"os"
	"path/filepath"
	"sync"

	"go.etcd.io/bbolt"

	"github.com/siftkv/siftkv/kv"
)

var bucket = []byte("users")

// users is what a service had over bbolt, on both stores. The lock has a write come to both in the same
// order, and a chunk be copied between two writes, so that no old value ever replaces a newer one, and no
// deleted key comes back.
type users struct {
	mu    sync.Mutex
	older *bbolt.DB
	newer *kv.DB
}

func (u *users) set(key, value []byte) error {
	u.mu.Lock()
	defer u.mu.Unlock()
	err := u.older.Update(func(tx *bbolt.Tx) error { return tx.Bucket(bucket).Put(key, value) })
	if err != nil {
		return err
	}
	return u.newer.Set(key, value, nil)
}

func (u *users) remove(key []byte) error {
	u.mu.Lock()
	defer u.mu.Unlock()
	err := u.older.Update(func(tx *bbolt.Tx) error { return tx.Bucket(bucket).Delete(key) })
	if err != nil {
		return err
	}
	return u.newer.Delete(key, nil)
}

// copyChunk copies up to n entries from a key on, and returns the key where to go on, nil at the end.
func (u *users) copyChunk(from []byte, n int) (next []byte, err error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	b := u.newer.NewBatch()
	err = u.older.View(func(tx *bbolt.Tx) error {
		c := tx.Bucket(bucket).Cursor()
		key, value := c.Seek(from)
		for ; key != nil && b.Len() < n; key, value = c.Next() {
			_ = b.Set(key, value) // a batch keeps its errors for Commit
		}
		next = append(next, key...)
		return nil
	})
	return next, errors.Join(err, b.Commit(kv.NoSync)) // one Sync at the end makes all of them durable
}

// same reports how many entries both have, or the first key about which they differ.
func (u *users) same() (n int, err error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	err = u.older.View(func(tx *bbolt.Tx) error {
		c := tx.Bucket(bucket).Cursor()
		key, value := c.First()
		var failed error
		for k, v := range u.newer.All(nil, &failed) {
			if string(k) != string(key) || string(v) != string(value) {
				return fmt.Errorf("the stores differ at %q and %q", key, k)
			}
			n++
			key, value = c.Next()
		}
		if failed == nil && key != nil {
			return fmt.Errorf("%q has not been copied", key)
		}
		return failed
	})
	return n, err
}

func main() {
	if len(os.Args) != 2 {
		log.Fatal("usage: migrate DIR")
	}
	if err := run(os.Args[1]); err != nil {
		log.Fatal(err)
	}
}

func run(dir string) (err error) {
	older, err := bbolt.Open(filepath.Join(dir, "users.bolt"), 0o600, nil)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, older.Close()) }()
	if err := fill(older); err != nil {
		return err
	}
	newer, err := kv.Open(filepath.Join(dir, "users"), nil)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, newer.Close()) }()

	u := &users{older: older, newer: newer}
	served := make(chan error, 1)
	go func() { served <- serve(u) }()
	for next := []byte{}; next != nil && err == nil; {
		next, err = u.copyChunk(next, 100)
	}
	if err := errors.Join(err, <-served, newer.Sync(context.Background())); err != nil {
		return err
	}
	n, err := u.same()
	fmt.Println(n, "users are in both stores")
	return err
}

// fill makes the old store: a thousand users.
func fill(db *bbolt.DB) error {
	return db.Update(func(tx *bbolt.Tx) error {
		b, err := tx.CreateBucketIfNotExists(bucket)
		for n := 0; n < 1000 && err == nil; n++ {
			err = b.Put(user(n), []byte("old"))
		}
		return err
	})
}

// serve is the service, which goes on meanwhile: users change, come and go.
func serve(u *users) error {
	var err error
	for n := range 50 {
		err = errors.Join(err, u.set(user(n*20), []byte("changed")), u.set(user(1000+n), []byte("new")),
			u.remove(user(n*20+1)))
	}
	return err
}

func user(n int) []byte { return fmt.Appendf(nil, "user%04d", n) }
