package sstable

import (
	"bytes"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/siftkv/siftkv/filterpolicy"
	"github.com/siftkv/siftkv/internal/base"
	"github.com/siftkv/siftkv/internal/scale"
	"github.com/stretchr/testify/require"
)

// readAll asks a reader everything. Whatever the file's bytes are, it must come
// to an end without a panic.
func readAll(t *testing.T, r *Reader, keys ...[]byte) {
	t.Helper()
	for _, k := range keys {
		var p Probe
		_, _, _, _ = r.Find(nil, k, filterpolicy.Hash(k), base.MaxSeqNum, &p)
		_, _, _, _ = r.Find(nil, k, filterpolicy.Hash(k), 0, &p)
		_, _ = r.get(k)
		for _, other := range append(keys, nil) {
			r.MayContainRange(k, other)
			r.MayContainRange(other, k)
		}
	}
	for _, sequential := range []bool{false, true} {
		it := r.NewIter(IterOptions{Sequential: sequential})
		for ok := it.First(); ok; ok = it.Next() {
		}
		for ok := it.Last(); ok; ok = it.Prev() {
		}
		for _, k := range keys {
			if it.SeekGE(base.SearchKey(k, 5)) {
				it.Prev()
			}
			if it.SeekLT(base.SearchKey(k, base.MaxSeqNum)) {
				it.Next()
			}
		}
	}
	if err := r.Verify(); err != nil {
		require.ErrorIs(t, err, ErrCorruption)
	}
}

func FuzzReader(f *testing.F) {
	for _, v := range victims(f) {
		f.Add(v.data)
		f.Add(v.data[:len(v.data)/2])
		f.Add(v.data[len(v.data)/2:])
	}
	kinds, _ := writeFile(f, &kindsOptions, kindsContent())
	f.Add(kinds)
	separated, _ := writeFile(f, &separatedOptions, separatedContent())
	f.Add(separated)
	f.Add([]byte(nil))
	f.Fuzz(func(t *testing.T, data []byte) {
		r, err := NewReader(bytes.NewReader(data), int64(len(data)), withExact)
		if err != nil {
			require.True(t, isDamage(err), "%v", err)
			return
		}
		readAll(t, r, []byte("key/000010/"), data[:min(len(data), 10)])
	})
}

// withProperties returns a file with other properties, and right checksums.
func withProperties(file, props []byte) []byte {
	f, err := decodeFooter(file[len(file)-footerSize:], int64(len(file)))
	if err != nil {
		panic(err)
	}
	file = append(slices.Clone(file[:f.propsOffset]), props...)
	file = appendTrailer(file, f.tableID, f.propsOffset, props, NoCompression)
	grown := uint64(len(file)+footerSize) - f.fileSize
	f.propsLength, f.fileSize, f.tailLength = uint32(len(props)), f.fileSize+grown, f.tailLength+grown
	return f.append(file)
}

func propertiesOf(tb testing.TB, file []byte) []byte {
	tb.Helper()
	return openBytes(tb, file, nil).props.encode()
}

// numbers are the fields that are numbers, by tag.
func (p *Properties) numbers() map[uint64]*uint64 {
	numbers := map[uint64]*uint64{}
	for tag, field := range p.fields() {
		if n, ok := field.(*uint64); ok {
			numbers[tag] = n
		}
	}
	return numbers
}

// FuzzProperties decodes any bytes, and opens a good file that has them for
// properties: what they say must not lead a reader astray.
func FuzzProperties(f *testing.F) {
	files := victims(f)
	for i, v := range files {
		require.Equal(f, v.data, withProperties(v.data, propertiesOf(f, v.data)))
		f.Add(propertiesOf(f, v.data), uint8(i))
		f.Add(propertiesOf(f, v.data), uint8(i+1))
	}
	f.Add([]byte{99, 1, 7}, uint8(0)) // a tag of the future
	f.Add([]byte{tagEntries, 200}, uint8(0))
	f.Fuzz(func(t *testing.T, b []byte, which uint8) {
		p, err := decodeProperties(b)
		if err == nil {
			again, err := decodeProperties(p.encode())
			require.NoError(t, err)
			require.Equal(t, p, again)
		}
		file := withProperties(files[int(which)%len(files)].data, b)
		r, err := NewReader(bytes.NewReader(file), int64(len(file)), nil)
		if err != nil {
			require.True(t, isDamage(err), "%v", err)
			return
		}
		readAll(t, r, []byte("key/000010/"), p.Smallest, p.Largest)
	})
}

