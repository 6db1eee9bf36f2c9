package sstable

import (
	"bytes"
	"encoding/binary"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/filterpolicy"
	"github.com/siftkv/siftkv/internal/base"
	"github.com/siftkv/siftkv/internal/exactranges"
	"github.com/siftkv/siftkv/internal/scale"
)

// ranged writes keys to a file with an exact range filter.
func ranged(tb testing.TB, o WriterOptions, keys ...string) []byte {
	tb.Helper()
	o.RangeFilter = exactranges.Policy{}
	return forge(tb, o, func(w *Writer) {
		for _, k := range keys {
			require.NoError(tb, w.set([]byte(k), []byte("value of "+k)))
		}
	})
}

// withExact is what reads such files.
var withExact = &ReaderOptions{RangeFilter: exactranges.Policy{}}

func TestRangeFiltersAnswerForAllVersionsAndTombstones(t *testing.T) {
	for seed := range uint64(20) {
		rng := rand.New(rand.NewPCG(seed, 5))
		vs := randomVersions(rng, 40)
		o := randomOptions(rng)
		o.RangeFilter = exactranges.Policy{}
		data, info := writeFile(t, o, vs)
		r := openBytes(t, data, withExact)
		require.True(t, r.HasRangeFilter())
		require.NoError(t, r.RangeFilterError())
		require.NoError(t, r.Verify())
		require.Equal(t, exactranges.Name, info.RangeFilterFamily)
		bound := func() []byte {
			switch k := vs[rng.IntN(len(vs))].key.User; rng.IntN(5) {
			case 0:
				return nil
			case 1:
				return append(bytes.Clone(k), byte(rng.Uint32()))
			case 2:
				return k[:rng.IntN(len(k)+1)]
			default:
				return k
			}
		}
		for range 500 {
			lo, hi := bound(), bound()
			want := slices.ContainsFunc(vs, func(v version) bool {
				return (lo == nil || bytes.Compare(v.key.User, lo) >= 0) &&
					(hi == nil || bytes.Compare(v.key.User, hi) < 0)
			})
			require.Equal(t, want, r.MayContainRange(lo, hi), "[%q, %q)", lo, hi)
		}
	}
}

// The first and the last key of a file decide without its filter where they can.
func TestRangeFiltersAreNotAskedInVain(t *testing.T) {
	r := openBytes(t, ranged(t, WriterOptions{}, "b", "d", "f"), withExact)
	for _, c := range []struct {
		lo, hi     string
		may, asked bool
	}{
		{"a", "b", false, false}, {"a", "c", true, false}, {"b", "c", true, false}, {"c", "d", false, true},
		{"c", "e", true, true}, {"e", "f", false, true}, {"e", "g", true, false}, {"f", "g", true, false},
		{"g", "h", false, false}, {"c", "c", false, false}, {"d", "c", false, false}, {"", "", true, false},
		{"c", "", true, false}, {"", "a", false, false}, {"g", "", false, false},
	} {
		bound := func(s string) []byte {
			if s == "" {
				return nil
			}
			return []byte(s)
		}
		before := exactranges.Asked.Load()
		require.Equal(t, c.may, r.MayContainRange(bound(c.lo), bound(c.hi)), "[%s, %s)", c.lo, c.hi)
		require.Equal(t, c.asked, exactranges.Asked.Load() > before, "[%s, %s)", c.lo, c.hi)
	}
	empty := openBytes(t, ranged(t, WriterOptions{}), withExact)
	require.False(t, empty.MayContainRange(nil, nil))
	require.NoError(t, empty.Verify())
}

// withoutTags returns the file as one that has other properties in place of those of range filters, which
// nobody knows.
func withoutTags(t *testing.T, data []byte) []byte {
	t.Helper()
	data = bytes.Clone(data)
	f, err := decodeFooter(data[len(data)-footerSize:], int64(len(data)))
	require.NoError(t, err)
	h := handle{f.propsOffset, uint64(f.propsLength)}
	b, err := h.cut(data, 0, f.tableID)
	require.NoError(t, err)
	for d := (base.Decoder{Rest: b}); len(d.Rest) > 0; {
		first := &d.Rest[0]
		tag, _ := d.Uvarint(), d.Bytes()
		require.False(t, d.Bad)
		if tag >= tagRangeFilterBytes && tag <= tagRangeFilterLength {
			require.Less(t, tag+50, uint64(128), "one byte, as before")
			*first = byte(tag + 50)
		}
	}
	stored := data[h.offset : h.offset+h.length] // its trailer has room behind it
	appendTrailer(stored, f.tableID, f.propsOffset, stored, NoCompression)
	return data
}

