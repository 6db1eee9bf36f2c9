package sstable

import (
	"bytes"
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/filterpolicy"
	"github.com/siftkv/siftkv/internal/base"
)

// prefixed writes two keys with one prefix to a file whose filter holds prefixes, maybe only
// those, after change has had the writer.
func prefixed(tb testing.TB, p filterpolicy.Prefix, only bool, change func(w *Writer)) []byte {
	tb.Helper()
	return forge(tb, WriterOptions{Prefix: p, PrefixOnly: only, Filter: mustParse("bloom:10")}, func(w *Writer) {
		require.NoError(tb, w.set([]byte("user/0001/a"), nil))
		require.NoError(tb, w.set([]byte("user/0001/b"), nil))
		change(w)
	})
}

// otherFilter makes the file's filter one of other keys.
func otherFilter(w *Writer) {
	w.filter = w.o.Filter.NewBuilder()
	for i := range w.props.FilterKeys {
		w.filter.AddHash(i)
	}
}

// A filter of prefixes that denies what is there hides keys from scans. Verify asks it with
// the extractor that it was given, or that the file names if that is one of the package.
func TestVerifyAsksFiltersOfPrefixes(t *testing.T) {
	fixed, err := filterpolicy.ParsePrefix("fixed:9")
	require.NoError(t, err)
	for _, only := range []bool{false, true} {
		for _, c := range []struct {
			written, given filterpolicy.Prefix
			asked          bool
		}{
			{fixed, nil, true},
			{fixed, fixed, true},
			{firstBytes{9}, firstBytes{9}, true},
			{firstBytes{9}, nil, !only}, // for whole keys at least
			{firstBytes{9}, fixed, !only},
		} {
			o := &ReaderOptions{Prefix: c.given}
			require.NoError(t, openBytes(t, prefixed(t, c.written, only, func(*Writer) {}), o).Verify())
			err := openBytes(t, prefixed(t, c.written, only, otherFilter), o).Verify()
			if c.asked {
				require.ErrorIs(t, err, ErrCorruption)
				require.ErrorContains(t, err, "the filter denies")
			} else {
				require.NoError(t, err)
			}
		}
	}
}

// The number of keys is checked for filters with prefixes as well.
func TestVerifyCountsPrefixes(t *testing.T) {
	fixed, err := filterpolicy.ParsePrefix("fixed:9")
	require.NoError(t, err)
	for _, only := range []bool{false, true} {
		file := prefixed(t, fixed, only, func(w *Writer) { w.props.FilterKeys++ })
		require.ErrorContains(t, openBytes(t, file, nil).Verify(), "filter keys is")
	}
}

// A reader that leaves the filter on disk verifies it.
func TestVerifyAsksAFilterThatIsLeftOnDisk(t *testing.T) {
	file := forge(t, WriterOptions{Filter: mustParse("bloom:10")}, func(w *Writer) {
		require.NoError(t, w.set([]byte("key"), nil))
		otherFilter(w)
	})
	r := openBytes(t, file, &ReaderOptions{SkipFilter: true})
	require.False(t, r.HasFilter())
	require.ErrorContains(t, r.Verify(), "the filter denies")
}

// A filter that is damaged is not usable, whether it is read as the file is opened or later, and
// whatever the properties say of its place.
func TestDamagedFiltersAreNoticedWhenTheyAreReadLater(t *testing.T) {
	file := forge(t, WriterOptions{Filter: mustParse("bloom:10")}, func(w *Writer) {
		require.NoError(t, w.set([]byte("key"), nil))
	})
	later := func(file []byte, change func(*Properties)) *Reader {
		r := openBytes(t, file, &ReaderOptions{SkipFilter: true})
		change(r.props)
		with, err := r.WithFilters()
		require.NoError(t, err)
		return with
	}
	whole := later(file, func(*Properties) {})
	require.NoError(t, whole.FilterError())
	require.True(t, whole.HasFilter())
	h := whole.props.filter
	for i := range h.length + trailerSize {
		damaged := bytes.Clone(file)
		damaged[h.offset+i] ^= 0x10
		with := later(damaged, func(*Properties) {})
		require.ErrorIs(t, with.FilterError(), base.ErrCorruption)
		require.False(t, with.HasFilter())
	}
	for _, h := range []handle{{h.offset, 1 << 40}, {h.offset, math.MaxUint64 - 8}, {math.MaxUint64, h.length}} {
		with := later(file, func(p *Properties) { p.filter = h })
		require.ErrorIs(t, with.FilterError(), base.ErrCorruption)
	}
}

// Without the extractor a filter of prefixes is not asked, but its bytes are checked when
// the file is opened.
func TestDamagedFiltersOfPrefixesAreNoticedAtOpen(t *testing.T) {
	file := prefixed(t, firstBytes{9}, true, func(*Writer) {})
	r := openBytes(t, file, nil)
	require.NoError(t, r.FilterError())
	require.False(t, r.HasFilter())
	filter, _ := r.PinnedBytes()
	require.Zero(t, filter, "what is not asked is not kept")
	for i := range r.props.filter.length {
		damaged := bytes.Clone(file)
		damaged[r.props.filter.offset+i] ^= 0x10
		require.Error(t, openBytes(t, damaged, nil).FilterError())
	}
}
