package sstable

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"sort"
	"testing"

	"github.com/siftkv/siftkv/filterpolicy"
	"github.com/siftkv/siftkv/internal/base"
	"github.com/siftkv/siftkv/internal/cache"
	"github.com/siftkv/siftkv/internal/exactranges"
	"github.com/siftkv/siftkv/internal/rangedel"
	"github.com/siftkv/siftkv/internal/scale"
	"github.com/stretchr/testify/require"
)

// A version is one entry of a test file.
type version struct {
	key   base.InternalKey
	value []byte
}

// randomVersions returns sorted entries: some keys have many versions, so that
// they cross restarts and blocks.
func randomVersions(rng *rand.Rand, keys int) []version {
	var vs []version
	for i := range keys {
		n := 1
		switch rng.IntN(20) {
		case 0:
			n = 1 + rng.IntN(100)
		case 1, 2, 3:
			n = 1 + rng.IntN(4)
		}
		user := fmt.Appendf(nil, "key/%06d/%s", i*10, "tail"[:rng.IntN(5)])
		seq := base.SeqNum(rng.IntN(1000) + 200)
		for range n {
			kind := base.KindSet
			var value []byte
			if rng.IntN(5) == 0 {
				kind = base.KindDelete
			} else {
				value = bytes.Repeat([]byte{byte(rng.IntN(256))}, rng.IntN(60))
			}
			vs = append(vs, version{base.MakeKey(user, seq, kind), value})
			seq -= base.SeqNum(1 + rng.IntN(2))
		}
	}
	return vs
}

func randomOptions(rng *rand.Rand) *WriterOptions {
	specs := []string{"none", "bloom:10", "blocked:10", "cuckoo:12"}
	p, err := filterpolicy.Parse(specs[rng.IntN(len(specs))])
	if err != nil {
		panic(err)
	}
	return &WriterOptions{
		RangeFilter:     []filterpolicy.RangePolicy{nil, exactranges.Policy{}, mustParseRange("cut:4")}[rng.IntN(3)],
		BlockSize:       64 + rng.IntN(2000),
		RestartInterval: 1 + rng.IntN(20),
		Compression:     Compression(rng.IntN(4)),
		IndexPartition:  []int{0, 200, 1000}[rng.IntN(3)],
		Filter:          p,
	}
}

func writeFile(tb testing.TB, o *WriterOptions, vs []version, ts ...rangedel.Tombstone) ([]byte, *FileInfo) {
	tb.Helper()
	var buf bytes.Buffer
	w := NewWriter(&buf, o)
	w.KnowBlobs(func(num uint64) uint64 { return 1000 + num })
	for _, v := range vs {
		require.NoError(tb, w.Add(v.key, v.value))
	}
	for _, tomb := range ts {
		require.NoError(tb, w.AddTombstone(tomb))
	}
	info, err := w.Finish()
	require.NoError(tb, err)
	require.EqualValues(tb, buf.Len(), info.Size)
	return buf.Bytes(), info
}

func openBytes(tb testing.TB, data []byte, o *ReaderOptions) *Reader {
	tb.Helper()
	r, err := NewReader(bytes.NewReader(data), int64(len(data)), o)
	require.NoError(tb, err)
	tb.Cleanup(func() { require.NoError(tb, r.Close()) })
	return r
}

func TestFindIterateAndVerifyAgainstASlice(t *testing.T) {
	for seed := range uint64(scale.Count(scale.Fewer(20, 5), 60)) {
		rng := rand.New(rand.NewPCG(seed, 1))
		vs := randomVersions(rng, rng.IntN(300))
		o := randomOptions(rng)
		data, info := writeFile(t, o, vs)
		r := openBytes(t, data, &ReaderOptions{TailSize: info.TailSize, ID: info.ID,
			CacheSize: 1 << uint(10+rng.IntN(10))})
		require.EqualValues(t, len(vs), r.Properties().Entries)
		require.NoError(t, r.Verify(), "seed %d %+v", seed, o)
		checkFinds(t, rng, r, vs)
		checkIter(t, rng, r, vs)
	}
}

