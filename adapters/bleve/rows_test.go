package siftbleve

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	store "github.com/blevesearch/upsidedown_store_api"
	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/kv"
)

// A list is a merge operator that puts operands behind each other. It combines two of them only if both begin with the
// same letter, and returns memory that it was given where it can: some callers do not like that.
type list struct{ name string }

func (l list) Name() string { return l.name }

func (list) FullMerge(_, existing []byte, operands [][]byte) ([]byte, bool) {
	if len(existing) == 0 && len(operands) == 1 {
		return operands[0], true
	}
	for _, op := range operands {
		if bytes.HasPrefix(op, []byte("bad")) {
			return nil, false
		}
		existing = append(existing, op...)
	}
	return existing, true
}

func (list) PartialMerge(_, left, right []byte) ([]byte, bool) {
	if len(left) == 0 || len(right) == 0 || left[0] != right[0] {
		return nil, false
	}
	return append(left, right...), true
}

// TestMergesModel runs random operations on a store and on a map, with flushes and compactions between them, and
// compares all that can be read.
func TestMergesModel(t *testing.T) {
	for seed := range uint64(8) {
		r := rand.New(rand.NewPCG(seed, 1))
		dir := t.TempDir()
		config := map[string]any{"path": dir, "nosync": true, "memtable_size": 64 << 10}
		s, err := New(list{"list"}, config)
		require.NoError(t, err)
		model := map[string][]byte{}
		piece := func() []byte { // begins like anything
			return append([]byte(nil), []string{"a", "ab", "b", "", "\xfe", "\xff", "\xffa", "\xfe\x01"}[r.IntN(8)]...)
		}
		for range 150 {
			write(t, s, func(b batchOf) {
				for range r.IntN(6) {
					key, v := string(rune('a'+r.IntN(4))), piece()
					switch r.IntN(5) {
					case 0:
						b.Set([]byte(key), v)
						model[key] = v
					case 1:
						b.Delete([]byte(key))
						delete(model, key)
					default:
						b.Merge([]byte(key), v)
						model[key] = append(slices.Clip(model[key]), v...)
						if model[key] == nil {
							model[key] = []byte{}
						}
					}
				}
			})
			db := s.(*Store).DB()
			switch r.IntN(12) {
			case 0:
				require.NoError(t, db.Flush(t.Context()))
			case 1:
				require.NoError(t, db.Compact(t.Context(), nil, nil))
			case 2:
				require.NoError(t, s.Close())
				s, err = New(list{"list"}, config)
				require.NoError(t, err)
			}
			requireModel(t, model, s)
		}
		require.NoError(t, s.Close())
	}
}

func requireModel(t *testing.T, model map[string][]byte, s store.KVStore) {
	t.Helper()
	reader := read(t, s)
	var want []string
	for _, key := range []string{"a", "b", "c", "d"} {
		value, there := model[key]
		if there {
			want = append(want, fmt.Sprintf("%s=%s", key, value))
		}
		got, err := reader.Get([]byte(key))
		require.NoError(t, err)
		many, err := reader.MultiGet([][]byte{[]byte(key)})
		require.NoError(t, err)
		require.Equal(t, got, many[0])
		require.Equal(t, there, got != nil)
		require.Equal(t, string(value), string(got))
	}
	require.Equal(t, want, entries(t, reader.RangeIterator(nil, nil)))
	require.NoError(t, reader.Close())
}

