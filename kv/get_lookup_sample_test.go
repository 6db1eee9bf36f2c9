package kv

import (
	"fmt"
	"io"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/kv/lookuptrace"
)

// sampled returns what is in the sample of a store, as traced does, and its scans.
func sampled(db *DB) (lookups, scans []string) {
	s := db.watch.Sampler().Take()
	for _, l := range s.Lookups {
		lookups = append(lookups, string(s.Keys[l.Key])+map[bool]string{true: "+", false: "-"}[l.Found])
	}
	for _, o := range s.Scans {
		scans = append(scans, fmt.Sprintf("%q %v %q %d %v", o.Start, o.Backward, o.End, o.Entries, o.Ended))
	}
	return lookups, scans
}

func TestLookupsAreSampled(t *testing.T) {
	dir := t.TempDir()
	db, err := Open(dir, &Options{LookupSample: 64 << 10})
	require.NoError(t, err)
	for _, key := range []string{"a", "c", "e", "g"} {
		require.NoError(t, db.Set([]byte(key), []byte("1"), nil))
	}
	require.NoError(t, db.Flush(t.Context()))
	look := func(r Reader, key string) {
		t.Helper()
		_, _ = r.Get([]byte(key))
		_, err := r.Has([]byte(key))
		require.NoError(t, err)
		_, _ = r.GetSize([]byte(key))
	}
	look(db, "a")
	s := db.NewSnapshot()
	look(s, "b")
	require.NoError(t, s.Close())
	require.NoError(t, db.View(func(tx *Tx) error {
		look(tx, "c")
		return nil
	}))
	keys := [][]byte{[]byte("z"), []byte("a"), []byte("c"), []byte("y"), []byte("a")}
	_, err = db.MultiGet(keys)
	require.NoError(t, err)
	_, err = db.MultiGet(keys[:2])
	require.NoError(t, err)
	it, err := db.NewIter(&IterOptions{UpperBound: []byte("f")})
	require.NoError(t, err)
	require.True(t, it.SeekGE([]byte("b")))
	require.True(t, it.Next())
	require.False(t, it.Next())
	require.True(t, it.Last())
	require.NoError(t, it.Close())
	it, err = db.NewIter(nil)
	require.NoError(t, err)
	require.True(t, it.First())
	require.NoError(t, it.Close())
	lookups, scans := sampled(db)
	require.Equal(t, []string{"a+", "a+", "a+", "b-", "b-", "b-", "c+", "c+", "c+"}, lookups[:9])
	require.ElementsMatch(t, []string{"z-", "a+", "c+", "y-", "a+"}, lookups[9:14])
	require.Equal(t, []string{"z-", "a+"}, lookups[14:])
	require.Equal(t, []string{`"b" false "f" 2 true`, `"f" true "" 1 false`, `"" false "" 1 false`}, scans)
	require.NoError(t, db.Close())
}

// A tracer and the sample take what each wants, whichever comes first.
func TestATracerAndTheSampleGoTogether(t *testing.T) {
	t.Parallel()
	db, err := Open("", &Options{InMemory: true, LookupSample: 64 << 10})
	require.NoError(t, err)
	look := func(from, to int) {
		for i := range to - from {
			_, err := db.Has(fmt.Appendf(nil, "key%d", from+i))
			require.NoError(t, err)
		}
	}
	const full = 300_000 // until which the sample takes one key in many
	look(0, full)
	require.Less(t, db.watch.Threshold.Load(), uint64(1)<<62)
	all := func() *lookuptrace.Tracer {
		tracer, err := lookuptrace.New(io.Discard, &lookuptrace.Options{Keys: true})
		require.NoError(t, err)
		return tracer
	}
	tracer := all()
	db.TraceLookups(tracer)
	before := db.watch.Sampler().Take()
	look(full, full+1000)
	require.NoError(t, tracer.Close())
	require.EqualValues(t, 1000, tracer.Stats().Recorded+tracer.Stats().Dropped)
	db.TraceLookups(nil)
	require.Equal(t, db.watch.Sampler().Most(), db.watch.Threshold.Load())
	after := db.watch.Sampler().Take()
	require.EqualValues(t, 1000, after.Total-before.Total)
	require.Less(t, len(after.Lookups)-len(before.Lookups), 500)
	require.NoError(t, db.Close())
}

func TestWithoutASampleNobodyIsAsked(t *testing.T) {
	db, err := Open("", &Options{InMemory: true})
	require.NoError(t, err)
	require.Zero(t, db.watch.Threshold.Load())
	require.NoError(t, db.Close())
	for _, size := range []int64{-1, 1, 1 << 40} {
		_, err := Open("", &Options{InMemory: true, LookupSample: size})
		require.ErrorIs(t, err, ErrInvalidOptions)
		require.ErrorContains(t, err, "LookupSample")
	}
}

// A store writes nothing of its sample.
func TestNoFileHasTheSample(t *testing.T) {
	dir := t.TempDir()
	db, err := Open(dir, &Options{LookupSample: 64 << 10})
	require.NoError(t, err)
	require.NoError(t, db.Set([]byte("there"), []byte("value"), nil))
	for range 100 {
		_, err := db.Has([]byte("nobody-has-this"))
		require.NoError(t, err)
	}
	require.NoError(t, db.Compact(t.Context(), nil, nil))
	require.NoError(t, db.Close())
	files := readDir(t, dir)
	require.NotEmpty(t, files)
	for name, data := range files {
		require.NotContains(t, data, "nobody-has-this", name)
	}
}