func checkFinds(t *testing.T, rng *rand.Rand, r *Reader, vs []version) {
	t.Helper()
	for range 2000 {
		var user []byte
		if len(vs) > 0 {
			user = bytes.Clone(vs[rng.IntN(len(vs))].key.User)
		}
		if rng.IntN(3) == 0 {
			user = append(user, byte(rng.IntN(3)))
		}
		at := base.SeqNum(rng.IntN(1300))
		i := sort.Search(len(vs), func(i int) bool { return base.Compare(vs[i].key, base.SearchKey(user, at)) >= 0 })
		want := i < len(vs) && bytes.Equal(vs[i].key.User, user)
		var p Probe
		value, trailer, ok, err := r.Find(nil, user, filterpolicy.Hash(user), at, &p)
		require.NoError(t, err)
		require.Equal(t, want, ok, "%q#%d", user, at)
		if ok {
			require.Equal(t, vs[i].key.Trailer, trailer)
			require.Equal(t, string(vs[i].value), string(value))
			require.True(t, p.KeyPresent)
		}
		if p.KeyPresent {
			require.NotEqual(t, Negative, p.Filter)
		}
		require.Equal(t, p.Filter != Negative, p.IndexLookup)
	}
}

// checkIter drives an iterator at random and compares every step.
func checkIter(t *testing.T, rng *rand.Rand, r *Reader, vs []version) {
	t.Helper()
	it := r.NewIter(IterOptions{Sequential: rng.IntN(2) == 0})
	pos := -1
	for range 3000 {
		var ok bool
		switch op := rng.IntN(10); {
		case op == 0:
			ok, pos = it.First(), 0
		case op == 1:
			ok, pos = it.Last(), len(vs)-1
		case op < 4 && len(vs) > 0:
			k := vs[rng.IntN(len(vs))].key.Clone()
			if rng.IntN(2) == 0 {
				k.Trailer = base.MakeTrailer(base.SeqNum(rng.IntN(1300)), base.KindMax)
			}
			if rng.IntN(3) == 0 {
				k.User = append(k.User, byte(rng.IntN(256)))
			}
			at := sort.Search(len(vs), func(i int) bool { return base.Compare(vs[i].key, k) >= 0 })
			if op == 2 {
				ok, pos = it.SeekGE(k), at
			} else {
				ok, pos = it.SeekLT(k), at-1
			}
		case !it.Valid():
			continue
		case op < 7:
			ok, pos = it.Next(), pos+1
		default:
			ok, pos = it.Prev(), pos-1
		}
		require.NoError(t, it.Error())
		require.Equal(t, pos >= 0 && pos < len(vs), ok)
		require.Equal(t, ok, it.Valid())
		if ok {
			require.Equal(t, vs[pos].key.String(), it.Key().String())
			require.Equal(t, string(vs[pos].value), string(it.Value()))
		}
	}
}

var errAbsent = errors.New("no such key")

// get returns the value of a key's newest version.
func (r *Reader) get(key []byte) ([]byte, error) {
	var p Probe
	value, trailer, ok, err := r.Find(nil, key, filterpolicy.Hash(key), base.MaxSeqNum, &p)
	if err == nil && (!ok || trailer.Kind() == base.KindDelete ||
		r.tombstones.Cover(key, base.MaxSeqNum) > trailer.SeqNum()) {
		err = errAbsent
	}
	return value, err
}

// set adds a key at sequence number zero.
func (w *Writer) set(key, value []byte) error {
	return w.Add(base.MakeKey(key, 0, base.KindSet), value)
}

func TestFinishedAndClosedTakeNoMore(t *testing.T) {
	var buf bytes.Buffer
	w := NewWriter(&buf, nil)
	require.NoError(t, w.set([]byte("k"), []byte("value")))
	_, err := w.Finish()
	require.NoError(t, err)
	require.Error(t, w.set([]byte("m"), nil), "a finished writer takes no more")
	r := openBytes(t, buf.Bytes(), nil)
	_, err = r.get([]byte("k"))
	require.NoError(t, err)
	require.NoError(t, r.Close())
	_, err = r.get([]byte("k"))
	require.ErrorIs(t, err, ErrClosed)
	require.ErrorIs(t, r.Verify(), ErrClosed)
}

func TestRangeTombstonesRoundTrip(t *testing.T) {
	vs := []version{{base.MakeKey([]byte("d"), 5, base.KindSet), []byte("x")},
		{base.MakeKey([]byte("k"), 9, base.KindSet), []byte("y")}}
	ts := []rangedel.Tombstone{
		{Start: []byte("c"), End: []byte("f"), Seq: 7},
		{Start: []byte("e"), End: nil, Seq: 8},
		{Start: []byte("z"), End: []byte("a"), Seq: 100},
	}
	data, info := writeFile(t, nil, vs, ts...)
	require.EqualValues(t, 5, info.SmallestSeq)
	require.EqualValues(t, 9, info.LargestSeq)
	r := openBytes(t, data, nil)
	require.Equal(t, rangedel.NewSet(ts).Clip(nil, nil, nil), r.Tombstones().Clip(nil, nil, nil))
	require.NoError(t, r.Verify())
	_, err := r.get([]byte("d"))
	require.ErrorIs(t, err, errAbsent)
	v, err := r.get([]byte("k"))
	require.NoError(t, err)
	require.Equal(t, "y", string(v))

	only, _ := writeFile(t, nil, nil, ts...)
	r = openBytes(t, only, nil)
	require.NoError(t, r.Verify())
	require.False(t, r.NewIter(IterOptions{}).First())
	require.EqualValues(t, 8, r.Tombstones().Cover([]byte("x"), base.MaxSeqNum))
}

