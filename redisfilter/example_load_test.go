package redisfilter_test

import (
	"context"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/siftkv/siftkv/redisfilter"
	"github.com/siftkv/siftkv/redisfilter/mirror"
)

// A program loads a set when it likes, instead of a Source: at first, and to get rid of keys that are gone.
func ExampleSet_Load() {
	ctx := context.Background()
	client, stop, err := connect(ctx)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer stop()

	users, err := redisfilter.New(ctx, client, "users", 1_000, 0.01, &redisfilter.Options{
		Grace: 10 * time.Millisecond, // at least the time from Add to the commit of the row
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer users.Close()
	maybe, _ := users.Contains(ctx, []byte("eve")) // and ErrIncomplete
	fmt.Println("before:", maybe)
	err = users.Load(ctx, func(ctx context.Context, since time.Time, add func(keys ...[]byte) error) error {
		return add([]byte("ada"), []byte("grace")) // in production: all rows, as since is zero
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	maybe, err = users.Contains(ctx, []byte("eve"))
	fmt.Println("after:", maybe, err)
	// Output:
	// before: true
	// after: false <nil>
}

// Keys by the million go into a local set, and that into Redis. A local set that comes out of Redis answers
// for the keys that were there at the time.
func ExampleSet_Import() {
	ctx := context.Background()
	client, stop, err := connect(ctx)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer stop()

	seen, err := redisfilter.New(ctx, client, "seen", 1_000_000, 0.01, &redisfilter.Options{StartEmpty: true})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer seen.Close()
	local, err := seen.Local() // of the same shape, and empty
	if err != nil {
		fmt.Println(err)
		return
	}
	for i := range 100_000 {
		local.AddHash(seen.Hash(fmt.Appendf(nil, "page%d", i)))
	}
	fmt.Println(seen.Import(ctx, local))
	maybe, err := seen.Contains(ctx, []byte("page99999"))
	fmt.Println(maybe, err)

	copied, err := seen.Export(ctx)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(copied.ContainsHash(seen.Hash([]byte("page7"))))
	// Output:
	// <nil>
	// true <nil>
	// true
}

// A mirror answers most questions without a trip. It needs a Redis, as package inprocess does not tell
// of changes: there, a mirror asks the set.
func ExampleSet_Mirror() {
	ctx := context.Background()
	client, err := redisfilter.Open(ctx, &redis.UniversalOptions{Addrs: []string{"127.0.0.1:6379"}})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer client.Close()
	users, err := redisfilter.New(ctx, client, "users", 1_000_000, 0.01, nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer users.Close()

	copied, err := users.Mirror(ctx, &mirror.Options{
		Lease: 2 * time.Second, // for so long, keys that others added may be denied
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer copied.Close()
	maybe, err := copied.Contains(ctx, []byte("ada"))
	fmt.Println(maybe, err)
	fmt.Println(copied.Add(ctx, []byte("eve"))) // this mirror knows her from here on
	stats := copied.Stats()
	fmt.Println(stats.Yes+stats.No, "answers without a trip,", stats.Asked, "with one")
}
