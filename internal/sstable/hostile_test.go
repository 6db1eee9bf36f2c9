package sstable

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"
	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/filterpolicy"
	"github.com/siftkv/siftkv/internal/base"
	"github.com/siftkv/siftkv/internal/compression"
	"github.com/siftkv/siftkv/internal/exactranges"
	"github.com/siftkv/siftkv/internal/hostile"
	"github.com/siftkv/siftkv/internal/rangedel"
	"github.com/siftkv/siftkv/internal/scale"
)

// What a reader may allocate for a file, or a decoder for its bytes: a block is at most 64
// times as large as it is stored, or a mebibyte, and a lookup has it twice, in the cache and
// as a value.
var fileBound = hostile.Bound{PerByte: 4 * compression.MaxExpansion, Fixed: 8 * compression.FreeExpansion}

// requireBounded opens a file of any bytes and asks it everything, within the bound.
func requireBounded(tb testing.TB, file []byte, keys ...[]byte) {
	tb.Helper()
	visit := func(do func(r *Reader)) {
		tb.Helper()
		fileBound.Require(tb, len(file), func() {
			r, err := NewReader(bytes.NewReader(file), int64(len(file)), &ReaderOptions{CacheSize: 1 << 20,
				RangeFilter: exactranges.Policy{}})
			if err != nil {
				return
			}
			if do(r); r.Close() != nil {
				tb.Fatal("closing what is in memory failed")
			}
		})
	}
	visit(func(*Reader) {})
	visit(func(r *Reader) { _ = r.Verify() })
	for _, k := range keys {
		visit(func(r *Reader) { _, _ = r.get(k) })
		visit(func(r *Reader) { r.MayContainRange(k, append(bytes.Clone(k), 0)) })
		visit(func(r *Reader) { r.NewIter(IterOptions{}).SeekGE(base.SearchKey(k, base.MaxSeqNum)) })
		visit(func(r *Reader) { r.NewIter(IterOptions{Sequential: true}).SeekLT(base.SearchKey(k, 0)) })
	}
}

// forge writes a file whose writer does as it pleases: write puts blocks into it, and all
// checksums are right.
func forge(tb testing.TB, o WriterOptions, write func(w *Writer)) []byte {
	tb.Helper()
	var buf bytes.Buffer
	w := NewWriter(&buf, &o)
	write(w)
	_, err := w.Finish()
	require.NoError(tb, err)
	return buf.Bytes()
}

// addBlock writes a data block as it is given, for the entry that the writer was given
// last.
func (w *Writer) addBlock(stored []byte, c Compression) {
	w.block.finish()
	w.blockLast = append(w.blockLast[:0], w.props.last.User...)
	w.writeBlock(stored, c)
	w.props.DataBlocks++
	w.pending = true
}

// oldZstdFile is a file with one value of n zeros, as writers of version 3 wrote it.
func oldZstdFile(tb testing.TB, n int) []byte {
	enc, err := zstd.NewWriter(nil, zstd.WithEncoderCRC(false), zstd.WithWindowSize(1<<20))
	require.NoError(tb, err)
	return forge(tb, WriterOptions{Compression: Zstd, BlockSize: 64 << 20, ID: 7}, func(w *Writer) {
		require.NoError(tb, w.set([]byte("key"), make([]byte, n)))
		block := slices.Clone(w.block.finish())
		w.addBlock(enc.EncodeAll(block, nil), Zstd)
	})
}

func TestBlockBombsAreRefused(t *testing.T) {
	file := oldZstdFile(t, 48<<20)
	require.Less(t, len(file), 8<<10)
	requireBounded(t, file, []byte("key"))

	r := openBytes(t, file, nil)
	_, err := r.get([]byte("key"))
	require.ErrorIs(t, err, ErrCorruption)
	require.ErrorContains(t, err, "AnyExpansion", "the error says what to do about a file that is old and good")
	require.ErrorIs(t, r.Verify(), ErrCorruption)
}