// A reader that knows no range filters passes over their tags and their block.
// A file of another writer may lack the keys that bound it, and is not known to end anywhere.
func TestFilesWithoutBoundsMayHaveAnyRange(t *testing.T) {
	for _, forget := range []func(*Properties){
		func(p *Properties) { p.Smallest = nil },
		func(p *Properties) { p.Largest = nil },
	} {
		r := openBytes(t, ranged(t, WriterOptions{}, "b", "d"), withExact)
		forget(r.props)
		for _, lo := range [][]byte{nil, []byte("a"), []byte("b"), []byte("c")} {
			for _, hi := range [][]byte{nil, []byte("c"), []byte("e")} {
				require.True(t, r.MayContainRange(lo, hi), "[%q, %q)", lo, hi)
			}
		}
	}
}

func TestReadersThatKnowNoRangeFiltersReadTheFile(t *testing.T) {
	keys := []string{"a", "b", "c"}
	for _, spec := range []string{"none", "blocked:10"} {
		data := ranged(t, WriterOptions{Filter: mustParse(spec)}, keys...)
		r := openBytes(t, withoutTags(t, data), nil)
		require.False(t, r.HasRangeFilter())
		require.NoError(t, r.RangeFilterError())
		require.NoError(t, r.FilterError())
		require.Equal(t, spec != "none", r.HasFilter())
		require.NoError(t, r.Verify())
		require.Zero(t, r.Properties().RangeFilterBytes)
		for _, k := range keys {
			value, err := r.get([]byte(k))
			require.NoError(t, err)
			require.Equal(t, "value of "+k, string(value))
		}
		s, err := SalvageFile(bytes.NewReader(data), int64(len(data)), nil,
			func(base.InternalKey, []byte) error { return nil })
		require.NoError(t, err)
		require.Empty(t, s.Tail)
		require.EqualValues(t, len(keys), s.Entries)
	}
}

// A family that is not known, or damage, costs what the filter would have spared, and nothing else.
func TestUnusableRangeFiltersSayMaybe(t *testing.T) {
	data := ranged(t, WriterOptions{Filter: mustParse("bloom:10")}, "a", "m", "z")
	unknown := openBytes(t, data, nil)
	require.ErrorIs(t, unknown.RangeFilterError(), filterpolicy.ErrUnknownFamily)
	require.NoError(t, unknown.Verify(), "it cannot tell")
	damaged := bytes.Clone(data)
	damaged[unknown.props.rangeFilter.offset+3] ^= 1
	r := openBytes(t, damaged, withExact)
	require.ErrorIs(t, r.RangeFilterError(), ErrCorruption)
	require.NoError(t, r.FilterError())
	require.True(t, r.HasFilter(), "that of lookups is whole")
	require.ErrorContains(t, r.Verify(), "range filter")
	for _, r := range []*Reader{unknown, r} {
		require.False(t, r.HasRangeFilter())
		require.True(t, r.MayContainRange([]byte("b"), []byte("c")))
		require.False(t, r.MayContainRange([]byte("zz"), nil))
		require.Zero(t, r.SkippedFilters())
	}
	s, err := SalvageFile(bytes.NewReader(damaged), int64(len(damaged)), nil,
		func(base.InternalKey, []byte) error { return nil })
	require.NoError(t, err)
	require.EqualValues(t, 3, s.Entries)
	require.Len(t, s.Tail, 1)
	require.ErrorContains(t, s.Tail[0], "range filter")
}

