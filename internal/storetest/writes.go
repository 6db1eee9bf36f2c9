package storetest

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// A Store is a *kv.DB, without its package: kv's own tests use the functions of this file too. O is *kv.WriteOptions.
type Store[O any] interface {
	Set(key, value []byte, o O) error
	SetTTL(key, value []byte, ttl time.Duration, o O) error
	Merge(key, operand []byte, o O) error
	Delete(key []byte, o O) error
	DeleteRange(start, end []byte, o O) error
	Flush(ctx context.Context) error
	Compact(ctx context.Context, start, end []byte) error
}

// ChangeAtRandom writes, flushes and compacts, on a store and on its model.
func ChangeAtRandom[O any](t testing.TB, db Store[O], o O, want Model, rng *rand.Rand, round int) {
	t.Helper()
	for range 100 {
		k := fmt.Sprintf("key%03d", rng.IntN(300))
		if rng.IntN(5) == 0 {
			want.Delete(k)
			require.NoError(t, db.Delete([]byte(k), o))
			continue
		}
		want.Set(k, strconv.Itoa(round)+strings.Repeat("x", rng.IntN(500)))
		require.NoError(t, db.Set([]byte(k), []byte(want[k]), o))
	}
	if rng.IntN(3) == 0 {
		lo, hi := []byte(fmt.Sprintf("key%03d", rng.IntN(300))), []byte(fmt.Sprintf("key%03d", rng.IntN(300)))
		want.DeleteRange(lo, hi)
		require.NoError(t, db.DeleteRange(lo, hi, o))
	}
	switch rng.IntN(4) {
	case 0:
		require.NoError(t, db.Flush(t.Context()))
	case 1:
		require.NoError(t, db.Compact(t.Context(), nil, nil))
	}
}

// WriteSeparated writes values of 1 to 3,000 bytes, into tables of several levels, and returns what the store holds.
// Some values expire within the hour, and some have operands over them, joined by commas.
func WriteSeparated[O any](t testing.TB, db Store[O], o O) Model {
	t.Helper()
	m := Model{}
	for round := range 3 {
		for i := round; i < 60; i += 1 + round {
			k, v := fmt.Sprintf("key%03d", i), strings.Repeat(fmt.Sprint(round, i, " "), 1+i*i/5)
			switch {
			case i%7 == 0 && round > 0:
				require.NoError(t, db.Merge([]byte(k), []byte("more"), o))
				m[k] = strings.TrimPrefix(m[k]+",more", ",")
			case i%5 == 0:
				require.NoError(t, db.SetTTL([]byte(k), []byte(v), time.Hour, o))
				m[k] = v
			case i%11 == 0 && round == 1:
				require.NoError(t, db.Delete([]byte(k), o))
				delete(m, k)
			default:
				require.NoError(t, db.Set([]byte(k), []byte(v), o))
				m[k] = v
			}
		}
		require.NoError(t, db.Flush(t.Context()))
		if round == 0 {
			require.NoError(t, db.Compact(t.Context(), nil, nil))
		}
	}
	return m
}