// Earlier versions of the writer stored such blocks, and their files are read by those who
// know where they come from.
func TestOldFilesThatExpandAreReadOnRequest(t *testing.T) {
	r, err := Open(filepath.Join("testdata", "v3-zstd-dense.sst"), &ReaderOptions{AnyExpansion: true})
	require.NoError(t, err)
	defer func() { require.NoError(t, r.Close()) }()
	require.NoError(t, r.Verify())
	for key, want := range map[string][]byte{"text": []byte("some text"), "zeros": make([]byte, 4<<20)} {
		value, err := r.get([]byte(key))
		require.NoError(t, err)
		require.True(t, bytes.Equal(want, value))
	}
}

// A writer stores no block that a reader would refuse, whatever is in it and however well
// it could be compressed.
func TestWritersStoreNoBombs(t *testing.T) {
	scale.OneGoroutine(t, "it is about sizes")
	for _, c := range []Compression{NoCompression, Snappy, Zstd} {
		const free = compression.FreeExpansion
		for _, n := range []int{0, 1, 100, 255, 256, free - 100, free + 1, scale.Count(2<<20, 8<<20)} {
			for _, text := range []string{"\x00", "sixteen letters ", strings.Repeat("a longer line of text, ", 50)} {
				value := []byte(strings.Repeat(text, n/len(text)+1))[:n]
				file := forge(t, WriterOptions{Compression: c, BlockSize: 1 << 20}, func(w *Writer) {
					require.NoError(t, w.set([]byte("key"), value))
				})
				r := openBytes(t, file, nil)
				require.NoError(t, r.Verify(), "%s, %d bytes", c, n)
				got, err := r.get([]byte("key"))
				require.NoError(t, err)
				require.True(t, bytes.Equal(value, got), "%s, %d bytes", c, n)
				requireBounded(t, file, []byte("key"))
			}
		}
	}
}

// frames are zstd frames that lie about their size, or ask for large windows.
func frames(tb testing.TB) map[string][]byte {
	encode := func(src []byte, o ...zstd.EOption) []byte {
		enc, err := zstd.NewWriter(nil, o...)
		require.NoError(tb, err)
		return enc.EncodeAll(src, nil)
	}
	whole := encode(make([]byte, 1<<20), zstd.WithSingleSegment(true))
	claims := func(n uint32) []byte {
		b := slices.Clone(whole)
		binary.LittleEndian.PutUint32(b[5:], n) // after magic and descriptor
		return b
	}
	window := encode(make([]byte, 3000), zstd.WithWindowSize(1<<29), zstd.WithSingleSegment(false))
	short := encode(make([]byte, 100))
	// RLE blocks of 128 KiB, none the last
	unsized := append([]byte{0x28, 0xb5, 0x2f, 0xfd, 0, 0xa0}, bytes.Repeat([]byte{0x02, 0x00, 0x10, 0}, 400)...)
	return map[string][]byte{
		"too small":        claims(300),
		"too large":        claims(1<<20 + 1),
		"largest":          claims(1 << 30),
		"beyond":           claims(1<<32 - 1),
		"window":           window,
		"two frames":       append(slices.Clone(whole), whole...),
		"many frames":      bytes.Repeat(short, 1000),
		"unsized":          unsized,
		"skippable":        append([]byte{0x50, 0x2a, 0x4d, 0x18, 0xff, 0xff, 0xff, 0x7f}, whole...),
		"skippable, empty": append([]byte{0x50, 0x2a, 0x4d, 0x18, 0, 0, 0, 0}, whole...),
		"truncated":        whole[:len(whole)/2],
		"header":           whole[:6],
		"nothing":          {},
	}
}

