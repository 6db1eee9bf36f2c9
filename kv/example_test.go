package kv_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"os"
	"strconv"
	"time"

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

func ExampleDB_MultiGet() {
	db := openExample()
	defer db.Close()
	for key, value := range map[string]string{"apple": "red", "banana": "yellow", "water": ""} {
		if err := db.Set([]byte(key), []byte(value), kv.NoSync); err != nil {
			log.Fatal(err)
		}
	}
	keys := [][]byte{[]byte("banana"), []byte("cherry"), []byte("water")}
	values, err := db.MultiGet(keys)
	if err != nil {
		log.Fatal(err)
	}
	for i, key := range keys {
		if values[i] == nil {
			fmt.Printf("%s: not there\n", key)
		} else {
			fmt.Printf("%s: %q\n", key, values[i])
		}
	}
	// Output:
	// banana: "yellow"
	// cherry: not there
	// water: ""
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
	if err := db.Compact(context.Background(), nil, nil); err != nil {
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

func ExampleDB_Update() {
	db := openExample()
	defer db.Close()
	for account, balance := range map[string]string{"ann": "100", "bob": "20"} {
		if err := db.Set([]byte(account), []byte(balance), nil); err != nil {
			log.Fatal(err)
		}
	}
	move := func(tx *kv.Tx, account string, amount int) error {
		v, err := tx.Get([]byte(account))
		if err != nil {
			return err
		}
		balance, err := strconv.Atoi(string(v))
		if err != nil {
			return err
		}
		if balance += amount; balance < 0 {
			return fmt.Errorf("%s has not enough", account)
		}
		return tx.Set([]byte(account), []byte(strconv.Itoa(balance)))
	}
	for _, amount := range []int{30, 90} {
		// Both writes or none, whoever else moves money at the same time. The function
		// runs again if somebody was faster, so it does nothing but read and write.
		err := db.Update(func(tx *kv.Tx) error {
			return errors.Join(move(tx, "bob", amount), move(tx, "ann", -amount))
		})
		fmt.Println(amount, err)
	}
	ann, _ := db.Get([]byte("ann"))
	bob, _ := db.Get([]byte("bob"))
	fmt.Printf("%s %s\n", ann, bob)
	// Output:
	// 30 <nil>
	// 90 ann has not enough
	// 70 50
}

func ExampleDB_View() {
	db := openExample()
	defer db.Close()
	if err := db.Set([]byte("k"), []byte("v"), nil); err != nil {
		log.Fatal(err)
	}
	err := db.View(func(tx *kv.Tx) error {
		it, err := tx.NewIter(nil)
		if err != nil {
			return err
		}
		defer it.Close()
		for it.First(); it.Valid(); it.Next() {
			v, err := tx.Get(it.Key()) // of the same moment
			if err != nil {
				return err
			}
			fmt.Printf("%s=%s\n", it.Key(), v)
		}
		return it.Error()
	})
	fmt.Println(err)
	// Output:
	// k=v
	// <nil>
}

func ExampleDB_Begin() {
	db := openExample()
	defer db.Close()
	tx, err := db.Begin(true)
	if err != nil {
		log.Fatal(err)
	}
	defer tx.Discard() // does nothing after Commit
	if ok, err := tx.Has([]byte("name")); err != nil || ok {
		log.Fatal("taken", err)
	}
	if err := tx.Set([]byte("name"), []byte("mine")); err != nil {
		log.Fatal(err)
	}
	if err := db.Set([]byte("name"), []byte("theirs"), nil); err != nil { // somebody is faster
		log.Fatal(err)
	}
	fmt.Println(errors.Is(tx.Commit(kv.NoSync), kv.ErrConflict))
	// Output: true
}

func ExampleDB_All() {
	db := openExample()
	defer db.Close()
	for _, k := range []string{"user/ann", "user/bob", "user/eve", "zone"} {
		if err := db.Set([]byte(k), []byte(k[len(k)-3:]), kv.Async); err != nil {
			log.Fatal(err)
		}
	}
	var err error
	for key, value := range db.All(&kv.IterOptions{Prefix: []byte("user/")}, &err) {
		fmt.Printf("%s=%s\n", key, value) // both are valid until the next step
	}
	if err != nil { // the loop ended early
		log.Fatal(err)
	}
	for key := range db.Backward(&kv.IterOptions{KeysOnly: true}, &err) {
		fmt.Printf("last: %s\n", key)
		break // closes the iterator
	}
	if err != nil {
		log.Fatal(err)
	}
	// Output:
	// user/ann=ann
	// user/bob=bob
	// user/eve=eve
	// last: zone
}

func ExamplePrefixEnd() {
	db := openExample()
	defer db.Close()
	for _, k := range []string{"user", "user/ann", "user/\xff", "user0", "zone"} {
		if err := db.Set([]byte(k), nil, kv.Async); err != nil {
			log.Fatal(err)
		}
	}
	prefix := []byte("user/")
	fmt.Printf("%q\n", kv.PrefixEnd(prefix))
	if err := db.DeletePrefix(prefix, nil); err != nil {
		log.Fatal(err)
	}
	var err error
	for key := range db.All(nil, &err) {
		fmt.Printf("%s\n", key)
	}
	fmt.Println(err, kv.PrefixEnd([]byte("\xff\xff")) == nil) // there is no key past these
	// Output:
	// "user0"
	// user
	// user0
	// zone
	// <nil> true
}

func ExampleDB_GetSize() {
	db := openExample()
	defer db.Close()
	if err := db.Set([]byte("photo"), make([]byte, 3<<20), nil); err != nil {
		log.Fatal(err)
	}
	if err := db.SetTTL([]byte("session"), []byte("token"), time.Hour, nil); err != nil {
		log.Fatal(err)
	}
	for _, key := range []string{"photo", "session", "missing"} {
		size, err := db.GetSize([]byte(key)) // without a copy of the value
		if errors.Is(err, kv.ErrNotFound) {
			fmt.Println(key, "is not there")
			continue
		}
		if err != nil {
			log.Fatal(err)
		}
		expiry, err := db.Expiry([]byte(key))
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(key, size, "bytes, stays:", expiry.IsZero())
	}
	// Output:
	// photo 3145728 bytes, stays: true
	// session 5 bytes, stays: false
	// missing is not there
}
