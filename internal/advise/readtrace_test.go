package advise

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"math"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/filterpolicy"
	"github.com/siftkv/siftkv/internal/base"
	"github.com/siftkv/siftkv/internal/lookuptrace"
)

// recorded returns a trace of what is recorded.
func recorded(t *testing.T, o lookuptrace.Options, record func(r *lookuptrace.Recorder)) []byte {
	t.Helper()
	var out bytes.Buffer
	r, err := lookuptrace.NewRecorder(&out, o)
	require.NoError(t, err)
	record(r)
	require.NoError(t, r.Close())
	require.Zero(t, r.Stats().Dropped)
	return out.Bytes()
}

// look records lookups, of keys whose names say whether they are there.
func look(r *lookuptrace.Recorder, keys ...string) {
	for _, key := range keys {
		r.Record([]byte(key), filterpolicy.Hash([]byte(key)), key[0] == '+', false)
	}
}

func read(ctx context.Context, data []byte, most int) (*Trace, error) {
	r, err := lookuptrace.NewReader(bytes.NewReader(data), "t")
	if err != nil {
		return nil, err
	}
	return ReadTrace(ctx, r, most)
}

func bound(key string) lookuptrace.Bound { return lookuptrace.Bound{Set: true, Key: []byte(key)} }

// Lookups of a key share its entry, which has its bytes and the hash of filters, or the keyed hash of the trace.
func TestATraceIsReadByKey(t *testing.T) {
	for _, keys := range []bool{true, false} {
		data := recorded(t, lookuptrace.Options{Keys: keys, OneIn: 3}, func(r *lookuptrace.Recorder) {
			for _, key := range []string{"a", "b", "", "a", "a"} {
				r.Record([]byte(key), 0, key == "a", true)
			}
		})
		tr, err := read(t.Context(), data, 100)
		require.NoError(t, err)
		require.Equal(t, 3, tr.OneIn)
		require.Zero(t, tr.Cut)
		require.Len(t, tr.Keys, 3)
		require.Len(t, tr.Lookups, 5)
		require.Positive(t, tr.Span)
		require.Equal(t, tr.Lookups[4].At-tr.Lookups[0].At, tr.Span)
		lookups := make([]int, 3)
		for i, l := range tr.Lookups {
			lookups[l.Key]++
			require.Equal(t, tr.Keys[l.Key].Found, l.Found)
			if keys {
				require.Equal(t, []int32{0, 1, 2, 0, 0}[i], l.Key)
			}
		}
		hashes := map[uint64]bool{}
		for i, k := range tr.Keys {
			hashes[k.Hash] = true
			require.Empty(t, k.Path)
			require.Equal(t, !keys, k.Pathless)
			require.Equal(t, k.Found, lookups[i] == 3)
			if !keys { // their order is that of the file, which hashes choose
				require.Nil(t, k.Bytes)
				continue
			}
			require.Equal(t, []byte([]string{"a", "b", ""}[i]), k.Bytes)
			require.Equal(t, filterpolicy.Hash(k.Bytes), k.Hash)
		}
		require.Len(t, hashes, 3)
	}
}

// Lookups are in the order of time, though those of a file are not, and the last one of a key says whether it is there.
func TestATraceIsInTheOrderOfTime(t *testing.T) {
	var asked []string
	for i := range 500 {
		asked = append(asked, fmt.Sprintf("%c%d", "+-"[i%2], i))
	}
	data := recorded(t, lookuptrace.Options{Keys: true}, func(r *lookuptrace.Recorder) { look(r, asked...) })
	r, err := lookuptrace.NewReader(bytes.NewReader(data), "t")
	require.NoError(t, err)
	var inFile []time.Duration
	for l, err := r.Next(); err == nil; l, err = r.Next() {
		inFile = append(inFile, l.At)
	}
	require.False(t, slices.IsSorted(inFile))
	tr, err := read(t.Context(), data, 1000)
	require.NoError(t, err)
	require.Len(t, tr.Lookups, len(asked))
	slices.Sort(inFile)
	for i, l := range tr.Lookups {
		require.Equal(t, inFile[i], l.At)
		require.Equal(t, tr.Keys[l.Key].Bytes[0] == '+', l.Found)
	}

	tr = &Trace{Scans: []Scan{{At: 5, Entries: 1}, {At: 2}, {At: 5, Entries: 2}}}
	tr.sort([]Key{{Hash: 7}, {Hash: 8}}, []Lookup{{Key: 0, At: 7}, {Key: 0, At: 3, Found: true}, {Key: 1, At: 3},
		{Key: 1, At: 7, Found: true}})
	require.Equal(t, []Lookup{{Key: 0, At: 3, Found: true}, {Key: 1, At: 3}, {Key: 2, At: 7},
		{Key: 3, At: 7, Found: true}}, tr.Lookups)
	require.Equal(t, []Key{{Hash: 7, Found: true, Changed: true, Both: true}, {Hash: 8, Changed: true, Both: true},
		{Hash: 7, Both: true}, {Hash: 8, Found: true, Both: true}}, tr.Keys)
	tr.CountChanged()
	require.Equal(t, 2, tr.Changed)
	require.Equal(t, []Scan{{At: 2}, {At: 5, Entries: 1}, {At: 5, Entries: 2}}, tr.Scans)
	require.EqualValues(t, 4, tr.Span)
}

