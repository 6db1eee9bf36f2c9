package sstable

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/siftkv/siftkv/filterpolicy"
	"github.com/siftkv/siftkv/internal/base"
	"github.com/siftkv/siftkv/internal/exactranges"
	"github.com/siftkv/siftkv/internal/rangedel"
	"github.com/siftkv/siftkv/internal/scale"
	"github.com/stretchr/testify/require"
)

// A victim is a small file, and what it holds.
type victim struct {
	name string
	data []byte
	info *FileInfo
	vs   []version
	ts   []rangedel.Tombstone
}

// victims returns files of every compression, index shape and filter family, with
// and without range tombstones.
func victims(tb testing.TB) []victim {
	tb.Helper()
	var all []victim
	for i, c := range []struct {
		filter      string
		compression Compression
		partition   int
		tombstones  bool
		prefixOnly  bool // of an extractor that the reader does not have
		ranges      filterpolicy.RangePolicy
	}{
		{"none", NoCompression, 0, true, false, exactranges.Policy{}},
		{"none", Zstd, 60, false, false, nil},
		{"bloom:10", Snappy, 60, true, false, mustParseRange("cut:6")},
		{"blocked:10", NoCompression, 60, false, false, nil},
		{"cuckoo:12", Zstd, 0, true, false, nil},
		{"cuckoo:8,2", Snappy, 0, false, false, nil},
		{"bloom:10", NoCompression, 0, true, true, mustParseRange("cut:0")},
	} {
		o := &WriterOptions{
			BlockSize: 200, RestartInterval: 4, Compression: c.compression,
			Filter: mustParse(c.filter), IndexPartition: c.partition, ID: uint64(100 + i),
		}
		if c.prefixOnly {
			o.Prefix, o.PrefixOnly = firstBytes{9}, true
		}
		o.RangeFilter = c.ranges
		v := victim{name: fmt.Sprintf("%+v", c), vs: randomVersions(rand.New(rand.NewPCG(uint64(i), 2)), 8)}
		if c.tombstones {
			v.ts = []rangedel.Tombstone{{Start: []byte("key/000020"), End: []byte("key/000050"), Seq: 600},
				{Start: []byte("x"), Seq: 3}}
		}
		v.data, v.info = writeFile(tb, o, v.vs, v.ts...)
		require.Equal(tb, c.partition > 0, v.info.IndexLeaves > 0)
		all = append(all, v)
	}
	return all
}

// firstBytes is an extractor of an application's own.
type firstBytes struct{ n int }

func (firstBytes) Name() string { return "of an application" }

func (f firstBytes) Prefix(key []byte) ([]byte, bool) {
	return key[:min(f.n, len(key))], len(key) >= f.n
}

func mustParse(spec string) filterpolicy.Policy {
	p, err := filterpolicy.Parse(spec)
	if err != nil {
		panic(err)
	}
	return p
}

func mustParseRange(spec string) filterpolicy.RangePolicy {
	p, err := filterpolicy.ParseRange(spec)
	if err != nil {
		panic(err)
	}
	return p
}

// isDamage reports whether an error says that the file is not to be trusted.
func isDamage(err error) bool {
	return errors.Is(err, ErrCorruption) || errors.Is(err, ErrNewerFormat)
}

// examine opens a file that may be damaged and reads all of it, in all ways.
// Whatever is no error must be right. It reports whether anything, and whether
// Verify, noticed the damage.
func (v *victim) examine(t *testing.T, data []byte, o *ReaderOptions) (noticed, verified bool) {
	t.Helper()
	opts := *cmp.Or(o, &ReaderOptions{})
	opts.RangeFilter = exactranges.Policy{}
	r, err := NewReader(bytes.NewReader(data), int64(len(data)), &opts)
	if err != nil {
		require.True(t, isDamage(err), "%s: %v", v.name, err)
		return true, true
	}
	defer func() { require.NoError(t, r.Close()) }()
	if err := r.Verify(); err != nil {
		require.ErrorIs(t, err, ErrCorruption)
		verified = true
	}
	noticed = v.finds(t, r)
	noticed = v.iterates(t, r) || noticed
	require.Equal(t, rangedel.NewSet(v.ts).Clip(nil, nil, nil), r.Tombstones().Clip(nil, nil, nil), v.name)
	if r.FilterError() != nil {
		require.False(t, noticed, "%s: a damaged filter must not cost an answer", v.name)
		require.False(t, r.HasFilter())
		noticed = true
	}
	if r.RangeFilterError() != nil {
		require.False(t, noticed, "%s: a damaged range filter must not cost an answer", v.name)
		require.False(t, r.HasRangeFilter())
		noticed = true
	}
	for _, want := range v.vs {
		require.True(t, r.MayContainRange(want.key.User, append(bytes.Clone(want.key.User), 0)), v.name)
	}
	return noticed, verified
}

