package sstable

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/internal/base"
	"github.com/siftkv/siftkv/internal/scale"
)

// What blockEnds finds is what a comparison of the checksums of all pairs finds.
func TestBlockEndsAreWhereChecksumsAreRight(t *testing.T) {
	const id = 0xfeed_0123_4567_89ab
	rng := rand.New(rand.NewPCG(1, 1))
	var data []byte
	for n := range 40 {
		from := len(data)
		for range 1 + rng.IntN(30) {
			data = append(data, byte(rng.Uint32N(4)))
		}
		switch n % 4 {
		case 0: // in its place
			data = appendTrailer(data, id, uint64(from), data[from:], Compression(1+n%3))
		case 1: // ends where the block before could end as well
			at := from - rng.IntN(min(from, 20))
			data = appendTrailer(data, id, uint64(at), data[at:], Snappy)
		case 2: // of another file
			data = appendTrailer(data, 3, uint64(from), data[from:], NoCompression)
		}
	}
	ends := newBlockEnds(data, id)
	found := 0
	for pos := range data {
		for _, window := range []int{len(data), 25} {
			var want []int
			for trailer := pos + 1; trailer < min(pos+window, len(data)-trailerSize+1); trailer++ {
				_, c, err := splitTrailer(data[pos:trailer+trailerSize], id, uint64(pos))
				if err == nil && c >= NoCompression && c <= Zstd {
					want = append(want, trailer)
				}
			}
			var got []int
			if pos%2 == 0 || window == 25 { // beginnings may be left out
				for _, e := range ends.of(pos, window) {
					got = append(got, e.trailer)
				}
				require.Equal(t, want, got, "from %d, within %d", pos, window)
				found += len(got)
			}
		}
	}
	require.Greater(t, found, 20)
}

// valued is a file of n entries with the same value.
func valued(t *testing.T, n int, value []byte, o WriterOptions) (data []byte, info *FileInfo) {
	var buf bytes.Buffer
	o.ID, o.Filter = 9, mustParse("none")
	w := NewWriter(&buf, &o)
	for i := range n {
		require.NoError(t, w.Add(base.MakeKey(binary.BigEndian.AppendUint64(nil, uint64(i)), 0, base.KindSet), value))
	}
	info, err := w.Finish()
	require.NoError(t, err)
	return buf.Bytes(), info
}

// hostileFiles are files without a tail in which much may be taken for the beginning
// or the end of a block.
func hostileFiles(t *testing.T) map[string][]byte {
	files := map[string][]byte{}
	part := func(n int) int { return scale.Count(n/3, n) }
	cut := func(name string, data []byte, info *FileInfo) []byte {
		files[name] = data[:info.Size-info.TailSize-100]
		return files[name]
	}
	zeros := bytes.Repeat([]byte{0, 1, 0, 0, 0, 1, 0}, 70)
	for _, c := range []Compression{NoCompression, Snappy, Zstd} {
		data, info := valued(t, part(600), zeros, WriterOptions{Compression: c})
		cut(fmt.Sprintf("zero-rich, %s", c), data, info)
	}
	data, info := valued(t, part(600), zeros, WriterOptions{Compression: NoCompression})
	damaged := bytes.Clone(cut("", data, info))
	delete(files, "")
	for at := 100; at < len(damaged); at += 9000 {
		damaged[at] ^= 1
	}
	files["zero-rich, every other block damaged"] = damaged

	inner, _ := valued(t, 100, []byte("a value"), WriterOptions{Compression: NoCompression, BlockSize: 200})
	data, info = valued(t, 60, inner, WriterOptions{Compression: NoCompression})
	cut("files in a file", data, info)
	files["the same block again and again"] = bytes.Repeat(inner[:1000], part(300))
	files["compressions and nothing else"] = bytes.Repeat([]byte{0, 1, 2, 3}, part(70_000))

	// Every five bytes a checksum that is right for a block from the first byte on, and
	// no form.
	ends := []byte{0, 7, 7, 7}
	sum := base.Checksum(9, 0, ends)
	for len(ends) < part(200_000) {
		sum = base.ChecksumMore(sum, []byte{byte(NoCompression)})
		trailer := binary.LittleEndian.AppendUint32([]byte{byte(NoCompression)}, sum)
		sum = base.ChecksumMore(sum, trailer[1:])
		ends = append(ends, trailer...)
	}
	files["ends and nothing else"] = ends
	files["keys that share all but their ends, and one out of order"] = sharing(part(64 << 10))
	return files
}

