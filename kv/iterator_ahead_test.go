package kv

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/internal/harness"
	"github.com/siftkv/siftkv/internal/storetest"
	"github.com/siftkv/siftkv/internal/vfs"
)

// Operands over a value that expires after it was read on, and before it is come to, are shown without it.
func TestOperandsOverWhatExpiresAfterItWasReadOn(t *testing.T) {
	for _, backward := range []bool{false, true} {
		clock := &storetest.Clock{}
		db, err := Open("db", &Options{harness: harness.Harness{FS: vfs.NewMem()}, SeparateFrom: 10,
			Merger: Append(","), Clock: clock.Time})
		require.NoError(t, err)
		value := strings.Repeat("value", 10)
		want := storetest.Model{}
		for n := range 60 {
			k := fmt.Sprintf("key%03d", n)
			want[k] = value
			require.NoError(t, db.SetTTL([]byte(k), []byte(value), time.Hour, NoSync))
			if n%3 > 0 {
				require.NoError(t, db.Set([]byte(k), []byte(value), NoSync))
			}
		}
		require.NoError(t, db.Flush(t.Context()))
		for n := 0; n < 60; n += 2 {
			k := fmt.Sprintf("key%03d", n)
			want[k] += ",more"
			require.NoError(t, db.Merge([]byte(k), []byte("more"), NoSync))
		}
		it, err := db.NewIter(nil)
		require.NoError(t, err)
		start, move := it.First, it.Next
		if backward {
			start, move = it.Last, it.Prev
		}
		ok, came := start(), 1
		for ; came < 12; came++ {
			require.True(t, ok)
			require.Equal(t, want[string(it.Key())], string(it.Value()))
			ok = move()
		}
		clock.Advance(2 * time.Hour)
		for n := 0; n < 60; n += 3 {
			k := fmt.Sprintf("key%03d", n)
			if delete(want, k); n%2 == 0 {
				want[k] = "more"
			}
		}
		for ok = move(); ok; ok = move() {
			k := string(it.Key())
			require.Equal(t, want[k], string(it.Value()), "%s, backward %v", k, backward)
			came++
		}
		require.NoError(t, it.Error())
		require.NoError(t, it.Close())
		require.Greater(t, came, 40)
		require.NoError(t, db.Close())
	}
}