// A range filter that denies what is there hides keys from scans: Verify finds out.
func TestVerifyAsksRangeFilters(t *testing.T) {
	for _, c := range []struct {
		what   string
		change func(w *Writer)
	}{
		{"the range filter denies", func(w *Writer) {
			w.ranges = w.o.RangeFilter.NewRangeBuilder()
			w.ranges.AddKey([]byte("other"))
		}},
		{"range filter keys is", func(w *Writer) { w.props.RangeFilterKeys++ }},
	} {
		file := forge(t, WriterOptions{RangeFilter: exactranges.Policy{}}, func(w *Writer) {
			require.NoError(t, w.set([]byte("key"), nil))
			c.change(w)
		})
		for _, o := range []ReaderOptions{{}, {SkipFilter: true}} {
			o.RangeFilter = withExact.RangeFilter
			require.ErrorContains(t, openBytes(t, file, &o).Verify(), c.what)
		}
	}
}

// Where there is no room for both filters, that of lookups comes first; what is left out can come later.
func TestFiltersAreTakenInAsThereIsRoom(t *testing.T) {
	data := ranged(t, WriterOptions{Filter: mustParse("bloom:10")}, "a", "m", "z")
	p := openBytes(t, data, withExact).Properties()
	point, ranges := int64(p.FilterBytes), int64(p.RangeFilterBytes)
	for _, c := range []struct{ room, skipped int64 }{
		{point + ranges, 0}, {point + ranges - 1, ranges}, {point, ranges}, {point - 1, point + ranges},
	} {
		o := *withExact
		o.Room = func(n int64) bool { return n <= c.room }
		r := openBytes(t, data, &o)
		require.Equal(t, c.skipped, r.SkippedFilters())
		pinned, _ := r.PinnedBytes()
		require.Equal(t, point+ranges-c.skipped, pinned)
		with, err := r.WithFilters()
		require.NoError(t, err)
		require.Zero(t, with.SkippedFilters())
		require.True(t, with.HasFilter())
		require.False(t, with.MayContainRange([]byte("b"), []byte("c")))
		without := with.WithoutFilters()
		require.Equal(t, point+ranges, without.SkippedFilters())
		require.True(t, without.MayContainRange([]byte("b"), []byte("c")))
	}
}

// A builder may decline: the file then has no range filter, and says under which policy.
type declining struct{ exactranges.Policy }

func (declining) NewRangeBuilder() filterpolicy.RangeBuilder { return decliner{} }

type decliner struct{}

func (decliner) AddKey([]byte)                    {}
func (decliner) Finish(dst []byte) ([]byte, bool) { return dst, false }

func TestRangeFiltersMayBeDeclined(t *testing.T) {
	file := forge(t, WriterOptions{RangeFilter: declining{}}, func(w *Writer) {
		require.NoError(t, w.set([]byte("key"), nil))
	})
	r := openBytes(t, file, withExact)
	require.False(t, r.HasRangeFilter())
	require.NoError(t, r.Verify())
	p := r.Properties()
	require.Equal(t, exactranges.Name, p.RangeFilterPolicy)
	require.Empty(t, p.RangeFilterFamily)
	require.Zero(t, p.RangeFilterKeys+p.RangeFilterBytes)
}

func TestMayContainRangeAllocatesNothing(t *testing.T) {
	r := openBytes(t, ranged(t, WriterOptions{}, "a", "m", "z"), withExact)
	lo, hi := []byte("b"), []byte("c")
	require.Zero(t, testing.AllocsPerRun(100, func() {
		if r.MayContainRange(lo, hi) {
			t.Error("it is exact")
		}
	}))
}

// An iterator within bounds gives all that is within them, moved anywhere, and reads no block that the
// index knows to be outside.
func TestIteratorsWithinBounds(t *testing.T) {
	for seed := range uint64(scale.Count(16, 60)) {
		rng := rand.New(rand.NewPCG(seed, 8))
		vs := runVersions(rng, 200)
		data, _ := writeFile(t, &WriterOptions{BlockSize: 512, IndexPartition: []int{64, 1 << 20}[seed%2],
			Filter: mustParse("none")}, vs)
		r := openBytes(t, data, nil)
		var it Iter
		for range 20 {
			bound := func() []byte {
				if rng.IntN(8) == 0 {
					return nil
				}
				k := bytes.Clone(vs[rng.IntN(len(vs))].key.User)
				return k[:len(k)-rng.IntN(2)]
			}
			o := Bounds{bound(), bound()}
			it.Init(r, IterOptions{Bounds: &o})
			moveWithin(t, rng, &it, o, vs)
		}
	}
}