func (v *victim) finds(t *testing.T, r *Reader) (noticed bool) {
	t.Helper()
	for _, want := range v.vs {
		var p Probe
		user := want.key.User
		value, trailer, ok, err := r.Find(nil, user, filterpolicy.Hash(user), want.key.SeqNum(), &p)
		if err != nil {
			require.ErrorIs(t, err, ErrCorruption, v.name)
			noticed = true
			continue
		}
		require.True(t, ok, "%s: %s is not found", v.name, want.key)
		require.Equal(t, want.key.Trailer, trailer, v.name)
		require.Equal(t, string(want.value), string(value), v.name)
		absent := append(bytes.Clone(user), 'x')
		_, _, ok, err = r.Find(nil, absent, filterpolicy.Hash(absent), base.MaxSeqNum, &p)
		require.False(t, ok, v.name)
		noticed = noticed || err != nil
	}
	return noticed
}

func (v *victim) iterates(t *testing.T, r *Reader) (noticed bool) {
	t.Helper()
	for _, sequential := range []bool{false, true} {
		it := r.NewIter(IterOptions{Sequential: sequential})
		n := 0
		for ok := it.First(); ok; ok = it.Next() {
			require.Equal(t, v.vs[n].key.String(), it.Key().String(), v.name)
			require.Equal(t, string(v.vs[n].value), string(it.Value()), v.name)
			n++
		}
		require.Equal(t, n < len(v.vs), it.Error() != nil, "%s: %d of %d entries", v.name, n, len(v.vs))
		noticed = noticed || it.Error() != nil
		n = len(v.vs)
		for ok := it.Last(); ok; ok = it.Prev() {
			n--
			require.Equal(t, v.vs[n].key.String(), it.Key().String(), v.name)
		}
		require.Equal(t, n > 0, it.Error() != nil, v.name)
	}
	return noticed
}

// Only long tests flip all bytes. Others flip every few: other ones in each file, and each bit.
func TestEveryFlippedByteIsNoticed(t *testing.T) {
	stride := scale.Stride(7, 1) | 1 // odd, so that bits take turns
	flips := 0
	for _, v := range victims(t) {
		noticed, verified := v.examine(t, v.data, nil)
		require.False(t, noticed || verified, "%s is whole", v.name)
		for at := flips % stride; at < len(v.data); at += stride {
			damaged := slices.Clone(v.data)
			damaged[at] ^= 1 << (at % 8)
			noticed, verified := v.examine(t, damaged, &ReaderOptions{TailSize: v.info.TailSize})
			require.True(t, verified, "%s: Verify passes over byte %d of %d", v.name, at, len(v.data))
			require.True(t, noticed, "%s: byte %d of %d", v.name, at, len(v.data))
			flips++
		}
	}
	t.Logf("%d flips", flips)
}

func TestEveryTruncationIsNoticed(t *testing.T) {
	for _, v := range victims(t) {
		for n := range v.data {
			for _, o := range []*ReaderOptions{nil, {TailSize: v.info.TailSize, ID: v.info.ID}} {
				_, err := NewReader(bytes.NewReader(v.data[:n]), int64(n), o)
				require.ErrorIs(t, err, ErrCorruption, "%s cut to %d bytes", v.name, n)
			}
		}
		_, err := NewReader(bytes.NewReader(append(slices.Clone(v.data), 0)), int64(len(v.data))+1, nil)
		require.ErrorIs(t, err, ErrCorruption)
	}
}

