package engine

import (
	"fmt"
	"path/filepath"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/internal/bench"
)

// TestEveryLiveStore loads, settles, opens again, reads, scans, and writes from
// several goroutines, in every durability.
func TestEveryLiveStore(t *testing.T) {
	v := newValues(t)
	const n = 1000
	for _, name := range Peers() {
		for _, compression := range []string{"none", "snappy"} {
			t.Run(name+" "+compression, func(t *testing.T) {
				dir, s := filepath.Join(t.TempDir(), "store"), settings
				s.Compression = compression
				store, err := Open(name, dir, s)
				require.NoError(t, err)
				fill(t, store, v, n)
				for _, d := range []Durability{Soon, WithOS, Durable} {
					require.NoError(t, store.Close())
					s.Durability, s.Writers = d, 4
					store, err = Open(name, dir, s)
					require.NoError(t, err)
					ask(t, store, v, Get, Existing, n)
					ask(t, store, v, Get, Absent, n)
					scanAll(t, store, n)
					setFromMany(t, store, n, string(d))
				}
				_, err = store.Shape()
				require.NoError(t, err)
				require.NoError(t, store.Close())
			})
		}
	}
}

// scanAll scans parts and the whole of a store that fill has filled.
func scanAll(t *testing.T, s Live, n int) {
	t.Helper()
	for _, c := range []struct{ start, limit, want int }{{0, 0, n}, {0, 10, 10}, {2*n - 10, 10, 5}, {n + 1, 3, 3},
		{2 * n, 10, 0}} {
		next, got := (c.start+1)/2*2, 0
		require.NoError(t, s.Scan(key(c.start), c.limit, func(k, value []byte) {
			require.Equal(t, string(key(next)), string(k))
			require.Len(t, value, 100)
			next += 2
			got++
		}))
		require.Equal(t, c.want, got, "from %d, at most %d", c.start, c.limit)
	}
}

// setFromMany overwrites keys of fill with what they have.
func setFromMany(t *testing.T, s Live, n int, text string) {
	t.Helper()
	v := newValues(t)
	var group sync.WaitGroup
	errs := make([]error, 4)
	for g := range errs {
		group.Go(func() {
			for i := range 20 {
				if err := s.Set(key(2*i), v.Append(nil, key(2*i))); err != nil {
					errs[g] = err
				}
			}
		})
	}
	group.Wait()
	for _, err := range errs {
		require.NoError(t, err)
	}
	seen := 0
	require.NoError(t, s.Scan(key(0), n, func(_, _ []byte) { seen++ }))
	require.Equal(t, n, seen, text)
}

func TestPairsKeepWhatTheyAreGiven(t *testing.T) {
	var p pairs
	for round := range 2 {
		for i := range 10 {
			require.NoError(t, p.add(key(i*7%10), fmt.Appendf(nil, "%d of %d", i*7%10, round)))
		}
		require.Equal(t, 10, p.len())
		for i, at := range p.sorted(nil) {
			k, v := p.at(at)
			require.Equal(t, string(key(i)), string(k))
			require.Equal(t, fmt.Sprintf("%d of %d", i, round), string(v))
		}
		p.reset()
	}
}

func TestOpenOfAnUnknownEngine(t *testing.T) {
	_, err := Open("oracle", t.TempDir(), settings)
	require.ErrorIs(t, err, bench.ErrUsage)
	require.Empty(t, Notes("oracle"))
	for _, name := range Peers() {
		require.NotEmpty(t, Notes(name))
	}
	for _, name := range []string{"badger", "goleveldb"} {
		s := settings
		s.Compression = "lz4"
		_, err := Open(name, t.TempDir(), s)
		require.ErrorContains(t, err, "lz4")
	}
}
