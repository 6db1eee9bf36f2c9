package engine

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/cmd/kvbench/internal/bench"
	"github.com/siftkv/siftkv/cmd/kvbench/internal/keys"
	"github.com/siftkv/siftkv/internal/scale"
)

// TestEveryLiveStore loads, settles, opens again, reads, scans, and writes from
// several goroutines, in every durability.
func TestEveryLiveStore(t *testing.T) {
	v := newValues(t)
	const n = 1000
	for i, name := range Peers() {
		compressions := []string{"none", "snappy"}
		if !scale.Long() { // one each
			compressions = compressions[i%2:][:1]
		}
		for _, compression := range compressions {
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
				if name != PebbleIteratorName {
					deleteSome(t, store, v, n)
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

// deleteSome deletes keys one by one and, if it can be, by ranges.
func deleteSome(t *testing.T, s Live, v keys.Values, n int) {
	t.Helper()
	left := n
	for i := 0; i < n; i += 3 {
		require.NoError(t, s.Delete(key(2*i)))
		left--
	}
	require.NoError(t, s.Delete(key(2*n+1)), "a key that is not there")
	ranges, ok := s.(RangeDeleter)
	if ok {
		require.NoError(t, ranges.DeleteRange(key(2*4), key(2*8)), "four keys, of which one was gone")
		left -= 3
	}
	seen := 0
	require.NoError(t, s.Scan(nil, 0, func(k, _ []byte) {
		require.NotEqual(t, string(key(6)), string(k))
		seen++
	}))
	require.Equal(t, left, seen)
	r, err := s.NewReader(Get, Existing)
	require.NoError(t, err)
	for i, want := range map[int]bool{0: false, 1: true, 3: false, 4: !ok, 5: !ok, 7: !ok, 8: true} {
		_, found, err := r.Get(nil, key(2*i))
		require.NoError(t, err)
		require.Equal(t, want, found, "key %d", i)
	}
	require.NoError(t, r.Close())
	require.NoError(t, s.Set(key(0), v.Append(nil, key(0))), "a deleted key may come back")
}

func TestDeletesRangesAndScansKeysSayWhoDoes(t *testing.T) {
	for _, name := range Peers() {
		store, err := Open(name, filepath.Join(t.TempDir(), name), settingsOf("none"))
		require.NoError(t, err)
		_, ok := store.(RangeDeleter)
		require.Equal(t, ok, DeletesRanges(name), name)
		_, ok = store.(KeyScanner)
		require.Equal(t, ok, ScansKeys(name), name)
		require.NoError(t, store.Close())
	}
}

// TestAddersAddUp adds to counters across flushes and openings.
func TestAddersAddUp(t *testing.T) {
	for _, name := range []string{"siftkv", "pebble"} {
		s := settingsOf("none")
		s.Counters = true
		dir := filepath.Join(t.TempDir(), name)
		for round := range 3 {
			store, err := Open(name, dir, s)
			require.NoError(t, err)
			for i := range 100 {
				require.NoError(t, store.(Adder).Add(key(i%7), binary.LittleEndian.AppendUint64(nil, uint64(i))))
			}
			if round == 1 {
				require.NoError(t, store.Settle(t.Context()))
			}
			r, err := store.NewReader(Get, Existing)
			require.NoError(t, err)
			value, found, err := r.Get(nil, key(3))
			require.NoError(t, err)
			require.True(t, found)
			want := (round + 1) * (3*14 + 7*13*14/2)
			require.EqualValues(t, want, binary.LittleEndian.Uint64(value), "%s, round %d", name, round)
			require.NoError(t, r.Close())
			require.NoError(t, store.Close())
		}
	}
}

// TestReadsAreCounted holds what the system says that the process has read, and in how many calls, against what the
// store says that it read.
func TestReadsAreCounted(t *testing.T) {
	scale.Alone(t)
	read := func() (bytes, calls int64) {
		data, err := os.ReadFile("/proc/self/io")
		if errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrPermission) {
			t.Skipf("the system does not say what a process reads: %v", err)
		}
		require.NoError(t, err)
		var written int64
		_, err = fmt.Sscanf(string(data), "rchar: %d\nwchar: %d\nsyscr: %d", &bytes, &written, &calls)
		require.NoError(t, err)
		return bytes, calls
	}
	v := newValues(t)
	const n = 3000
	// SiftKV first tries a call that does not wait. If the page cache lacks the block, another one reads it.
	for name, callsPerBlock := range map[string]int64{"siftkv": 2, "pebble": 1} {
		s := settingsOf("none").WithMemoryLimit(4 << 20)
		dir := filepath.Join(t.TempDir(), name)
		store, err := Open(name, dir, s)
		require.NoError(t, err)
		fill(t, store, v, n)
		require.NoError(t, store.Close())
		store, err = Open(name, dir, s)
		require.NoError(t, err)
		bytesBefore, callsBefore := read()
		c := ask(t, store, v, Get, Existing, n)
		bytes, calls := read()
		bytes, calls = bytes-bytesBefore, calls-callsBefore
		blocks, blockBytes := int64(c.Total.BlocksFromDisk), int64(c.Total.BytesFromDisk)
		require.Positive(t, blockBytes, name)
		require.GreaterOrEqual(t, bytes, blockBytes, name)
		require.LessOrEqual(t, bytes, blockBytes+20*4096, "%s: filters and footers are read too", name)
		require.GreaterOrEqual(t, calls, blocks, name)
		require.LessOrEqual(t, calls, callsPerBlock*blocks+20, "%s: filters and footers are read too", name)
		require.NoError(t, store.Close())
	}
}

// settingsOf returns those of the tests with a compression.
func settingsOf(compression string) Settings {
	s := settings
	s.Compression = compression
	return s
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

// A batch may write a key more than once.
func TestSortedPairsOfAKeyStayInTheirOrder(t *testing.T) {
	var p pairs
	const n = 100
	for i := range n {
		require.NoError(t, p.add([]byte{byte(i % 3)}, []byte{byte(i)}))
	}
	var last []byte
	for _, at := range p.sorted(nil) {
		key, value := p.at(at)
		now := append(append([]byte(nil), key...), value...)
		require.Less(t, string(last), string(now))
		last = now
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
