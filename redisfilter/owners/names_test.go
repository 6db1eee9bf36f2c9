package owners

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/siftkv/siftkv/internal/property"
	"github.com/siftkv/siftkv/redisfilter/internal/config"
	"github.com/siftkv/siftkv/redisfilter/internal/nodes"
	"github.com/siftkv/siftkv/redisfilter/internal/redistest"
)

func TestOwnersDoNotMix(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	w := setsTest{addrs: []string{s.Addr}, keys: 60, rate: 0.01}.open(t, 0)
	names := []string{"a", "a/b", "a%2Fb", "}", "{", "{}", "a}{b", "a:w1", "ä", " ", "\x00\xff"}
	names = append(names, strings.Repeat("}", maxOwner))
	for i, name := range names {
		require.NoError(t, w.Of(name).MAdd(t.Context(), numbered(fmt.Sprint("of", i), 60)))
	}
	for i, name := range names {
		for j := range names {
			maybe, err := w.Of(name).MContains(t.Context(), numbered(fmt.Sprint("of", j), 60))
			require.NoError(t, err)
			if i == j {
				require.Equal(t, 60, count(maybe))
			} else {
				require.LessOrEqual(t, count(maybe), 10, "%q has keys of %q", name, names[j]) // of 60
			}
		}
	}
}

// What one owner's keys hide from it differs from what the same keys hide from another.
func TestOwnersHaveFalsePositivesOfTheirOwn(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	w := setsTest{addrs: []string{s.Addr}, keys: 500, rate: 0.2, keep: 1}.open(t, 0)
	popular, absent := numbered("popular", 500), numbered("absent", 5000)
	hidden := make([]int, len(absent))
	total := 0
	for i := range 3 {
		f := w.Of(fmt.Sprint("owner", i))
		require.NoError(t, f.MAdd(t.Context(), popular))
		maybe, err := f.MContains(t.Context(), absent)
		require.NoError(t, err)
		for k, m := range maybe {
			if m {
				hidden[k]++
				total++
			}
		}
	}
	require.Greater(t, total, 100)
	fromAll := 0
	for _, n := range hidden {
		if n == 3 {
			fromAll++
		}
	}
	require.Less(t, fromAll, total/3/4, "of %d", total)
}

func TestPrefixesOfOwnersDiffer(t *testing.T) {
	cfg, err := newConfig(config.Request{Kind: config.KindWindows, Keys: 10, Rate: 0.01})
	require.NoError(t, err)
	o := newWindows(nil, "feed", cfg)
	property.Check(t, func(t *rapid.T) {
		name := rapid.OneOf(rapid.StringMatching(`[a{}/%:]{1,5}`), rapid.StringN(1, 20, -1))
		a, b := name.Draw(t, "a"), name.Draw(t, "b")
		one, two := o.prefix(a, "g", 1), o.prefix(b, "g", 1)
		require.Equal(t, a == b, one == two)
		require.Equal(t, 1, strings.Count(one, "{"))
		require.Equal(t, 1, strings.Count(one, "}"))
		require.Equal(t, nodes.Slot(one), nodes.Slot(o.prefix(a, "h", 2)), "all windows lie on one node")
	})
}
