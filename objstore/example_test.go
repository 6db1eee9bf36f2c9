package objstore_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"strings"

	"github.com/siftkv/siftkv/objstore"
)

// Objects are written whole, read in ranges, and listed in the order of their keys.
func Example() {
	ctx := context.Background()
	s := objstore.NewMem()
	defer s.Close()
	for key, body := range map[string]string{"sst/b": "sorted file", "sst/a": "another", "log/1": "x"} {
		if err := s.Put(ctx, key, strings.NewReader(body), int64(len(body))); err != nil {
			log.Fatal(err)
		}
	}
	footer := make([]byte, 4)
	if _, err := s.GetRange(ctx, "sst/b", -4, footer); err != nil {
		log.Fatal(err)
	}
	fmt.Printf("%s\n", footer)
	for o, err := range s.List(ctx, "sst/", "") {
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(o.Key, o.Size)
	}
	// Output:
	// file
	// sst/a 7
	// sst/b 11
}

// Two writers commit the next version of a state; one of them has to look again.
func ExampleCommit() {
	ctx := context.Background()
	s := objstore.NewMem()
	for _, writer := range []string{"writer 4c1d", "writer a970"} {
		err := objstore.Commit(ctx, s, "manifest/00000000000000000007", []byte(writer))
		fmt.Println(writer, "committed:", err == nil, "was too late:", errors.Is(err, objstore.ErrExists))
	}
	// Output:
	// writer 4c1d committed: true was too late: false
	// writer a970 committed: false was too late: true
}

func ExampleCheckConditional() {
	s, prefix := objstore.NewMem(), "db/"
	if err := objstore.CheckConditional(context.Background(), s, prefix); err != nil {
		log.Fatal(err) // errors.Is(err, objstore.ErrUnconditional): two writers would destroy each other's work
	}
	fmt.Println("safe")
	// Output: safe
}

// What a lookup costs is the difference of two snapshots.
func ExampleWithCounters() {
	ctx := context.Background()
	var counters objstore.Counters
	s := objstore.WithCounters(objstore.NewMem(), &counters)
	if err := s.PutIfAbsent(ctx, "sst/a", []byte("0123456789")); err != nil {
		log.Fatal(err)
	}
	before := counters.Snapshot()
	if _, err := s.GetRange(ctx, "sst/a", 2, make([]byte, 4)); err != nil {
		log.Fatal(err)
	}
	cost := counters.Snapshot().Minus(before)
	get, all := cost[objstore.Get], cost.Total()
	fmt.Println(get.Requests, "GET,", get.Bytes, "bytes,", all.Requests, "in all")
	// Output: 1 GET, 4 bytes, 1 in all
}

// Several stores live in one bucket.
func ExampleSub() {
	ctx := context.Background()
	bucket := objstore.NewMem()
	db := objstore.Sub(bucket, "tenants/7")
	if err := db.PutIfAbsent(ctx, "manifest/1", nil); err != nil {
		log.Fatal(err)
	}
	for o := range bucket.List(ctx, "", "") {
		fmt.Println(o.Key)
	}
	// Output: tenants/7/manifest/1
}
