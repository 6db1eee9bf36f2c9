package kv

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	trace "github.com/siftkv/siftkv/internal/lookuptrace"
	"github.com/siftkv/siftkv/kv/lookuptrace"
)

// traced returns what is in a trace, a word per lookup: the key, + or - for there or
// not, and ? if the value was not asked for.
func traced(t *testing.T, data []byte) []string {
	t.Helper()
	r, err := trace.NewReader(bytes.NewReader(data), "trace")
	require.NoError(t, err)
	words := []string{}
	for {
		l, err := r.Next()
		if errors.Is(err, io.EOF) {
			return words
		}
		require.NoError(t, err)
		word := string(l.Key) + map[bool]string{true: "+", false: "-"}[l.Found]
		if !l.Value {
			word += "?"
		}
		words = append(words, word)
	}
}

func TestLookupsAreTraced(t *testing.T) {
	dir := t.TempDir()
	db, err := Open(dir, nil)
	require.NoError(t, err)
	require.NoError(t, db.Set([]byte("a"), []byte("1"), nil))
	require.NoError(t, db.Flush(t.Context()))
	var out bytes.Buffer
	tracer, err := lookuptrace.New(&out, &lookuptrace.Options{Keys: true})
	require.NoError(t, err)

	look := func(r Reader, key string) {
		_, err := r.Get([]byte(key))
		ok, hasErr := r.Has([]byte(key))
		require.NoError(t, hasErr)
		require.Equal(t, ok, err == nil)
	}
	look(db, "before")
	db.TraceLookups(tracer)
	look(db, "a")
	look(db, "b")
	s := db.NewSnapshot()
	require.NoError(t, db.Delete([]byte("a"), nil))
	look(s, "a")
	require.NoError(t, s.Close())
	require.NoError(t, db.View(func(tx *Tx) error {
		look(tx, "a")
		return nil
	}))
	values, err := db.MultiGet([][]byte{[]byte("y"), []byte("x"), []byte("y")})
	require.NoError(t, err)
	require.Equal(t, [][]byte{nil, nil, nil}, values)
	db.TraceLookups(nil)
	look(db, "after")

	follower, err := OpenReadOnly(dir, nil)
	require.NoError(t, err)
	follower.TraceLookups(tracer)
	s = follower.NewSnapshot()
	look(s, "c")
	require.NoError(t, s.Close())
	require.NoError(t, follower.Close())
	_, err = follower.Get([]byte("closed"))
	require.ErrorIs(t, err, ErrClosed)
	require.NoError(t, db.Close())

	require.NoError(t, tracer.Close())
	require.ErrorIs(t, tracer.Close(), ErrClosed)
	require.ElementsMatch(t, []string{"a+", "a+?", "b-", "b-?", "a+", "a+?", "a-", "a-?", "c-", "c-?", "y-", "x-",
		"y-"}, traced(t, out.Bytes()))
	require.Equal(t, lookuptrace.Stats{Recorded: 13, Bytes: uint64(out.Len())}, tracer.Stats())
}

func TestTracersComeAndGoWhileKeysAreLookedUp(t *testing.T) {
	db, err := Open("", &Options{InMemory: true})
	require.NoError(t, err)
	require.NoError(t, db.Set([]byte("key"), []byte("value"), nil))
	var readers sync.WaitGroup
	stop := make(chan struct{})
	for range 3 {
		readers.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
					if _, err := db.Get([]byte("key")); err != nil {
						panic(err)
					}
				}
			}
		})
	}
	for range 5 {
		var out bytes.Buffer
		tracer, err := lookuptrace.New(&out, &lookuptrace.Options{Keys: true})
		require.NoError(t, err)
		db.TraceLookups(tracer)
		for range 100 {
			_, err := db.Get([]byte("key"))
			require.NoError(t, err)
		}
		require.NoError(t, tracer.Close())
		require.GreaterOrEqual(t, tracer.Stats().Recorded+tracer.Stats().Dropped, uint64(100))
		require.EqualValues(t, tracer.Stats().Recorded, len(traced(t, out.Bytes())))
	}
	close(stop)
	readers.Wait()
	require.NoError(t, db.Close())
}

// BenchmarkTracedGet shows what a tracer adds to a lookup out of a memtable.
func BenchmarkTracedGet(b *testing.B) {
	for _, oneIn := range []int{0, 1, 100} {
		b.Run(fmt.Sprintf("one-in=%d", oneIn), func(b *testing.B) {
			db, err := Open("", &Options{InMemory: true})
			require.NoError(b, err)
			const keys = 1 << 12
			for i := range keys {
				require.NoError(b, db.Set(readBenchKey(nil, i), []byte("value"), NoSync))
			}
			if oneIn > 0 {
				tracer, err := lookuptrace.New(io.Discard, &lookuptrace.Options{OneIn: oneIn})
				require.NoError(b, err)
				db.TraceLookups(tracer)
				b.Cleanup(func() { require.NoError(b, tracer.Close()) })
			}
			var key, value []byte
			i := 0
			for b.Loop() {
				i++
				key = readBenchKey(key, i%keys)
				if value, err = db.AppendGet(value[:0], key); err != nil {
					b.Fatal(err)
				}
			}
			require.NoError(b, db.Close())
		})
	}
}