func TestKeysOutOfOrderAreRefused(t *testing.T) {
	for _, second := range []base.InternalKey{
		base.MakeKey([]byte("a"), 9, base.KindSet),
		base.MakeKey([]byte("b"), 5, base.KindSet),
		base.MakeKey([]byte("b"), 6, base.KindSet),
	} {
		w := NewWriter(&bytes.Buffer{}, nil)
		require.NoError(t, w.Add(base.MakeKey([]byte("b"), 5, base.KindSet), nil))
		require.ErrorIs(t, w.Add(second, nil), ErrOrder)
		_, err := w.Finish()
		require.ErrorIs(t, err, ErrOrder)
	}
}

func TestBadOptionsAreNamed(t *testing.T) {
	for text, o := range map[string]*WriterOptions{
		"BlockSize":       {BlockSize: 3},
		"RestartInterval": {RestartInterval: -1},
		"Compression":     {Compression: 77},
		"IndexPartition":  {IndexPartition: -5},
	} {
		_, err := NewWriter(&bytes.Buffer{}, o).Finish()
		require.ErrorContains(t, err, text)
	}
}

func TestWriteErrorsAreSticky(t *testing.T) {
	disk := errors.New("disk full")
	for limit := 0; limit < 600_000; limit += 150_001 {
		w := NewWriter(&limitedWriter{left: limit, err: disk}, &WriterOptions{Compression: NoCompression})
		for i := range 6000 {
			if w.set(fmt.Appendf(nil, "%08d", i), make([]byte, 100)) != nil {
				break
			}
		}
		_, err := w.Finish()
		require.ErrorIs(t, err, disk)
	}
}

type limitedWriter struct {
	left int
	err  error
}

func (w *limitedWriter) Write(b []byte) (int, error) {
	if len(b) > w.left {
		n := w.left
		w.left = 0
		return n, w.err
	}
	w.left -= len(b)
	return len(b), nil
}

func TestOneReadOpensAFile(t *testing.T) {
	data, info := writeFile(t, nil, randomVersions(rand.New(rand.NewPCG(1, 1)), 20_000))
	f := &countingReader{r: bytes.NewReader(data)}
	_, err := NewReader(f, info.Size, &ReaderOptions{TailSize: info.TailSize})
	require.NoError(t, err)
	require.Equal(t, 1, f.n)
}

type countingReader struct {
	r *bytes.Reader
	n int
}

func (c *countingReader) ReadAt(b []byte, off int64) (int, error) {
	c.n++
	return c.r.ReadAt(b, off)
}

func TestReadersShareACache(t *testing.T) {
	c := cache.New(1 << 20)
	vs := randomVersions(rand.New(rand.NewPCG(1, 1)), 500)
	data, _ := writeFile(t, nil, vs)
	a := openBytes(t, data, &ReaderOptions{Cache: c})
	b := openBytes(t, data, &ReaderOptions{Cache: c})
	for _, r := range []*Reader{a, b} {
		for range 2 {
			for _, v := range vs {
				var p Probe
				_, _, ok, err := r.Find(nil, v.key.User, filterpolicy.Hash(v.key.User), v.key.SeqNum(), &p)
				require.NoError(t, err)
				require.True(t, ok)
			}
		}
	}
	_, blocks := c.Used()
	require.EqualValues(t, 2*a.Properties().DataBlocks, blocks)
	require.NoError(t, b.Close())
	_, blocks = c.Used()
	require.EqualValues(t, a.Properties().DataBlocks, blocks)
}

// plainFile returns a file of n keys with values of 100 bytes.
func plainFile(t testing.TB, n int, o WriterOptions) []byte {
	var out bytes.Buffer
	w := NewWriter(&out, &o)
	value := bytes.Repeat([]byte("0123456789"), 10)
	for i := range n {
		require.NoError(t, w.set(fmt.Appendf(nil, "key-%012d", 2*i), value))
	}
	_, err := w.Finish()
	require.NoError(t, err)
	return out.Bytes()
}

// keyOf returns a key of plainFile.
func keyOf(i int) []byte { return fmt.Appendf(nil, "key-%012d", 2*i) }