// A file that shrinks while it is open.
func TestAFileThatEndsInsideABlockIsNoticed(t *testing.T) {
	v := victims(t)[0]
	r, err := NewReader(&shrinking{data: v.data, left: int(v.info.DataBytes) / 2}, v.info.Size,
		&ReaderOptions{TailSize: v.info.TailSize})
	require.NoError(t, err)
	require.True(t, v.iterates(t, r))
	require.ErrorIs(t, r.Verify(), ErrCorruption)
}

// shrinking serves one read of a whole file, and then only its beginning.
type shrinking struct {
	data  []byte
	left  int
	reads int
}

func (s *shrinking) ReadAt(b []byte, off int64) (int, error) {
	if s.reads++; s.reads == 1 {
		return bytes.NewReader(s.data).ReadAt(b, off)
	}
	return bytes.NewReader(s.data[:s.left]).ReadAt(b, off)
}

// evenFile writes a file of blocks that all have the same length.
func evenFile(t *testing.T, id uint64, fill byte) ([]byte, *FileInfo, []version) {
	t.Helper()
	var vs []version
	for i := range 40 {
		vs = append(vs, version{base.MakeKey(fmt.Appendf(nil, "key%03d", i), 7, base.KindSet),
			bytes.Repeat([]byte{fill + byte(i)}, 80)})
	}
	data, info := writeFile(t, &WriterOptions{BlockSize: 400, Compression: NoCompression, ID: id}, vs)
	return data, info, vs
}

func TestMisplacedBlocksAreNoticed(t *testing.T) {
	data, info, vs := evenFile(t, 11, 'a')
	other, _, _ := evenFile(t, 12, 'b')
	require.Len(t, other, len(data))
	r := openBytes(t, data, nil)
	type span struct{ from, to uint64 }
	var blocks []span
	for i := range r.index.Len() {
		offset, length := r.index.Block(i)
		blocks = append(blocks, span{offset, offset + uint64(length)})
	}
	require.Greater(t, len(blocks), 4)
	v := victim{name: "misplaced", data: data, info: info, vs: vs}

	for i := 1; i < len(blocks)-1; i++ {
		a, b := blocks[i-1], blocks[i]
		require.Equal(t, a.to-a.from, b.to-b.from)
		swapped := slices.Clone(data)
		copy(swapped[a.from:], data[b.from:b.to])
		copy(swapped[b.from:], data[a.from:a.to])
		noticed, verified := v.examine(t, swapped, nil)
		require.True(t, noticed && verified, "blocks %d and %d are swapped", i-1, i)
	}
	for i, b := range blocks {
		foreign := slices.Clone(data)
		copy(foreign[b.from:b.to], other[b.from:b.to])
		noticed, verified := v.examine(t, foreign, nil)
		require.True(t, noticed && verified, "block %d is another file's", i)
	}
	_, err := NewReader(bytes.NewReader(other), int64(len(other)), &ReaderOptions{ID: 11})
	require.ErrorIs(t, err, ErrCorruption)
	require.ErrorContains(t, err, "another file")
}

func TestDamageIsNamed(t *testing.T) {
	data, info, _ := evenFile(t, 11, 'a')
	data[500] ^= 1
	r := openBytes(t, data, &ReaderOptions{Name: "dir/000007.sst", Hint: "siftkv verify dir", ID: info.ID})
	key := []byte("key005")
	var p Probe
	_, _, _, err := r.Find(nil, key, filterpolicy.Hash(key), base.MaxSeqNum, &p)
	var damage *base.CorruptionError
	require.ErrorAs(t, err, &damage)
	offset, _ := r.index.Block(r.index.Find(key))
	require.EqualValues(t, offset, damage.Offset)
	require.ErrorContains(t, err, fmt.Sprintf("dir/000007.sst at offset %d: data block", offset))
	require.ErrorContains(t, err, "run: siftkv verify dir")
}
