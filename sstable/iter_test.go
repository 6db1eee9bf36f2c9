package sstable_test

import (
	"bytes"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/siftkv/siftkv/internal/base"
	"github.com/siftkv/siftkv/internal/rangedel"
	internal "github.com/siftkv/siftkv/internal/sstable"
	"github.com/siftkv/siftkv/sstable"
	"github.com/stretchr/testify/require"
)

// randomFile has keys with many versions, tombstones and values that have expired, and says what
// of them is live.
func randomFile(tb testing.TB, rng *rand.Rand, keys int) (file []byte, live []sstable.Entry) {
	var ts []rangedel.Tombstone
	for range rng.IntN(4) {
		from := rng.IntN(keys)
		ts = append(ts, rangedel.Tombstone{Start: fmt.Appendf(nil, "%04d", from),
			End: fmt.Appendf(nil, "%04d", from+rng.IntN(keys)), Seq: base.SeqNum(300 + rng.IntN(300))})
	}
	tombs := rangedel.NewSet(ts)
	var vs []version
	for i := range keys {
		key, seq := fmt.Sprintf("%04d", 2*i), base.SeqNum(500+rng.IntN(100))
		n := 1
		if rng.IntN(4) == 0 {
			n += rng.IntN(30)
		}
		for j := range n {
			v := version{key, seq, base.KindSet, fmt.Sprintf("value %d", rng.IntN(1000))}
			switch rng.IntN(5) {
			case 0:
				v.kind, v.value = base.KindDelete, ""
			case 1:
				v.kind, v.value = base.KindSetTTL, string(base.AppendExpiry(nil, 1))
			}
			vs = append(vs, v)
			if j == 0 && v.kind == base.KindSet && tombs.Cover([]byte(key), base.MaxSeqNum) <= seq {
				live = append(live, sstable.Entry{Key: []byte(key), Value: []byte(v.value)})
			}
			seq -= base.SeqNum(1 + rng.IntN(10))
		}
	}
	return storeFile(tb, &internal.WriterOptions{BlockSize: 64 + rng.IntN(500), IndexPartition: 200}, vs, ts...), live
}

// TestIterWalksLiveKeys makes random moves and holds each against a sorted slice.
func TestIterWalksLiveKeys(t *testing.T) {
	for seed := range uint64(30) {
		rng := rand.New(rand.NewPCG(seed, 7))
		file, live := randomFile(t, rng, 1+rng.IntN(200))
		r := openBytes(t, file, &sstable.ReaderOptions{CacheSize: int64(rng.IntN(3)-1) << 16})
		it := r.NewIter(sstable.IterOptions{Sequential: rng.IntN(2) == 0})
		at := -1 // the entry that it is on
		for range 600 {
			var ok bool
			key := fmt.Appendf(nil, "%04d", rng.IntN(420))
			search := func() int {
				n, _ := slices.BinarySearchFunc(live, key, func(e sstable.Entry, k []byte) int {
					return bytes.Compare(e.Key, k)
				})
				return n
			}
			on := at >= 0 && at < len(live)
			move := rng.IntN(16)
			switch {
			case move == 0:
				ok, at = it.First(), 0
			case move == 1:
				ok, at = it.Last(), len(live)-1
			case move == 2:
				ok, at = it.SeekGE(key), search()
			case move == 3:
				ok, at = it.SeekLT(key), search()-1
			case move < 10 && on:
				ok, at = it.Next(), at+1
			case move < 10:
				ok = it.Next()
			case on:
				ok, at = it.Prev(), at-1
			default:
				ok = it.Prev()
			}
			require.NoError(t, it.Error())
			require.Equal(t, at >= 0 && at < len(live), ok, "seed %d", seed)
			require.Equal(t, ok, it.Valid())
			if !ok {
				require.Nil(t, it.Key())
				require.Nil(t, it.Value())
				continue
			}
			require.Equal(t, string(live[at].Key), string(it.Key()), "seed %d", seed)
			require.Equal(t, string(live[at].Value), string(it.Value()), "seed %d", seed)
		}
		n := 0
		for e, err := range r.All() {
			require.NoError(t, err)
			require.Equal(t, string(live[n].Key), string(e.Key))
			require.Equal(t, string(live[n].Value), string(e.Value))
			n++
		}
		require.Len(t, live, n)
		require.NoError(t, it.Close())
		require.NoError(t, it.Close())
		require.False(t, it.Valid())
		require.False(t, it.First())
		require.ErrorIs(t, it.Error(), sstable.ErrClosed)
		require.False(t, it.Next())
	}
}

// A block that is damaged ends the walk with an error that Close returns.
func TestIterReportsDamage(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	file, live := randomFile(t, rng, 200)
	file[len(file)/8] ^= 1
	it := openBytes(t, file, nil).NewIter(sstable.IterOptions{})
	n := 0
	for ok := it.First(); ok; ok = it.Next() {
		require.Equal(t, string(live[n].Key), string(it.Key()))
		n++
	}
	require.Less(t, n, len(live))
	require.ErrorIs(t, it.Error(), sstable.ErrCorruption)
	var damage *sstable.CorruptionError
	require.ErrorAs(t, it.Error(), &damage)
	require.LessOrEqual(t, damage.Offset, int64(len(file)/8), "the block begins before the byte")
	m := len(live)
	for ok := it.Last(); ok; ok = it.Prev() {
		m--
		require.Equal(t, string(live[m].Key), string(it.Key()))
	}
	require.LessOrEqual(t, n, m)
	require.Positive(t, m)
	require.ErrorIs(t, it.Close(), sstable.ErrCorruption)
}

// FuzzIter walks any bytes: there is an end, and the way back is the way there.
func FuzzIter(f *testing.F) {
	golden, err := fs.Glob(os.DirFS("../internal/sstable/testdata"), "v[23]-[bk]*.sst")
	require.NoError(f, err)
	require.NotEmpty(f, golden)
	for _, name := range golden {
		data, err := os.ReadFile(filepath.Join("../internal/sstable/testdata", name))
		require.NoError(f, err)
		f.Add(data, []byte("user/0100/name"))
	}
	f.Fuzz(func(t *testing.T, data, key []byte) {
		r, err := sstable.NewReader(bytes.NewReader(data), int64(len(data)), nil)
		if err != nil {
			return
		}
		it := r.NewIter(sstable.IterOptions{})
		var there [][]byte
		for ok := it.First(); ok; ok = it.Next() {
			there = append(there, bytes.Clone(it.Key()))
		}
		if it.Error() != nil || r.Verify() != nil {
			for range r.All() {
			}
			it.SeekGE(key)
			it.SeekLT(key)
			return
		}
		for ok := it.Last(); ok; ok = it.Prev() {
			require.Equal(t, there[len(there)-1], it.Key())
			there = there[:len(there)-1]
		}
		require.NoError(t, it.Error())
		require.Empty(t, there)
		_, err = r.Get(key)
		found := it.SeekGE(key) && bytes.Equal(it.Key(), key)
		require.Equal(t, err == nil, found)
		if it.SeekLT(key) {
			require.Negative(t, bytes.Compare(it.Key(), key))
		}
	})
}
