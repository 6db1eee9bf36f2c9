package kv_test

import (
	"errors"
	"fmt"
	"log"
	"time"

	"github.com/siftkv/siftkv/kv"
)

// Counters that nobody has to read to count.
func ExampleDB_Merge() {
	db, err := kv.Open("", &kv.Options{InMemory: true, Merger: kv.Int64Add})
	if err != nil {
		log.Fatal(err)
	}
	defer db.Close()
	for _, page := range []string{"/home", "/about", "/home", "/home"} {
		if err := db.Merge([]byte(page), kv.AppendInt64(nil, 1), kv.NoSync); err != nil {
			log.Fatal(err)
		}
	}
	value, err := db.Get([]byte("/home"))
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(kv.Int64(value))
	// Output: 3 <nil>
}

// A merger of one's own keeps the largest value.
func ExampleNewMerger() {
	largest := kv.NewMerger("largest", func(_, older, newer []byte) ([]byte, error) {
		if string(newer) > string(older) {
			return append(older[:0], newer...), nil // newer must not be kept
		}
		return older, nil
	})
	db, err := kv.Open("", &kv.Options{InMemory: true, Merger: largest})
	if err != nil {
		log.Fatal(err)
	}
	defer db.Close()
	for _, version := range []string{"v1.2", "v1.7", "v1.3"} {
		if err := db.Merge([]byte("newest"), []byte(version), kv.NoSync); err != nil {
			log.Fatal(err)
		}
	}
	value, err := db.Get([]byte("newest"))
	fmt.Println(string(value), err)
	// Output: v1.7 <nil>
}

func ExampleAppend() {
	db, err := kv.Open("", &kv.Options{InMemory: true, Merger: kv.Append(",")})
	if err != nil {
		log.Fatal(err)
	}
	defer db.Close()
	for _, tag := range []string{"red", "round", "sweet"} {
		if err := db.Merge([]byte("apple"), []byte(tag), kv.NoSync); err != nil {
			log.Fatal(err)
		}
	}
	value, err := db.Get([]byte("apple"))
	fmt.Println(string(value), err)
	// Output: red,round,sweet <nil>
}

func ExampleDB_SetTTL() {
	now := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	db, err := kv.Open("", &kv.Options{InMemory: true, Clock: func() time.Time { return now }}) // time.Now by default
	if err != nil {
		log.Fatal(err)
	}
	defer db.Close()
	if err := db.SetTTL([]byte("session"), []byte("ann"), 30*time.Minute, nil); err != nil {
		log.Fatal(err)
	}
	now = now.Add(29 * time.Minute)
	value, err := db.Get([]byte("session"))
	fmt.Println(string(value), err)
	now = now.Add(time.Minute)
	_, err = db.Get([]byte("session"))
	fmt.Println(errors.Is(err, kv.ErrNotFound))
	// Output:
	// ann <nil>
	// true
}
