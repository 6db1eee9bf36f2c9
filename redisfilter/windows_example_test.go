package redisfilter_test

import (
	"context"
	"fmt"
	"time"

	"github.com/siftkv/siftkv/redisfilter"
)

// A feed does not show an item again to a user who has seen it in the last week.
func ExampleWindows() {
	ctx := context.Background()
	client, stop, err := connect(ctx)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer stop()

	seen, err := redisfilter.NewWindows(ctx, client, "seen", 100, 0.01, &redisfilter.WindowOptions{
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
