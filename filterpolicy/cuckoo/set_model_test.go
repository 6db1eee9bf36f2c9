package cuckoo

import (
	"errors"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/siftkv/siftkv/filterpolicy/internal/hash64"
	"github.com/siftkv/siftkv/internal/property"
)

// stored returns the bytes of a set.
func stored(t require.TestingT, s *Set) []byte {
	data, err := s.MarshalBinary()
	require.NoError(t, err)
	return data
}

// A twin is a set and what must be in it.
type twin struct {
	set  *Set
	keys map[uint64]int
}

func newTwin(t require.TestingT, n int, o Options) *twin {
	s, err := New(n, 0, &o)
	require.NoError(t, err)
	return &twin{s, map[uint64]int{}}
}

// add adds a key; a refusal must leave no trace.
func (w *twin) add(t require.TestingT, h uint64) error {
	before := stored(t, w.set)
	err := w.set.AddHash(h)
	w.added(t, h, err == nil, err, before)
	return err
}

func (w *twin) addNew(t require.TestingT, h uint64) {
	before, contained := stored(t, w.set), w.set.ContainsHash(h)
	if w.set.guard != nil {
		contained = w.keys[h] != 0
	}
	added, err := w.set.AddNewHash(h)
	require.Equal(t, !contained && err == nil, added)
	w.added(t, h, added, err, before)
}

func (w *twin) added(t require.TestingT, h uint64, added bool, err error, before []byte) {
	switch {
	case added:
		w.keys[h]++
	case errors.Is(err, ErrTooManyCopies):
		require.Equal(t, 2*int(w.set.options.slots), w.set.CountHash(h))
		require.Zero(t, w.set.options.grow)
	case err != nil:
		require.ErrorIs(t, err, ErrFull)
	}
	if !added {
		require.Equal(t, before, stored(t, w.set), "what was refused must leave no trace")
	}
}

// remove removes a key that is there.
func (w *twin) remove(t require.TestingT, h uint64) {
	require.True(t, w.set.RemoveHash(h))
	w.keys[h]--
	if w.keys[h] == 0 {
		delete(w.keys, h)
	}
}

// present returns the keys that are there, in order.
func (w *twin) present() []uint64 {
	list := make([]uint64, 0, len(w.keys))
	for h := range w.keys {
		list = append(list, h)
	}
	slices.Sort(list)
	return list
}

// check compares the set with its keys: each class of each table holds exactly the
// copies of the keys whose home it is, and nothing else is there.
func (w *twin) check(t require.TestingT) {
	type group struct {
		layer *layer
		class class
	}
	groups, keys := map[group]int{}, 0
	for h, n := range w.keys {
		l := w.set.home(h)
		require.NotNil(t, l, "false negative for %#x", h)
		require.True(t, w.set.ContainsHash(h))
		groups[group{l, l.placeOf(h).class()}] += n
		keys += n
	}
	require.Equal(t, keys, w.set.Len())
	for h := range w.keys {
		l := w.set.home(h)
		require.Equal(t, groups[group{l, l.placeOf(h).class()}], w.set.CountHash(h))
		if w.set.guard != nil {
			require.Equal(t, w.keys[h], int(w.set.guard[h]))
		}
	}
	perLayer := map[*layer]uint64{}
	for g := range groups {
		perLayer[g.layer]++
	}
	for i := range w.set.layers {
		l := &w.set.layers[i]
		require.NoError(t, l.check(), "used slots and spare bits")
		require.Equal(t, perLayer[l], l.groups)
		require.True(t, l.len() != 0 || i == len(w.set.layers)-1, "an older table is empty")
	}
}

// Every option, with tables so small and fingerprints so short that keys collide, tables
// fill and chains grow all the time.
func TestSetIsAMultiset(t *testing.T) {
	property.Check(t, func(t *rapid.T) {
		w := newTwin(t, rapid.IntRange(1, 40).Draw(t, "n"), Options{
			Slots: rapid.SampledFrom([]int{2, 4, 8}).Draw(t, "slots"),
			Bits:  rapid.SampledFrom([]int{4, 5, 8, 13, 31}).Draw(t, "bits"),
			Grow:  rapid.IntRange(0, 3).Draw(t, "grow"),
			Guard: rapid.Bool().Draw(t, "guard"),
		})
		keys := rapid.Uint64Range(0, rapid.SampledFrom([]uint64{5, 60, 1000}).Draw(t, "universe"))
		t.Repeat(map[string]func(*rapid.T){
			"add":    func(t *rapid.T) { _ = w.add(t, keys.Draw(t, "key")) },
			"addNew": func(t *rapid.T) { w.addNew(t, keys.Draw(t, "key")) },
			"addMany": func(t *rapid.T) {
				for i := range uint64(20) {
					_ = w.add(t, hash64.Mix(keys.Draw(t, "key")+i))
				}
			},
			"remove": func(t *rapid.T) {
				if len(w.keys) != 0 {
					w.remove(t, rapid.SampledFrom(w.present()).Draw(t, "key"))
				}
			},
			"removeMany": func(t *rapid.T) {
				for _, h := range w.present() {
					if hash64.Mix(h)%3 != 0 {
						w.remove(t, h)
					}
				}
			},
			"removeAbsent": func(t *rapid.T) {
				h := keys.Draw(t, "key")
				if w.keys[h] == 0 && (w.set.guard != nil || !w.set.ContainsHash(h)) {
					require.False(t, w.set.RemoveHash(h))
				}
			},
			"store": func(t *rapid.T) {
				data := stored(t, w.set)
				w.set = &Set{}
				require.NoError(t, w.set.UnmarshalBinary(data))
				require.Equal(t, data, stored(t, w.set))
			},
			"reset": func(t *rapid.T) {
				if rapid.IntRange(0, 20).Draw(t, "rarely") == 0 {
					w.set.Reset()
					clear(w.keys)
				}
			},
			"": func(t *rapid.T) { w.check(t) },
		})
	})
}

// operations returns bytes for FuzzSet, other ones for each seed.
func operations(seed uint64, n int) []byte {
	ops := make([]byte, n)
	for at := range ops {
		ops[at] = byte(hash64.Mix(seed<<32 | uint64(at)))
	}
	return ops
}

// FuzzSet reads operations from bytes: two bits say which, six bits the key.
func FuzzSet(f *testing.F) {
	for i := range uint64(8) {
		f.Add(byte(i), byte(i), operations(i, 200))
	}
	f.Add(byte(0), byte(1), slices.Repeat([]byte{7}, 20))
	f.Fuzz(func(t *testing.T, shape, grow byte, ops []byte) {
		w := newTwin(t, 1+int(shape>>4),
			Options{Slots: 2 << (shape % 3), Bits: minBits + int(shape%5), Grow: int(grow % 3), Guard: grow&4 != 0})
		for _, op := range ops[:min(len(ops), 400)] {
			switch h := uint64(op & 63); {
			case op>>6 < 2:
				_ = w.add(t, h)
			case op>>6 == 2:
				w.addNew(t, h)
			case w.keys[h] != 0:
				w.remove(t, h)
			}
		}
		w.check(t)
	})
}