// TestAnOperatorThatFails loses nothing: the operands are there for one that does not.
func TestAnOperatorThatFails(t *testing.T) {
	s := open(t, list{"list"}, map[string]any{"in_memory": true})
	write(t, s, func(b batchOf) {
		b.Merge([]byte("k"), []byte("a"))
		b.Merge([]byte("k"), []byte("bad"))
		b.Merge([]byte("k"), []byte("a"))
		b.Set([]byte("l"), []byte("v"))
	})
	r := read(t, s)
	_, err := r.Get([]byte("k"))
	require.ErrorIs(t, err, errOperator)
	_, err = r.MultiGet([][]byte{[]byte("l"), []byte("k")})
	require.ErrorIs(t, err, errOperator)
	it := r.RangeIterator(nil, nil)
	require.True(t, it.Valid())
	key, value, valid := it.Current()
	require.True(t, key == nil && value == nil && !valid, "an entry without a value is none")
	require.ErrorIs(t, it.Close(), errOperator)
	require.NoError(t, r.Close())

	require.NoError(t, s.DB().Compact(t.Context(), nil, nil))
	r = read(t, s)
	_, err = r.Get([]byte("k"))
	require.ErrorIs(t, err, errOperator)
	require.Equal(t, "v", get(t, s, "l"))
	require.NoError(t, r.Close())

	write(t, s, func(b batchOf) { b.Set([]byte("k"), []byte("v")) })
	write(t, s, func(b batchOf) { b.Merge([]byte("k"), []byte("bad")) })
	r = read(t, s)
	_, err = r.Get([]byte("k"))
	require.ErrorIs(t, err, errOperator)
	require.ErrorIs(t, err, kv.ErrMergeFailed)
	require.NoError(t, r.Close())
}

// TestTheOperatorsNameStays refuses another operator for what this one has left.
func TestTheOperatorsNameStays(t *testing.T) {
	config := map[string]any{"path": t.TempDir()}
	s, err := New(list{"one"}, config)
	require.NoError(t, err)
	write(t, s, func(b batchOf) { b.Merge([]byte("k"), []byte("a")) })
	require.NoError(t, s.Close())

	_, err = New(list{"two"}, config)
	require.ErrorContains(t, err, "bleve.1.one")

	s, err = New(nil, config)
	require.NoError(t, err)
	r := read(t, s)
	_, err = r.Get([]byte("k"))
	require.ErrorIs(t, err, kv.ErrNoMerger)
	require.NoError(t, r.Close())
	require.NoError(t, s.Close())

	s = open(t, list{"one"}, config)
	require.Equal(t, "a", get(t, s, "k"))
}

// TestManyOperandsThatDoNotCombine takes time in proportion to their number: each is copied with those before it by
// the merger alone.
func TestManyOperandsThatDoNotCombine(t *testing.T) {
	const n = 20_000
	s := open(t, list{"list"}, map[string]any{"in_memory": true})
	write(t, s, func(b batchOf) {
		for i := range n {
			b.Merge([]byte("k"), []byte{byte('a' + i%2)})
		}
	})
	require.Equal(t, string(bytes.Repeat([]byte("ab"), n/2)), get(t, s, "k"))
	require.NoError(t, s.DB().Compact(t.Context(), nil, nil))
	require.Equal(t, string(bytes.Repeat([]byte("ab"), n/2)), get(t, s, "k"))
}

// FuzzRows holds damaged and hostile bytes against panics, and whole ones against themselves.
func FuzzRows(f *testing.F) {
	f.Add([]byte{}, []byte{operands})
	f.Add([]byte{operands, 1, 'a'}, []byte{operands, 1, 'a', 0})
	f.Add([]byte{escape, escape}, []byte{operands, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 1})
	r := rows{list{"list"}}
	f.Fuzz(func(t *testing.T, a, b []byte) {
		value := plain(appendValue(nil, a))
		if !bytes.Equal(a, value) {
			t.Fatalf("%q became %q", a, value)
		}
		ops, err := split(appendOperand(appendOperand(nil, a), b))
		if err != nil || len(ops) != 2 || !bytes.Equal(ops[0], a) || !bytes.Equal(ops[1], b) {
			t.Fatalf("%q, %q became %q, %v", a, b, ops, err)
		}
		_, _ = r.value(nil, b)
		merged, err := r.Merge(nil, bytes.Clone(a), b)
		if err == nil && areOperands(a) && !areOperands(merged) {
			t.Fatalf("operands %q and %q became a value, %q", a, b, merged)
		}
	})
}