// TestHostilePropertiesAreRefused changes one number at a time of a file whose
// checksums are right.
func TestHostilePropertiesAreRefused(t *testing.T) {
	scale.OneGoroutine(t, "a decoder has a single goroutine")
	numbers := []uint64{0, 1, 2, 3, 7, 100, 1 << 20, 1<<31 - 1, 1 << 32, 1<<62 - 1, 1 << 63, 1<<64 - 1}
	for _, v := range victims(t) {
		for tag := range openBytes(t, v.data, nil).props.numbers() {
			for _, n := range numbers {
				p, err := decodeProperties(propertiesOf(t, v.data))
				require.NoError(t, err)
				*p.numbers()[tag] = n
				file := withProperties(v.data, p.encode())
				r, err := NewReader(bytes.NewReader(file), int64(len(file)), nil)
				if err != nil {
					require.True(t, isDamage(err), "%v", err)
					continue
				}
				readAll(t, r, v.vs[0].key.User, v.vs[len(v.vs)-1].key.User, []byte("zzz"))
			}
		}
	}
}

func FuzzFooter(f *testing.F) {
	for _, v := range victims(f) {
		f.Add(v.data[len(v.data)-footerSize:], int64(len(v.data)))
	}
	f.Add(footer{tailLength: footerSize}.append(nil), int64(footerSize))
	f.Add([]byte(magic), int64(8))
	f.Fuzz(func(t *testing.T, b []byte, size int64) {
		got, err := decodeFooter(b, size)
		if err != nil {
			return
		}
		require.Equal(t, b, got.append(nil), "there is one encoding")
		require.LessOrEqual(t, got.tailLength, uint64(size))
		require.LessOrEqual(t, got.propsOffset+uint64(got.propsLength), uint64(size))
	})
}

// FuzzBlock searches and walks any bytes that checkBlock accepts.
func FuzzBlock(f *testing.F) {
	rng := rand.New(rand.NewPCG(1, 2))
	for _, interval := range []int{1, 3, 16} {
		w := blockWriter{restartInterval: interval, hashIndex: interval > 1}
		var last []byte
		for _, v := range randomVersions(rng, 10) {
			w.add(v.key, v.value, filterpolicy.Hash(v.key.User), base.CommonPrefix(last, v.key.User),
				bytes.Equal(last, v.key.User))
			last = v.key.User
		}
		f.Add(slices.Clone(w.finish()), []byte("key/000030/"), uint64(300))
	}
	f.Add(make([]byte, blockFooterSize), []byte{}, uint64(0))
	f.Add([]byte{0, 1, 0, 0, 'k', 0, 0, 0, 0, 0, 1, 0, 1, 0, 0, 0}, []byte("k"), uint64(1))
	f.Fuzz(func(t *testing.T, data, key []byte, seq uint64) {
		if checkBlock(data) != nil {
			return
		}
		b := viewBlock(data)
		at := base.SeqNum(seq) & base.MaxSeqNum
		if got, err := b.find(key, filterpolicy.Hash(key), at); err == nil && got.ok {
			require.LessOrEqual(t, got.trailer.SeqNum(), at)
			require.LessOrEqual(t, len(got.value), len(data))
		}
		var i blockIter
		i.reset(b)
		n := 0
		for ok := i.first(); ok; ok = i.next() {
			n++
		}
		require.LessOrEqual(t, n, len(data))
		i.reset(b)
		for ok := i.last(); ok; ok = i.prev() {
			if n--; n < -len(data) {
				t.Fatal("it does not end")
			}
		}
		i.reset(b)
		if i.seekGE(base.SearchKey(key, at)) {
			require.GreaterOrEqual(t, base.Compare(i.key(), base.SearchKey(key, at)), 0)
			i.prev()
		}
		_, _ = decodeRangeDels(data, 0)
	})
}
