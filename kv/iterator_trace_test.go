package kv

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	trace "github.com/siftkv/siftkv/internal/lookuptrace"
	"github.com/siftkv/siftkv/kv/lookuptrace"
)

// tracedScans returns the scans of a trace, a line each: where one starts, < or >, its end, how many entries, ! if it
// came to its end, and k if it was of keys.
func tracedScans(t *testing.T, data []byte) []string {
	t.Helper()
	r, err := trace.NewReader(bytes.NewReader(data), "trace")
	require.NoError(t, err)
	var all []string
	word := func(b trace.Bound) string {
		if !b.Set {
			return "-"
		}
		return strconv.Quote(string(b.Key))
	}
	for {
		_, s, err := r.NextRecord()
		if errors.Is(err, io.EOF) {
			return all
		}
		require.NoError(t, err)
		if s == nil {
			continue
		}
		way := map[bool]string{false: ">", true: "<"}[s.Backward]
		line := fmt.Sprint(word(s.Start), " ", way, " ", word(s.End), " ", s.Entries)
		if s.Ended {
			line += "!"
		}
		if s.KeysOnly {
			line += "k"
		}
		all = append(all, line)
	}
}

func TestScansAreTraced(t *testing.T) {
	db, err := Open("", &Options{InMemory: true})
	require.NoError(t, err)
	for i := range 100 {
		require.NoError(t, db.Set(fmt.Appendf(nil, "k%02d", i), []byte("v"), NoSync))
		if i == 50 {
			require.NoError(t, db.Flush(t.Context()))
		}
	}
	require.NoError(t, db.Compact(t.Context(), nil, []byte("k20"))) // of which the table has most
	var out bytes.Buffer
	tracer, err := lookuptrace.New(&out, &lookuptrace.Options{Keys: true})
	require.NoError(t, err)
	open := func(r Reader, o *IterOptions) *Iterator {
		it, err := r.NewIter(o)
		require.NoError(t, err)
		return it
	}
	it := open(db, nil) // opened before the tracer is there
	require.True(t, it.First())
	db.TraceLookups(tracer)
	require.True(t, it.Next())
	steps := func(n int, step func() bool) {
		for range n {
			require.True(t, step())
		}
	}
	var want []string
	require.True(t, it.First())
	steps(98, it.Next)
	require.True(t, it.Next())
	require.False(t, it.Next())
	want = append(want, `- > - 100!`)
	require.True(t, it.SeekGE([]byte("k30")))
	steps(40, it.Next)
	steps(2, it.Prev)
	want = append(want, `"k30" > - 43`)
	require.True(t, it.SeekLT([]byte("k30")))
	require.True(t, it.Prev())
	want = append(want, `"k30" < - 2`)
	require.True(t, it.Last())
	want = append(want, `- < - 1`)
	require.False(t, it.SeekGE([]byte("x")))
	want = append(want, `"x" > - 0!`)
	require.False(t, it.SeekLT(nil))
	want = append(want, `"" < - 0!`)
	require.NoError(t, it.Close())

	it = open(db, &IterOptions{LowerBound: []byte("k10"), UpperBound: []byte("k15"), KeysOnly: true})
	require.True(t, it.First())
	steps(4, it.Next)
	require.False(t, it.Next())
	want = append(want, `"k10" > "k15" 5!k`)
	require.True(t, it.Last())
	want = append(want, `"k15" < "k10" 1k`)
	require.True(t, it.SeekGE([]byte("a")))
	want = append(want, `"k10" > "k15" 1k`)
	require.True(t, it.SeekLT([]byte("z")))
	want = append(want, `"k15" < "k10" 1k`)
	require.NoError(t, it.Close())
	require.NoError(t, it.Close())
	require.False(t, it.First())

	require.NoError(t, db.Update(func(tx *Tx) error {
		require.NoError(t, tx.Set([]byte("k10+"), nil))
		var err error
		for range tx.All(&IterOptions{Prefix: []byte("k10")}, &err) {
		}
		return err
	}))
	want = append(want, `"k10" > "k11" 2!`)
	s := db.NewSnapshot()
	it = open(s, &IterOptions{UpperBound: []byte("k03")})
	require.True(t, it.First())
	require.NoError(t, it.Close())
	require.NoError(t, s.Close())
	want = append(want, `- > "k03" 1`)
	db.TraceLookups(nil)
	it = open(db, nil)
	require.True(t, it.First())
	db.TraceLookups(tracer)
	require.NoError(t, it.Close())
	require.NoError(t, db.Close())
	require.NoError(t, tracer.Close())
	require.ElementsMatch(t, want, tracedScans(t, out.Bytes()), strings.Join(tracedScans(t, out.Bytes()), "\n"))
	require.Equal(t, lookuptrace.Stats{Scans: uint64(len(want)), Bytes: uint64(out.Len())}, tracer.Stats())
}

// A scan that fails, here because the store is closed, is not written.
func TestAFailedScanIsNotTraced(t *testing.T) {
	db, err := Open("", &Options{InMemory: true})
	require.NoError(t, err)
	require.NoError(t, db.Set([]byte("a"), nil, nil))
	var out bytes.Buffer
	tracer, err := lookuptrace.New(&out, &lookuptrace.Options{Keys: true})
	require.NoError(t, err)
	db.TraceLookups(tracer)
	it, err := db.NewIter(nil)
	require.NoError(t, err)
	require.True(t, it.SeekGE([]byte("a")))
	require.ErrorContains(t, db.Close(), "iterator")
	require.False(t, it.SeekGE([]byte("b")))
	require.ErrorIs(t, it.Error(), ErrClosed)
	require.NoError(t, it.Close())
	require.NoError(t, tracer.Close())
	require.Equal(t, []string{`"a" > - 1`}, tracedScans(t, out.Bytes()))
}