func TestHostileFramesAreRefused(t *testing.T) {
	for name, frame := range frames(t) {
		data, err := compression.Decompress(nil, frame, Zstd)
		if name != "window" {
			require.Error(t, err, name)
		}
		require.LessOrEqual(t, len(data), 1<<20+255, name)
		requireBounded(t, forge(t, WriterOptions{ID: 7}, func(w *Writer) {
			require.NoError(t, w.set([]byte("key"), nil))
			w.addBlock(frame, Zstd)
		}), []byte("key"))
	}
	for name, b := range map[string][]byte{"length": {0xff, 0xff, 0xff, 0xff, 3, 0, 0},
		"s2 repeat": {0x80, 0x80, 0x40, 0, 'x', 0x15, 0xff, 0xff, 0xff}, "nothing": {}} {
		_, err := compression.Decompress(nil, b, Snappy)
		require.Error(t, err, name)
		requireBounded(t, forge(t, WriterOptions{ID: 7}, func(w *Writer) {
			require.NoError(t, w.set([]byte("key"), nil))
			w.addBlock(b, Snappy)
		}), []byte("key"))
	}
}

// FuzzHostileBlock stores any bytes as a block, in either compression, with a right
// checksum.
func FuzzHostileBlock(f *testing.F) {
	for _, frame := range frames(f) {
		f.Add(frame, true)
	}
	f.Add([]byte{0x80, 0x80, 0x40, 0, 'x', 0x15, 0xff, 0xff, 0xff}, false)
	f.Fuzz(func(t *testing.T, stored []byte, isZstd bool) {
		c := Snappy
		if isZstd {
			c = Zstd
		}
		requireBounded(t, forge(t, WriterOptions{ID: 7}, func(w *Writer) {
			require.NoError(t, w.set([]byte("key"), nil))
			w.addBlock(stored, c)
		}), []byte("key"))
	})
}

// Buffers of giant blocks are garbage: a pool would keep them for blocks of any size.
func TestPoolsKeepNoGiantBuffers(t *testing.T) {
	for range 100 {
		giant, small := make([]byte, maxPooled+1), make([]byte, maxPooled)
		blockBuffers.put(&giant)
		require.LessOrEqual(t, cap(*blockBuffers.get()), maxPooled)
		blockBuffers.put(&small)
	}
}

// tombstoneBlock is a block of n range tombstones, each a byte longer than the one before
// and sharing all of that.
func tombstoneBlock(n int) []byte {
	var b []byte
	for i := range n {
		b = appendEntryHeader(b, i, 1, 1, base.MakeTrailer(1, base.KindRangeDelete))
		b = append(b, 'a', 0)
	}
	b = binary.LittleEndian.AppendUint32(b, 0) // one restart
	return binary.LittleEndian.AppendUint32(append(b, 0, 0), 1)
}

func TestRangeTombstoneBombsAreRefused(t *testing.T) {
	file := tombstoneFile(tombstoneBlock(20_000))
	require.Less(t, len(file), 200<<10)
	requireBounded(t, file)
	_, err := NewReader(bytes.NewReader(file), int64(len(file)), withExact)
	require.ErrorIs(t, err, ErrCorruption)
	fileBound.Require(t, len(file), func() {
		_, _ = SalvageFile(bytes.NewReader(file), int64(len(file)), nil,
			func(base.InternalKey, []byte) error { return nil })
	})
}

// tombstoneFile is a file that has but a block of range tombstones, and right checksums.
func tombstoneFile(block []byte) []byte {
	var buf bytes.Buffer
	w := NewWriter(&buf, &WriterOptions{ID: 7})
	index := w.finishIndex()
	w.props.SmallestSeq = 0
	w.props.rangeDels = w.writeBlock(block, NoCompression)
	w.props.index = w.writeBlock(index, NoCompression)
	props := w.writeBlock(w.props.encode(), NoCompression)
	w.write(footer{
		propsOffset: props.offset, propsLength: uint32(props.length),
		tailLength: w.offset + footerSize, fileSize: w.offset + footerSize, tableID: 7, version: slotsVersion,
	}.append(nil))
	_ = w.out.Flush() // to memory
	return buf.Bytes()
}

