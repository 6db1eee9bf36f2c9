package guard

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strconv"
)

// Items is how many items there are to recommend: 1 to Items.
const Items = 10_000

// MaxFeed is the longest feed that one request gets.
const MaxFeed = 100

// Feed returns up to n items that the user has not seen, and notes them as seen; or
// ErrNotFound or ErrBanned, and notes nothing: whatever identifiers strangers make up,
// Redis keeps windows of users only. A
// repeated request gets others. An item that the filter takes for seen is passed
// over, which nobody notices; after a loss in Redis an item may come twice. Fewer
// than n items come to a user who has seen most of them.
func (g *Guard) Feed(ctx context.Context, user int64, n int) ([]int, error) {
	if _, err := g.User(ctx, user); err != nil {
		return nil, err
	}
	seen := g.Filters.Feed(strconv.FormatInt(user, 10))
	var feed []int
	for range 3 {
		candidates := recommend(5 * n)
		unseen, err := g.unseen(ctx, seen, candidates)
		if err != nil {
			return nil, err
		}
		fresh, err := g.show(ctx, seen, unseen[:min(n-len(feed), len(unseen))])
		if err != nil {
			return nil, err
		}
		if feed = append(feed, fresh...); len(feed) == n {
			break
		}
	}
	return feed, nil
}

// recommend stands for the engine that proposes items without a thought of what
// the user has seen: it draws n different ones.
func recommend(n int) []int {
	items := make([]int, 0, n)
	drawn := make(map[int]bool, n)
	for len(items) < min(n, Items) {
		if item := 1 + rand.IntN(Items); !drawn[item] {
			drawn[item] = true
			items = append(items, item)
		}
	}
	return items
}

// unseen returns those of the items that the user has not seen.
func (g *Guard) unseen(ctx context.Context, seen Seen, items []int) ([]int, error) {
	return g.choose(ctx, items, func(ctx context.Context, keys [][]byte) ([]bool, error) {
		known, err := seen.MContains(ctx, keys)
		for i := range known {
			g.Counters.Feed.Answered(known[i], err)
			known[i] = !known[i]
		}
		return known, err
	})
}

// show notes items as seen and returns those that no other request of the user took
// in the meantime.
func (g *Guard) show(ctx context.Context, seen Seen, items []int) ([]int, error) {
	return g.choose(ctx, items, seen.MAddNew)
}

// choose returns the items that a filter's answers are true of. Without answers all
// are chosen, or it is an error if FailClosed says so: a feed that repeats itself
// is better than none.
func (g *Guard) choose(
	ctx context.Context, items []int, ask func(context.Context, [][]byte) ([]bool, error),
) ([]int, error) {
	if len(items) == 0 {
		return nil, nil
	}
	keys := make([][]byte, len(items))
	for i, item := range items {
		keys[i] = strconv.AppendInt(nil, int64(item), 10)
	}
	ctx, cancel := context.WithTimeout(ctx, g.config.FilterTimeout)
	defer cancel()
	answers, err := ask(ctx, keys)
	switch {
	case err != nil && g.config.FailClosed:
		return nil, fmt.Errorf("%w: %w", ErrUnsure, err)
	case err != nil:
		g.Logger.DebugContext(ctx, "the feed's filter does not answer; items may come twice", "error", err)
		return items, nil
	}
	var chosen []int
	for i, item := range items {
		if answers[i] {
			chosen = append(chosen, item)
		}
	}
	return chosen, nil
}
