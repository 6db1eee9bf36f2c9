package owners_test

import (
	"context"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/siftkv/siftkv/redisfilter"
	"github.com/siftkv/siftkv/redisfilter/inprocess"
	"github.com/siftkv/siftkv/redisfilter/owners"
)

// A feed does not show an item again to a user who has seen it in the last week.
func Example() {
	ctx := context.Background()
	server, err := inprocess.Start() // in production: a Redis
	if err != nil {
		fmt.Println(err)
		return
	}
	defer server.Close()
	client, err := redisfilter.Open(ctx, &redis.UniversalOptions{Addrs: []string{server.Addr()}})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer client.Close()

	seen, err := owners.New(ctx, client, "seen", 100, 0.01, &owners.Options{
		Period: 24 * time.Hour,
		Keep:   8, // today and seven full days
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer seen.Close()
	for _, item := range []string{"news", "music", "news"} {
		fresh, err := seen.Of("ada").AddNew(ctx, []byte(item))
		if err != nil || fresh { // without Redis, items may be shown again
			fmt.Println("ada sees", item)
		}
	}
	maybe, err := seen.Of("grace").Contains(ctx, []byte("news"))
	fmt.Println(maybe, err)
	// Output:
	// ada sees news
	// ada sees music
	// false <nil>
}
