package sstable

import (
	"bytes"
	"errors"
	"fmt"
	"sort"
	"testing"

	"github.com/siftkv/siftkv/filterpolicy"
	"github.com/siftkv/siftkv/internal/base"
	"github.com/siftkv/siftkv/internal/rangedel"
	"github.com/stretchr/testify/require"
)

// seqFile writes a file of 200 keys, every third a tombstone, in small blocks.
func seqFile(t *testing.T) []byte {
	t.Helper()
	var b bytes.Buffer
	w := NewWriter(&b, &WriterOptions{BlockSize: 64, RestartInterval: 3})
	for i := range 200 {
		k := fmt.Appendf(nil, "k%03d", 2*i)
		if i%3 == 0 {
			require.NoError(t, w.Add(base.MakeKey(k, 0, base.KindDelete), nil))
		} else {
			require.NoError(t, w.set(k, fmt.Appendf(nil, "v%d", i)))
		}
	}
	require.NoError(t, w.AddTombstone(rangedel.Tombstone{Start: []byte("k100"), End: []byte("k200")}))
	_, err := w.Finish()
	require.NoError(t, err)
	return b.Bytes()
}

// TestSeqIsThatOfEveryEntry compares a reader that gives all entries one sequence
// number with a list of what it should show.
func TestSeqIsThatOfEveryEntry(t *testing.T) {
	const seq = 40
	data := seqFile(t)
	r, err := NewReader(bytes.NewReader(data), int64(len(data)), &ReaderOptions{Seq: seq})
	require.NoError(t, err)
	var keys []base.InternalKey
	for i := range 200 {
		kind := base.KindSet
		if i%3 == 0 {
			kind = base.KindDelete
		}
		keys = append(keys, base.MakeKey(fmt.Appendf(nil, "k%03d", 2*i), seq, kind))
	}
	it := r.NewIter(IterOptions{})
	n := 0
	for ok := it.First(); ok; ok = it.Next() {
		require.Equal(t, keys[n], it.Key())
		n++
	}
	require.Equal(t, len(keys), n)
	for _, at := range []base.SeqNum{0, 1, seq - 1, seq, seq + 1, base.MaxSeqNum} {
		for i := range 402 {
			user := fmt.Appendf(nil, "k%03d", i)
			for _, kind := range []base.Kind{base.KindDelete, base.KindSet, base.KindMax} {
				k := base.MakeKey(user, at, kind)
				want := sort.Search(len(keys), func(i int) bool { return base.Compare(keys[i], k) >= 0 })
				require.Equal(t, want < len(keys), it.SeekGE(k), "%s", k)
				if it.Valid() {
					require.Equal(t, keys[want], it.Key(), "SeekGE(%s)", k)
				}
				require.Equal(t, want > 0, it.SeekLT(k), "%s", k)
				if it.Valid() {
					require.Equal(t, keys[want-1], it.Key(), "SeekLT(%s)", k)
				}
			}
			var p Probe
			_, trailer, ok, err := r.Find(nil, user, filterpolicy.Hash(user), at, &p)
			require.NoError(t, err)
			require.Equal(t, i%2 == 0 && i < 400 && at >= seq, ok)
			if ok {
				require.Equal(t, keys[i/2].Trailer, trailer)
			}
		}
	}
	require.Equal(t, []rangedel.Tombstone{{Start: []byte("k100"), End: []byte("k200"), Seq: seq}},
		r.Tombstones().Clip(nil, nil, nil))
	v, err := r.get([]byte("k110"))
	require.NoError(t, err, "a file's range tombstones hide nothing of the file")
	require.Equal(t, "v55", string(v))
	require.NoError(t, r.Verify())
}

func TestSeqIsRefusedForAFileThatHasNumbers(t *testing.T) {
	var b bytes.Buffer
	w := NewWriter(&b, nil)
	require.NoError(t, w.Add(base.MakeKey([]byte("k"), 3, base.KindSet), nil))
	_, err := w.Finish()
	require.NoError(t, err)
	_, err = NewReader(bytes.NewReader(b.Bytes()), int64(b.Len()), &ReaderOptions{Seq: 5})
	require.ErrorIs(t, err, ErrCorruption)
	require.ErrorContains(t, err, "up to 3")
}

func TestVerifyEachShowsEveryEntry(t *testing.T) {
	data := seqFile(t)
	r, err := NewReader(bytes.NewReader(data), int64(len(data)), nil)
	require.NoError(t, err)
	n := 0
	require.NoError(t, r.VerifyEach(func(k base.InternalKey, _ []byte) error {
		require.Equal(t, fmt.Sprintf("k%03d", 2*n), string(k.User))
		n++
		return nil
	}))
	require.Equal(t, 200, n)
	enough := errors.New("enough")
	require.Equal(t, enough, r.VerifyEach(func(base.InternalKey, []byte) error { return enough }))
	info, err := r.Info()
	require.NoError(t, err)
	require.EqualValues(t, len(data), info.Size)
	require.EqualValues(t, 200, info.Entries)
}
