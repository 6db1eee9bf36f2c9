package sstable

import (
	"bytes"
	"fmt"
	"math/bits"
	"sort"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/filterpolicy"
	"github.com/siftkv/siftkv/internal/base"
	"github.com/siftkv/siftkv/internal/scale"
)

// Whatever version of a key with many blocks of them is looked for, with what bounds, it is found by reading some of
// the blocks.
func TestVersionsInManyBlocksAreBisected(t *testing.T) {
	t.Parallel()
	scale.OneGoroutine(t, "a count of blocks that one goroutine reads")
	var vs []version
	add := func(key string, newest, n int) {
		for i := range n { // every second number
			k := base.MakeKey([]byte(key), base.SeqNum(newest-2*i), base.KindSet)
			vs = append(vs, version{k, fmt.Appendf(nil, "%s %030d", key, i)})
		}
	}
	add("a", 10, 1)
	add("b", 8000, 600)
	add("c", 9, 1)
	add("d", 8000, 600) // the last of the file
	for _, partition := range []int{64, 1 << 20} {
		o := &WriterOptions{Compression: NoCompression, BlockSize: 512, IndexPartition: partition}
		data, info := writeFile(t, o, vs)
		blocks := int(info.DataBlocks)
		require.Greater(t, blocks, 80)
		most := 4 + 2*bits.Len(uint(blocks))
		r := openBytes(t, data, nil)
		for _, key := range []string{"b", "d"} {
			for at := base.SeqNum(6700); at < 8100; at++ {
				k := base.SearchKey([]byte(key), at)
				want := sort.Search(len(vs), func(i int) bool { return base.Compare(vs[i].key, k) >= 0 })
				for _, bounds := range []*Bounds{nil, {Upper: []byte("c")}, {Lower: []byte("c"), Upper: []byte("e")}} {
					requireSeeks(t, r, bounds, vs, k, want, most)
				}
				var p Probe
				value, trailer, ok, err := r.Find(nil, k.User, filterpolicy.Hash(k.User), at, &p)
				require.NoError(t, err)
				require.True(t, p.KeyPresent)
				require.LessOrEqual(t, p.BlocksFromDisk+p.BlocksFromCache, most+maxWalked)
				if ok = ok && want < len(vs); !ok {
					require.True(t, want == len(vs) || string(vs[want].key.User) != key)
					continue
				}
				require.Equal(t, vs[want].key.Trailer, trailer)
				require.Equal(t, vs[want].value, value)
			}
		}
	}
}

// An index that says that a key ends before it does is damage, and no seek repeats for ever.
func TestAnIndexThatEndsAKeyEarly(t *testing.T) {
	t.Parallel()
	var data bytes.Buffer
	w := NewWriter(&data, &WriterOptions{Compression: NoCompression, BlockSize: 512, IndexPartition: 1 << 20})
	for i := range 600 {
		k := base.MakeKey([]byte("b"), base.SeqNum(8000-i), base.KindSet)
		require.NoError(t, w.Add(k, fmt.Appendf(nil, "%030d", i)))
		if w.pending && i > 100 {
			w.pending = false
			w.index.add([]byte("bb"), w.offset)
		}
	}
	require.NoError(t, w.Add(base.MakeKey([]byte("c"), 1, base.KindSet), []byte("c")))
	_, err := w.Finish()
	require.NoError(t, err)
	it := openBytes(t, data.Bytes(), nil).NewIter(IterOptions{})
	require.False(t, it.SeekGE(base.InternalKey{User: []byte("b")}))
	require.ErrorIs(t, it.Error(), ErrCorruption)
}

// requireSeeks seeks to k from both sides, where vs[want] is the first version at or after it. Beyond bounds there may
// be anything.
func requireSeeks(t *testing.T, r *Reader, bounds *Bounds, vs []version, k base.InternalKey, want, most int) {
	t.Helper()
	within := func(i int) bool {
		user := string(vs[i].key.User)
		return bounds == nil || user >= string(bounds.Lower) && user < string(bounds.Upper)
	}
	it := r.NewIter(IterOptions{Bounds: bounds})
	ok := it.SeekGE(k)
	require.NoError(t, it.Error())
	if want < len(vs) && within(want) {
		require.True(t, ok)
		require.Zero(t, base.Compare(vs[want].key, it.Key()), "%s", k)
		require.Equal(t, vs[want].value, it.Value())
	} else if bounds == nil {
		require.False(t, ok)
	}
	if within(min(want, len(vs)-1)) && within(want-1) {
		require.True(t, it.SeekLT(k))
		require.Zero(t, base.Compare(vs[want-1].key, it.Key()), "%s", k)
	}
	require.LessOrEqual(t, it.Probe.BlocksFromDisk+it.Probe.BlocksFromCache, 2*most)
}