// A start that is not stored whole is refused, also where the tombstones would be in order.
func TestTombstonesAreStoredWhole(t *testing.T) {
	for interval, ok := range map[int]bool{1: true, 2: false} {
		b := blockWriter{restartInterval: interval}
		b.add(base.MakeKey([]byte("ab"), 3, base.KindRangeDelete), rangedel.AppendEnd(nil, []byte("ac")), 0, 0, false)
		b.add(base.MakeKey([]byte("ad"), 3, base.KindRangeDelete), rangedel.AppendEnd(nil, nil), 0, 1, false)
		file := tombstoneFile(b.finish())
		_, err := NewReader(bytes.NewReader(file), int64(len(file)), withExact)
		require.Equal(t, ok, err == nil, "%v", err)
	}
}

// Verify takes one block of memory, however many there are and however well they are
// compressed.
func TestVerifyOfManyDenseBlocksAllocatesOne(t *testing.T) {
	file := forge(t, WriterOptions{Compression: Zstd, Filter: mustParse("none")}, func(w *Writer) {
		for i := range 100 {
			require.NoError(t, w.set([]byte{byte(i)}, make([]byte, compression.FreeExpansion-100)))
		}
	})
	require.Less(t, len(file), 64<<10)
	requireBounded(t, file, []byte{50})
	require.NoError(t, openBytes(t, file, nil).Verify())
}

// Tombstones of a kind that a writer does write are decoded within the bound: many at one
// start, or many small ones.
func TestRangeTombstonesStayInProportion(t *testing.T) {
	layered, small := make([]rangedel.Tombstone, 20_000), make([]rangedel.Tombstone, 20_000)
	for i := range layered {
		layered[i] = rangedel.Tombstone{Start: []byte("a"), Seq: base.SeqNum(i + 1)}
		small[i] = rangedel.Tombstone{Start: fmt.Appendf(nil, "%05d", 2*i), End: fmt.Appendf(nil, "%05d", 2*i+1),
			Seq: 1}
	}
	for _, ts := range [][]rangedel.Tombstone{layered, small} {
		file := forge(t, WriterOptions{}, func(w *Writer) { w.tombstones = slices.Clone(ts) })
		requireBounded(t, file)
		set := openBytes(t, file, nil).Tombstones()
		require.Equal(t, rangedel.NewSet(ts).Clip(nil, nil, nil), set.Clip(nil, nil, nil))
	}
}

// FuzzHostileRangeTombstones opens files with any bytes for a block of range tombstones.
func FuzzHostileRangeTombstones(f *testing.F) {
	f.Add(tombstoneBlock(10))
	b := blockWriter{restartInterval: 1}
	for _, k := range []string{"a", "b", "c"} {
		b.add(base.MakeKey([]byte(k), 3, base.KindRangeDelete), rangedel.AppendEnd(nil, []byte(k+"z")), 0, 0, false)
	}
	f.Add(b.finish())
	f.Fuzz(func(t *testing.T, block []byte) {
		if len(block) > 0 {
			requireBounded(t, tombstoneFile(block))
		}
	})
}

// Each number of each file's properties, and runs of small ones, are held against the
// bound.
func TestHostilePropertiesAllocateLittle(t *testing.T) {
	scale.OneGoroutine(t, "it is about sizes")
	for _, v := range victims(t)[:2] {
		for tag := range openBytes(t, v.data, nil).props.numbers() {
			for _, n := range []uint64{0, 1 << 20, 1<<31 - 1, 1<<64 - 1} {
				p, err := decodeProperties(propertiesOf(t, v.data))
				require.NoError(t, err)
				*p.numbers()[tag] = n
				requireBounded(t, withProperties(v.data, p.encode()), v.vs[0].key.User)
			}
		}
	}
	for tag := byte(0); tag <= lastTag+1; tag++ {
		run := bytes.Repeat([]byte{tag, 2, 0x81, 0x01}, 100_000)
		fileBound.Require(t, len(run), func() { _, _ = decodeProperties(run) })
	}
	separated, _ := writeFile(t, &separatedOptions, separatedContent())
	for mutant := range hostile.Mutants(propertiesOf(t, separated), 500) {
		requireBounded(t, withProperties(separated, mutant), []byte("a"))
	}
}

