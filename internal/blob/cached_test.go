package blob

import (
	"bytes"
	"math/rand/v2"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/internal/base"
	"github.com/siftkv/siftkv/internal/cache"
	"github.com/siftkv/siftkv/internal/compression"
)

func openCached(tb testing.TB, data []byte, c Cache, records int) *Reader {
	tb.Helper()
	r, err := NewReader(bytes.NewReader(data), int64(len(data)), ReaderOptions{Name: "cached", ID: testID,
		Records: uint64(records), Cache: c})
	require.NoError(tb, err)
	return r
}

// Short values are kept when they are read for the second time, or at once where that is asked for; long ones are not.
// All of them go when the file is closed.
func TestValuesAreCached(t *testing.T) {
	vs := testValues(rand.New(rand.NewPCG(1, 1)))
	data, _ := writeValues(t, compression.Snappy, vs)
	for _, atOnce := range []bool{false, true} {
		c := Cache{Blocks: cache.New(16 << 20), Owner: new(cache.Owner), AtOnce: atOnce}
		r := openCached(t, data, c, len(vs))
		short := 0
		for round := range 4 {
			for _, v := range vs {
				want := len(v.bytes) <= maxCached && (round > 1 || atOnce && round > 0)
				for _, dst := range rooms(len(v.bytes)) {
					got, ok := r.AppendIfCached(dst, v.key, v.handle)
					require.Equal(t, want, ok)
					if ok {
						require.True(t, string(dst)+string(v.bytes) == string(got))
					}
				}
				got, hit, err := r.AppendCached([]byte("x"), v.key, v.handle)
				require.NoError(t, err)
				require.Equal(t, want, hit)
				require.True(t, "x"+string(v.bytes) == string(got))
				if round == 0 && len(v.bytes) <= maxCached {
					short++
				}
			}
		}
		_, blocks := c.Owner.Used()
		require.Equal(t, short, blocks)
		require.NoError(t, r.Close())
		used, blocks := c.Blocks.Used()
		require.Zero(t, blocks)
		require.Zero(t, used)
		require.NotNil(t, c.Blocks.Retain(), "it is its owner's still")
	}
}

// A handle that is another's finds no value in the cache either: neither another key, nor another place or length.
func TestAWrongHandleFindsNothingInTheCache(t *testing.T) {
	vs := testValues(rand.New(rand.NewPCG(1, 1)))
	data, _ := writeValues(t, compression.None, vs)
	r := openCached(t, data, Cache{Blocks: cache.New(16 << 20), AtOnce: true}, len(vs))
	v, other := vs[6], vs[4]
	for _, x := range []value{v, other} {
		_, _, err := r.AppendCached(nil, x.key, x.handle)
		require.NoError(t, err)
		_, ok := r.AppendIfCached(nil, x.key, x.handle)
		require.True(t, ok)
	}
	for _, spoil := range []func(h *Handle, key *[]byte){
		func(h *Handle, _ *[]byte) { h.Ordinal = other.handle.Ordinal },
		func(h *Handle, _ *[]byte) { h.Offset = other.handle.Offset },
		func(h *Handle, _ *[]byte) { h.Size-- },
		func(_ *Handle, key *[]byte) { *key = []byte("key/013") },
		func(_ *Handle, key *[]byte) { *key = []byte("key") },
	} {
		h, key := v.handle, v.key
		spoil(&h, &key)
		_, ok := r.AppendIfCached(nil, key, h)
		require.False(t, ok)
	}
	past := v.handle
	past.Ordinal = uint64(len(vs))
	_, ok := r.AppendIfCached(nil, v.key, past)
	require.False(t, ok)
	wrong := v.handle
	wrong.Offset = other.handle.Offset
	_, _, err := r.AppendCached(nil, v.key, wrong)
	require.ErrorIs(t, err, base.ErrCorruption)
	require.NoError(t, r.Close())
}

// Many readers of a small cache, in which values come and go.
func TestCachedValuesWithManyReaders(t *testing.T) {
	var vs []value
	rng := rand.New(rand.NewPCG(5, 5))
	for i := range 300 {
		b := make([]byte, 1+rng.IntN(2000))
		for j := range b {
			b[j] = byte(rng.Uint32())
		}
		vs = append(vs, value{key: []byte{byte(i >> 8), byte(i)}, seq: 1, bytes: b})
	}
	data, _ := writeValues(t, compression.None, vs)
	c := cache.New(100 << 10)
	r := openCached(t, data, Cache{Blocks: c}, len(vs))
	var readers sync.WaitGroup
	for n := range 4 {
		readers.Go(func() {
			rng, hits := rand.New(rand.NewPCG(uint64(n), 5)), 0
			for range 4000 {
				v := &vs[min(rng.IntN(len(vs)), rng.IntN(len(vs)), rng.IntN(len(vs)))]
				got, hit, err := r.AppendCached(nil, v.key, v.handle)
				if err != nil || !bytes.Equal(got, v.bytes) {
					t.Error(err, len(got))
				}
				if hit {
					hits++
				}
			}
			if hits == 0 {
				t.Error("no value was in the cache")
			}
		})
	}
	readers.Wait()
	used, _ := c.Used()
	require.LessOrEqual(t, used, int64(100<<10))
	require.NoError(t, r.Close())
}
