package redisfilter_test

import (
	"context"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/siftkv/siftkv/redisfilter"
	"github.com/siftkv/siftkv/redisfilter/inprocess"
)

// A service asks the set before it asks the database. The set loads itself from there.
func Example() {
	server, err := inprocess.Start() // in production: a Redis
	if err != nil {
		fmt.Println(err)
		return
	}
	defer server.Close()
	ctx := context.Background()
	client, err := redisfilter.Open(ctx, &redis.UniversalOptions{Addrs: []string{server.Addr()}})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer client.Close()

	readUsers := func(ctx context.Context, since time.Time, add func(keys ...[]byte) error) error {
		return add([]byte("ada"), []byte("grace")) // in production: rows committed since then
	}
	users, err := redisfilter.New(ctx, client, "users", 1_000_000, 0.01, &redisfilter.Options{
		Source: readUsers,
		Grace:  10 * time.Millisecond, // at least the time from Add to the commit of the row
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer users.Close()
	if err := users.Ready(ctx); err != nil { // until then, all answers are "maybe" and an error
		fmt.Println(err)
		return
	}

	maybe, err := users.Contains(ctx, []byte("ada"))
	fmt.Println(maybe, err)
	maybe, err = users.Contains(ctx, []byte("eve"))
	fmt.Println(maybe, err)

	// Before the row of a new user commits:
	fmt.Println(users.Add(ctx, []byte("eve")))
	maybe, err = users.Contains(ctx, []byte("eve"))
	fmt.Println(maybe, err)
	// Output:
	// true <nil>
	// false <nil>
	// <nil>
	// true <nil>
}

// connect opens a Redis as the example of the package does, for the other examples.
func connect(ctx context.Context) (client *redisfilter.Client, stop func(), err error) {
	server, err := inprocess.Start()
	if err != nil {
		return nil, nil, err
	}
	client, err = redisfilter.Open(ctx, &redis.UniversalOptions{Addrs: []string{server.Addr()}})
	if err != nil {
		server.Close()
		return nil, nil, err
	}
	return client, func() { client.Close(); server.Close() }, nil
}

// Of all processes that add a key, one is told that it is new.
func ExampleSet_AddNew() {
	ctx := context.Background()
	client, stop, err := connect(ctx)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer stop()

	seen, err := redisfilter.New(ctx, client, "crawled", 1_000, 0.001, &redisfilter.Options{
		Growth:     10,   // 1,000, then 10,000, then 100,000 keys
		StartEmpty: true, // to fetch a page twice does no harm
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer seen.Close()
	for _, url := range []string{"https://go.dev", "https://redis.io", "https://go.dev"} {
		fresh, err := seen.AddNew(ctx, []byte(url))
		fmt.Println(url, fresh, err)
	}
	// Output:
	// https://go.dev true <nil>
	// https://redis.io true <nil>
	// https://go.dev false <nil>
}

// A black list: who is on it is asked for at every request, and may be taken off it.
func ExampleNewCuckoo() {
	ctx := context.Background()
	client, stop, err := connect(ctx)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer stop()

	readBanned := func(ctx context.Context, since time.Time, add func(keys ...[]byte) error) error {
		return add([]byte("10.0.0.1"), []byte("10.0.0.2")) // in production: the rows of the list
	}
	banned, err := redisfilter.NewCuckoo(ctx, client, "banned", 100_000, 0.001, &redisfilter.Options{
		Source: readBanned,
		Grace:  10 * time.Millisecond, // at least the time between a row's commit and Add or Remove
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer banned.Close()
	if err := banned.Ready(ctx); err != nil {
		fmt.Println(err)
		return
	}

	// After the deletion of the row has committed:
	fmt.Println(banned.Remove(ctx, []byte("10.0.0.1")))
	fmt.Println(banned.MContains(ctx, [][]byte{[]byte("10.0.0.1"), []byte("10.0.0.2")}))
	// Output:
	// true <nil>
	// [false true] <nil>
}
