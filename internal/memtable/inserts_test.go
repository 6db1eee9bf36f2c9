package memtable

import (
	"errors"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/siftkv/siftkv/filterpolicy"
	"github.com/siftkv/siftkv/internal/base"
	"github.com/siftkv/siftkv/internal/batchrepr"
	"github.com/siftkv/siftkv/internal/property"
)

// Points that are inserted together make the list that Add makes of them, versions of one key included.
func TestPointsInsertedTogetherAreAsAdded(t *testing.T) {
	kinds := []base.Kind{base.KindSet, base.KindDelete, base.KindMerge}
	property.Check(t, func(t *rapid.T) {
		const capacity = 1 << 20
		together, alone := New(capacity), New(capacity)
		together.seed = alone.seed
		seq, keys := base.SeqNum(0), map[string]bool{}
		for range rapid.IntRange(1, 5).Draw(t, "groups") {
			var readers []batchrepr.Reader
			for range rapid.IntRange(1, 4).Draw(t, "records") {
				w, first := &batchrepr.Writer{}, seq+1
				for range rapid.IntRange(1, 2*maxInserts).Draw(t, "entries") {
					user := []byte(rapid.StringOfN(rapid.RuneFrom([]rune("ab")), 0, 10, -1).Draw(t, "key"))
					kind, value := rapid.SampledFrom(kinds).Draw(t, "kind"), []byte(nil)
					if kind != base.KindDelete {
						value = user
					}
					w.Add(kind, user, value)
					seq++
					require.NoError(t, alone.Add(base.MakeKey(user, seq, kind), filterpolicy.Hash(user), value))
					keys[string(user)] = true
				}
				r, err := batchrepr.NewReader(w.Seal(first))
				require.NoError(t, err)
				readers = append(readers, r)
			}
			require.NoError(t, together.ApplyGroup(readers...))
			require.Equal(t, contents(t, alone), contents(t, together))
			for user := range keys {
				hash := filterpolicy.Hash([]byte(user))
				at := base.SeqNum(rapid.Uint64Range(1, uint64(seq)).Draw(t, "at"))
				for _, at := range []base.SeqNum{at, base.MaxSeqNum} {
					value, trailer, ok := together.Get([]byte(user), hash, at)
					wantValue, wantTrailer, want := alone.Get([]byte(user), hash, at)
					require.Equal(t, want, ok)
					require.Equal(t, wantTrailer, trailer)
					require.Equal(t, wantValue, value)
				}
			}
		}
		require.Equal(t, alone.Len(), together.Len())
		require.Equal(t, alone.Deletes(), together.Deletes())
		for level := range maxHeight {
			require.Equal(t, len(levelOf(alone, level)), len(levelOf(together, level)))
		}
	})
}

// The points before a duplicate are in the list.
func TestADuplicateAmongPointsInsertedTogether(t *testing.T) {
	m := New(1 << 16)
	var in inserts
	for _, i := range []int{3, 1, 3, 2} {
		require.NoError(t, in.add(m, numbered(i), uint64(i), nil))
	}
	require.ErrorIs(t, in.flush(m), ErrDuplicate)
	require.Len(t, contents(t, m), 2)
}

// Ascending points get all their levels, if they are in a gap between others or in several.
func TestAscendingPointsBetweenOthers(t *testing.T) {
	for _, others := range [][]int{{1}, {1, 500}, {1, 2, 500, 501, 502, 900}} {
		got, want := New(1<<20), New(1<<20)
		w := &batchrepr.Writer{}
		for i := range 1000 {
			if slices.Contains(others, i) || i == 999 {
				require.NoError(t, errors.Join(add(got, numbered(i), nil), add(want, numbered(i), nil)))
				continue
			}
			w.Add(base.KindSet, numbered(i).User, nil)
		}
		record := w.Seal(1)
		o, err := Sort(record)
		require.NoError(t, err)
		r, err := batchrepr.NewReader(record)
		require.NoError(t, err)
		require.NoError(t, errors.Join(got.applyInOrder(record, o), want.ApplyEntries(r)))
		require.Equal(t, contents(t, want), contents(t, got))
		requireLevelsInOrder(t, got)
		require.InDelta(t, 1000/4, len(levelOf(got, 1)), 100)
	}
}