// FuzzHostileFile opens any bytes, and asks them everything.
func FuzzHostileFile(f *testing.F) {
	for _, v := range victims(f) {
		f.Add(v.data, uint32(3), byte(1))
	}
	f.Fuzz(func(t *testing.T, data []byte, at uint32, flip byte) {
		requireBounded(t, data, []byte("key/000010/"))
		requireBounded(t, resealed(data, int(at), flip), []byte("key/000010/"))
	})
}

// resealed flips bits of one byte of the tail or of a block, and makes the checksums right
// that cover it. Bytes that are no file come back as they are.
func resealed(data []byte, at int, flip byte) []byte {
	r, err := NewReader(bytes.NewReader(data), int64(len(data)), nil)
	if err != nil {
		return data
	}
	data = slices.Clone(data)
	at %= len(data)
	data[at] ^= flip
	seal := func(h handle) {
		if end := h.offset + h.length; h.length > 0 && uint64(at) >= h.offset && uint64(at) < end {
			stored := data[h.offset:end]
			appendTrailer(stored, r.id, h.offset, stored, Compression(data[end])) // in its place
		}
	}
	p := r.props
	f, _ := decodeFooter(data[len(data)-footerSize:], int64(len(data)))
	for _, h := range []handle{p.filter, p.rangeFilter, p.index, p.rangeDels, {f.propsOffset, uint64(f.propsLength)}} {
		seal(h)
	}
	for i := range r.index.Len() {
		offset, length := r.index.Block(i)
		seal(handle{offset, uint64(length - trailerSize)})
	}
	return data
}

// Footers, index leaves and filters are reached by flips as well, one after the other.
func TestHostileBytesOfEveryBlockAllocateLittle(t *testing.T) {
	scale.OneGoroutine(t, "it is about sizes")
	for _, v := range victims(t) {
		for at := 0; at < len(v.data); at += 1 + len(v.data)/100 {
			for _, flip := range []byte{0x80, 0xff} {
				requireBounded(t, resealed(v.data, at, flip), v.vs[0].key.User)
			}
		}
	}
}

func TestHostileFiltersOfFilesAllocateLittle(t *testing.T) {
	for _, family := range []string{"bloom", "blocked", "cuckoo", "ribbon", "gcs", "quotient", "xor", "fuse", "none",
		"other"} {
		for _, b := range [][]byte{nil, make([]byte, 32), bytes.Repeat([]byte{0xff}, 64)} {
			fileBound.Require(t, len(b), func() { _, _ = filterpolicy.Decode(family, b) })
		}
	}
	for _, family := range append(filterpolicy.RangeFamilies(), exactranges.Name, "other") {
		for _, b := range [][]byte{nil, make([]byte, 1<<16), bytes.Repeat([]byte{0xff}, 64),
			fmt.Appendf(nil, "exact ranges%sexact ranges", make([]byte, 1<<16))} {
			fileBound.Require(t, len(b), func() {
				_, _ = filterpolicy.DecodeRangeWith(exactranges.Policy{}, family, b)
			})
		}
	}
}

// A salvage takes the file, each block once, and reads what earlier writers stored.
func TestHostileFilesAreSalvagedInProportion(t *testing.T) {
	bound := hostile.Bound{PerByte: 2 * compression.MaxZstdExpansion, Fixed: 8 * compression.FreeExpansion}
	salvage := func(file []byte) {
		bound.Require(t, len(file), func() {
			_, _ = SalvageFile(bytes.NewReader(file), int64(len(file)), &SalvageOptions{ID: 100},
				func(base.InternalKey, []byte) error { return nil })
		})
	}
	for _, v := range victims(t)[:3] {
		for at := 0; at < len(v.data); at += 1 + len(v.data)/100 {
			salvage(resealed(v.data, at, 0xff))
			salvage(v.data[:at])
		}
	}
	salvage(oldZstdFile(t, 8<<20))
	salvage(tombstoneFile(tombstoneBlock(20_000)))
}