// moveWithin moves an iterator with bounds as chance has it: whatever is within them, it finds; what is
// outside it may leave out.
func moveWithin(t *testing.T, rng *rand.Rand, it *Iter, o Bounds, vs []version) {
	at := -1
	moved := func(ok bool) bool {
		require.NoError(t, it.Error())
		require.Equal(t, ok, it.Valid())
		within := at >= 0 && at < len(vs) && (o.Lower == nil || bytes.Compare(vs[at].key.User, o.Lower) >= 0) &&
			(o.Upper == nil || bytes.Compare(vs[at].key.User, o.Upper) < 0)
		require.True(t, ok || !within, "[%q, %q) lacks %d", o.Lower, o.Upper, at)
		if ok {
			require.Zero(t, base.Compare(vs[at].key, it.Key()), "want %s, got %s", vs[at].key, it.Key())
		}
		return ok
	}
	clamp := func(k []byte) base.InternalKey {
		if o.Lower != nil && bytes.Compare(k, o.Lower) < 0 {
			k = o.Lower
		}
		if o.Upper != nil && bytes.Compare(k, o.Upper) > 0 {
			k = o.Upper
		}
		return base.SearchKey(k, base.MaxSeqNum)
	}
	for range 20 {
		k := clamp(vs[rng.IntN(len(vs))].key.User)
		at = slices.IndexFunc(vs, func(v version) bool { return base.Compare(v.key, k) >= 0 })
		if at < 0 {
			at = len(vs)
		}
		ok := false
		if rng.IntN(2) == 0 {
			ok = moved(it.SeekGE(k))
		} else {
			at--
			ok = moved(it.SeekLT(k))
		}
		for ok && rng.IntN(30) > 0 {
			if rng.IntN(3) > 0 {
				at++
				ok = moved(it.Next())
			} else {
				at--
				ok = moved(it.Prev())
			}
		}
	}
}

// A scan that ends where a block does reads no block more, forward and backward, whether the index is cut or
// not.
func TestScansStopAtTheirBlocks(t *testing.T) {
	var vs []version
	for i := range 400 {
		vs = append(vs, version{base.MakeKey(binary.BigEndian.AppendUint32(nil, uint32(i)), 1, base.KindSet),
			make([]byte, 90)})
	}
	for _, partition := range []int{64, 1 << 20} {
		data, info := writeFile(t, &WriterOptions{BlockSize: 1000, IndexPartition: partition,
			Compression: NoCompression, Filter: mustParse("none")}, vs)
		r := openBytes(t, data, nil)
		blocks := int(info.DataBlocks)
		require.Greater(t, blocks, 30)
		var separators [][]byte
		for n := range blocks {
			s, err := r.appendSeparator(nil, n, true, nil, new(Probe))
			require.NoError(t, err)
			separators = append(separators, s)
		}
		for n := 3; n+3 < blocks; n++ {
			o := Bounds{append(bytes.Clone(separators[n-1]), 0), separators[n]}
			read := func(o Bounds, move func(it *Iter) bool, step func(it *Iter) bool) int {
				it := r.NewIter(IterOptions{Bounds: &o})
				for ok := move(it); ok; ok = step(it) {
				}
				require.NoError(t, it.Error())
				return it.Probe.BlocksFromCache + it.Probe.BlocksFromDisk
			}
			seekGE := func(it *Iter) bool { return it.SeekGE(base.SearchKey(o.Lower, base.MaxSeqNum)) }
			seekLT := func(it *Iter) bool { return it.SeekLT(base.SearchKey(o.Upper, base.MaxSeqNum)) }
			require.Equal(t, 1, read(o, seekGE, (*Iter).Next), "block %d of %d", n, blocks)
			require.Equal(t, 1, read(o, seekLT, (*Iter).Prev), "block %d of %d", n, blocks)
			require.Equal(t, blocks-n, read(Bounds{Lower: o.Lower}, seekGE, (*Iter).Next))
			require.Equal(t, n+1, read(Bounds{Upper: o.Upper}, seekLT, (*Iter).Prev))
		}
	}
}