// Of scans there are the bounds, as far as the trace has them.
func TestScansOfATraceAreRead(t *testing.T) {
	long := string(bytes.Repeat([]byte("x"), 20<<10))
	scans := []lookuptrace.Scan{
		{Start: bound("ka"), End: bound("kb"), Entries: 7, Ended: true},
		{Start: bound("kb"), End: bound("k"), Entries: math.MaxInt64, Backward: true},
		{Start: bound("")},
		{Ended: true},
		{End: bound(long)},
	}
	for _, keys := range []bool{true, false} {
		data := recorded(t, lookuptrace.Options{Keys: keys}, func(r *lookuptrace.Recorder) {
			for i := range scans {
				r.RecordScan(&scans[i], 0)
			}
		})
		tr, err := read(t.Context(), data, 100)
		require.NoError(t, err)
		require.Empty(t, tr.Lookups)
		want := []Scan{
			{Entries: 7, Bounded: true, Prefix: 1, Start: []byte("ka"), End: []byte("kb"), Ended: true},
			{Entries: math.MaxInt32, Bounded: true, Prefix: 1, Start: []byte("kb"), End: []byte("k"), Backward: true},
			{Start: []byte{}},
			{Ended: true},
			{End: []byte(long[:16<<10]), Shortened: true},
		}
		require.Len(t, tr.Scans, len(want))
		for i := range want {
			w, s := &want[i], tr.Scans[i]
			if !keys {
				w.Hashed = scans[i].Start.Set || scans[i].End.Set
				w.Start, w.End, w.Shortened = nil, nil, false
			}
			s.At = 0
			require.Equal(t, *w, s)
		}
	}
	lo, hi := (&Scan{Start: []byte("a"), End: []byte("b")}).Bounds()
	require.Equal(t, "a b", string(lo)+" "+string(hi))
	lo, hi = (&Scan{Start: []byte("b"), End: []byte("a"), Backward: true}).Bounds()
	require.Equal(t, "a b", string(lo)+" "+string(hi))
}

// What is beyond the limit is counted, and the limit is of lookups and of scans.
func TestALongTraceIsCut(t *testing.T) {
	data := recorded(t, lookuptrace.Options{Keys: true}, func(r *lookuptrace.Recorder) {
		for range 5 {
			r.RecordScan(&lookuptrace.Scan{}, 0)
		}
		for _, key := range []string{"a", "b", "c"} {
			r.Record([]byte(key), 0, true, false)
		}
	})
	for most, want := range [][4]int{{0, 0, 0, 8}, {1, 1, 1, 6}, {2, 2, 2, 4}, {3, 3, 3, 2}, {3, 3, 4, 1},
		{3, 3, 5, 0}} {
		tr, err := read(t.Context(), data, most)
		require.NoError(t, err)
		require.Equal(t, want, [4]int{len(tr.Keys), len(tr.Lookups), len(tr.Scans), int(tr.Cut)})
	}
}

// A trace without an end is taken as far as it goes, and a damaged one is refused.
func TestTracesThatAreNotWhole(t *testing.T) {
	data := recorded(t, lookuptrace.Options{Keys: true}, func(r *lookuptrace.Recorder) { look(r, "+a", "-b", "+c") })
	whole, err := read(t.Context(), data, 100)
	require.NoError(t, err)
	unfinished, err := read(t.Context(), data[:len(data)-1], 100)
	require.NoError(t, err)
	require.Equal(t, whole, unfinished)
	data[len(data)-1] ^= 1
	_, err = read(t.Context(), data, 100)
	require.ErrorIs(t, err, base.ErrCorruption)
	require.ErrorContains(t, err, "after 3 good records: ")
	r, err := lookuptrace.NewReader(io.MultiReader(bytes.NewReader(data[:len(data)-1]), failing{}), "t")
	require.NoError(t, err)
	_, err = ReadTrace(t.Context(), r, 100)
	require.ErrorIs(t, err, io.ErrClosedPipe)
}

type failing struct{}

func (failing) Read([]byte) (int, error) { return 0, io.ErrClosedPipe }

// ending is a context that ends when it was asked once.
type ending struct {
	context.Context
	asked int
}

func (c *ending) Err() error {
	if c.asked++; c.asked > 1 {
		return context.Canceled
	}
	return nil
}

// Reading ends with its context, also among scans, and where lookups are no more than counted.
func TestReadingATraceIsCancelled(t *testing.T) {
	for name, record := range map[string]func(r *lookuptrace.Recorder){
		"lookups": func(r *lookuptrace.Recorder) { look(r, "+a") },
		"scans":   func(r *lookuptrace.Recorder) { r.RecordScan(&lookuptrace.Scan{}, 0) },
	} {
		data := recorded(t, lookuptrace.Options{Keys: true}, func(r *lookuptrace.Recorder) {
			for range 5000 {
				record(r)
			}
		})
		for _, most := range []int{1, 10_000} {
			ctx := &ending{Context: t.Context()}
			_, err := read(ctx, data, most)
			require.ErrorIs(t, err, context.Canceled, name)
			require.Equal(t, 3, ctx.asked, name) // and once more for the error
		}
	}
}