// sharing is a data block in which a key of n bytes is followed by n bytes of entries that
// share all of it, the last of which comes too early.
func sharing(n int) []byte {
	w := blockWriter{restartInterval: n, restartBytes: 4 * n}
	key := bytes.Repeat([]byte{7}, n)
	w.add(base.MakeKey(key, 0, base.KindSet), nil, 0, 0, false)
	for i := range uint32(n / 8) {
		w.add(base.MakeKey(binary.BigEndian.AppendUint32(key, i+1), 0, base.KindSet), nil, 0, n, false)
	}
	w.add(base.MakeKey(key, 0, base.KindSet), nil, 0, n, false)
	data := bytes.Clone(w.finish())
	return appendTrailer(data, 9, 0, data, NoCompression)
}

// The work for a file is a small multiple of its size, and of what is salvaged, whatever
// its bytes are.
func TestSalvageTakesLinearWork(t *testing.T) {
	scale.OneGoroutine(t, "a salvage has a single goroutine")
	for name, data := range hostileFiles(t) {
		for _, id := range []uint64{0, 9} {
			for _, footer := range []uint64{0, 9, 1 << 50} {
				what := fmt.Sprintf("%s, id %d, footer %d", name, id, footer)
				file := data
				if footer > 0 {
					file = footerless(data, footer)
				}
				added := 0
				s := &salvager{data: file, limit: len(file), out: &Salvage{},
					add: func(k base.InternalKey, value []byte) error {
						added += len(k.User) + len(value)
						return nil
					}}
				err := s.run(id)
				require.LessOrEqual(t, s.work, 24*len(file)+2*added, what)
				if id == 0 && footer != 9 {
					require.ErrorContains(t, err, "id is lost", what)
					continue
				}
				if err == nil {
					require.LessOrEqual(t, s.out.Blocks, uint64(len(file)/100), what)
				}
			}
		}
	}
}

// What is whole is found among bytes that look like more.
func TestSalvageOfZeroRichBlocks(t *testing.T) {
	for _, c := range []Compression{NoCompression, Snappy, Zstd} {
		value := bytes.Repeat([]byte{0, 1, 0, 0, 0, 1, 0}, 70)
		data, info := valued(t, 600, value, WriterOptions{Compression: c})
		r := openBytes(t, data, nil)
		data = data[:info.Size-info.TailSize]
		offset, length := r.index.Block(10)
		data[int(offset)+length/2] ^= 1
		entries := uint64(0)
		s, err := SalvageFile(bytes.NewReader(data), int64(len(data)), &SalvageOptions{ID: 9},
			func(k base.InternalKey, v []byte) error {
				require.Equal(t, value, v)
				entries++
				return nil
			})
		require.NoError(t, err)
		require.Equal(t, info.DataBlocks-1, s.Blocks, c.String())
		require.Equal(t, s.Entries, entries)
		require.EqualValues(t, offset, s.Gaps[0].Offset)
		require.EqualValues(t, length, s.Gaps[0].Length)
	}
}

// BenchmarkSalvage measures a byte of a file that has lost its tail. The limit is one
// pass of a CRC byte by byte, 2 to 3 ns, where the blocks are whole.
func BenchmarkSalvage(b *testing.B) {
	for _, damaged := range []bool{false, true} {
		b.Run(fmt.Sprintf("damaged=%v", damaged), func(b *testing.B) {
			data, _, info := salvageFile(b, &WriterOptions{ID: 9}, 100_000)
			data = data[:info.Size-info.TailSize]
			for at := 5000; damaged && at < len(data); at += 10_000 {
				data[at] ^= 1
			}
			b.SetBytes(int64(len(data)))
			for b.Loop() {
				if _, err := SalvageFile(bytes.NewReader(data), int64(len(data)), &SalvageOptions{ID: 9},
					func(base.InternalKey, []byte) error { return nil }); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
