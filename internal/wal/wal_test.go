package wal

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/siftkv/siftkv/internal/base"
	"github.com/siftkv/siftkv/internal/vfs"
)

var update = flag.Bool("update", false, "write golden files")

const testID = 42

// content is a ReadFile over bytes.
type content []byte

func (c content) Size() (int64, error) { return int64(len(c)), nil }
func (c content) Close() error         { return nil }

func (c content) ReadAt(p []byte, off int64) (int, error) {
	return bytes.NewReader(c).ReadAt(p, off)
}

// capture is a WriteFile that keeps what is written, and notes how much of it
// was synced.
type capture struct {
	bytes.Buffer
	synced int
	calls  []string
}

func (c *capture) Write(p []byte) (int, error) {
	c.calls = append(c.calls, "write")
	return c.Buffer.Write(p)
}

func (c *capture) Sync() error {
	c.calls = append(c.calls, "sync")
	c.synced = c.Len()
	return nil
}

func (c *capture) Close() error {
	c.calls = append(c.calls, "close")
	return nil
}

// record makes a record that no other record's bytes are part of.
func record(i, size int) []byte {
	rng := rand.New(rand.NewPCG(uint64(i), uint64(size)))
	b := make([]byte, size)
	for j := range b {
		b[j] = byte(rng.Uint32())
	}
	return b
}

// makeLog returns a log that was closed, with a sync behind each record whose
// number is in syncs.
func makeLog(t require.TestingT, id uint64, records [][]byte, syncs ...int) []byte {
	var f capture
	w := NewWriter(&f, id, Options{})
	for i, r := range records {
		require.NoError(t, w.Append(r))
		for _, s := range syncs {
			if s == i {
				require.NoError(t, w.Sync())
			}
		}
	}
	require.NoError(t, w.Close())
	return f.Bytes()
}

// unclosed takes the end-of-log mark off a log.
func unclosed(log []byte) []byte { return log[:len(log)-minRoom] }

// readAll reads records up to the first error.
func readAll(r *Reader) ([][]byte, error) {
	records := [][]byte{}
	for {
		rec, err := r.Next()
		if err != nil {
			return records, err
		}
		records = append(records, bytes.Clone(rec))
	}
}

func requireClean(t require.TestingT, log []byte, want [][]byte) {
	r := NewReader(content(log), "000042.log", testID)
	got, err := readAll(r)
	require.Equal(t, io.EOF, err)
	require.True(t, r.Clean())
	require.Zero(t, r.Skipped())
	require.Len(t, got, len(want))
	for i := range want {
		require.True(t, bytes.Equal(want[i], got[i]), "record %d", i)
	}
}

func TestRoundTripOfSizes(t *testing.T) {
	sizes := []int{0, 1, 6, 7, 8, 100, 200 << 10}
	firstRoom := blockSize - fileHeaderSize - headerSize
	for _, edge := range []int{firstRoom, firstRoom + blockSize - headerSize, blockSize, 2 * blockSize} {
		for d := -2 * minRoom; d <= 2*minRoom; d++ {
			sizes = append(sizes, edge+d)
		}
	}
	var all [][]byte
	for i, size := range sizes {
		rec := record(i, size)
		all = append(all, rec)
		requireClean(t, makeLog(t, testID, [][]byte{rec, []byte("next"), {}}), [][]byte{rec, []byte("next"), {}})
	}
	requireClean(t, makeLog(t, testID, all, 3, 9, 50), all)
	requireClean(t, makeLog(t, testID, nil), nil)
}

func TestRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		fsys := vfs.NewMem()
		f, err := fsys.Create("log")
		require.NoError(t, err)
		w := NewWriter(f, testID, Options{SyncOnClose: rapid.Bool().Draw(t, "sync")})
		var want [][]byte
		for i := range rapid.IntRange(0, 40).Draw(t, "records") {
			size := rapid.OneOf(rapid.IntRange(0, 300), rapid.IntRange(0, 70<<10)).Draw(t, "size")
			want = append(want, record(i, size))
			buffered := w.Buffered()
			require.NoError(t, w.Append(want[i]))
			require.Greater(t, w.Buffered(), buffered+size)
			switch rapid.IntRange(0, 5).Draw(t, "then") {
			case 0:
				require.NoError(t, w.Flush())
				require.Zero(t, w.Buffered())
			case 1:
				require.NoError(t, w.Sync())
			}
			size64, err := fsys.Stat("log")
			require.NoError(t, err)
			require.Equal(t, size64+int64(w.Buffered()), w.Size())
		}
		require.NoError(t, w.Close())
		size, err := fsys.Stat("log")
		require.NoError(t, err)
		require.Equal(t, size, w.Size())

		rf, err := fsys.Open("log")
		require.NoError(t, err)
		r := NewReader(rf, "log", testID)
		got, err := readAll(r)
		require.Equal(t, io.EOF, err)
		require.True(t, r.Clean())
		require.Equal(t, len(want), len(got))
		for i := range want {
			require.True(t, bytes.Equal(want[i], got[i]), "record %d", i)
		}
	})
}

// smallLog is a log of a little more than a block, with every type of fragment
// and with padding at the block's end.
func smallLog(t require.TestingT) (log []byte, records [][]byte) {
	for i, size := range []int{0, 1, 116, 700, 116, 30000, 1500, 9, 40, 0, 116} {
		records = append(records, record(i, size))
	}
	// This one ends where the block has no room for a fragment.
	used := len(unclosed(makeLog(t, testID, append(records[:6:6], nil), 1, 3)))
	records[6] = record(6, blockSize-used-5)
	log = makeLog(t, testID, records, 1, 3, 8)
	r := NewReader(content(log), "", testID)
	for range 8 {
		_, err := r.Next()
		require.NoError(t, err)
	}
	require.EqualValues(t, blockSize, r.Offset())
	require.Equal(t, make([]byte, 5), log[blockSize-5:blockSize])
	return log, records
}

// spanningLog is a log whose records span blocks.
func spanningLog(t require.TestingT) (log []byte, records [][]byte) {
	for i, size := range []int{50, 40000, 116, 70000, 300, 9} {
		records = append(records, record(i, size))
	}
	return makeLog(t, testID, records, 2), records
}

type sampleLog struct {
	log     []byte
	records [][]byte
}

// sampleLogs returns logs of less than a block, of little more, and of many.
func sampleLogs(t require.TestingT) []sampleLog {
	var tiny sampleLog
	for i := range 12 {
		tiny.records = append(tiny.records, record(i, 30*i))
	}
	tiny.log = makeLog(t, testID, tiny.records, 1, 3, 8)
	small, smallRecords := smallLog(t)
	spanning, spanningRecords := spanningLog(t)
	return []sampleLog{tiny, {small, smallRecords}, {spanning, spanningRecords}}
}

// sampleOffsets returns every offset of a log, but only a few of those deep
// inside the fragments of large records.
func sampleOffsets(log []byte, ends []int64) []int {
	const near = 2 * minRoom
	edges := append([]int64{0, int64(len(log))}, ends...)
	for off := int64(0); off < int64(len(log)); off += blockSize {
		edges = append(edges, off)
	}
	offsets := []int{}
	for at := range log {
		deep := at%101 != 0 && len(log) > blockSize/4
		for _, e := range edges {
			deep = deep && (int64(at) < e-near || int64(at) > e+near)
		}
		if !deep {
			offsets = append(offsets, at)
		}
	}
	return offsets
}

func requirePrefix(t require.TestingT, records, got [][]byte) {
	require.LessOrEqual(t, len(got), len(records))
	for i := range got {
		require.True(t, bytes.Equal(records[i], got[i]), "record %d", i)
	}
}

func TestEveryTruncation(t *testing.T) {
	for _, c := range sampleLogs(t) {
		ends := recordEnds(t, c.log)
		for _, n := range sampleOffsets(c.log, ends) {
			r := NewReader(content(c.log[:n]), "f", testID)
			got, err := readAll(r)
			require.False(t, r.Clean())
			whole := 0
			for whole < len(ends) && ends[whole] <= int64(n) {
				whole++
			}
			require.Len(t, got, whole, "at %d", n)
			requirePrefix(t, c.records, got)
			if !errors.Is(err, io.EOF) {
				require.ErrorIs(t, err, ErrTornTail, "at %d", n)
				require.False(t, errors.Is(err, base.ErrCorruption))
			}
			require.False(t, r.Skip())
			_, err = r.Next()
			require.Equal(t, io.EOF, err)
		}
	}
}

// recordEnds returns where the records of a whole log end in the file.
func recordEnds(t require.TestingT, log []byte) []int64 {
	var ends []int64
	r := NewReader(content(log), "", testID)
	for {
		_, err := r.Next()
		if errors.Is(err, io.EOF) {
			return ends
		}
		require.NoError(t, err)
		ends = append(ends, r.off)
	}
}

func TestZerosAtTheEnd(t *testing.T) {
	log, records := smallLog(t)
	for n := 0; n < len(log)-1; n += 101 {
		for _, zeros := range []int{1, 20, 5000, 2 * blockSize} {
			r := NewReader(content(append(log[:n:n], make([]byte, zeros)...)), "f", testID)
			got, err := readAll(r)
			requirePrefix(t, records, got)
			require.False(t, r.Clean())
			if !errors.Is(err, io.EOF) {
				require.ErrorIs(t, err, ErrTornTail, "%d bytes and %d zeros", n, zeros)
			}
		}
	}
}

// TestEveryFlip flips bits of every byte in turn. Each must be noticed, and the
// records that the damage does not touch must be found.
func TestEveryFlip(t *testing.T) {
	for _, c := range sampleLogs(t) {
		ends := recordEnds(t, c.log)
		rng := rand.New(rand.NewPCG(1, 2))
		log := bytes.Clone(c.log)
		for _, at := range sampleOffsets(log, ends) {
			mask := byte(1 + rng.IntN(255))
			log[at] ^= mask
			checkFlip(t, log, c.records, ends, int64(at))
			log[at] ^= mask
		}
	}
}

func checkFlip(t *testing.T, log []byte, records [][]byte, ends []int64, at int64) {
	t.Helper()
	r := NewReader(content(log), "f", testID)
	got, err := readAll(r)
	requirePrefix(t, records, got)
	require.False(t, r.Clean(), "flip at %d", at)
	if !errors.Is(err, ErrTornTail) {
		var ce *base.CorruptionError
		require.ErrorAs(t, err, &ce, "flip at %d", at)
		require.Equal(t, "f", ce.File)
		require.LessOrEqual(t, ce.Offset, at)
		require.Less(t, at-ce.Offset, int64(blockSize))
	}
	next := len(got)
	for r.Skip() {
		var more [][]byte
		more, err = readAll(r)
		for _, rec := range more {
			for next < len(records) && !bytes.Equal(rec, records[next]) {
				// A record is lost only where its bytes share a block with the flip.
				require.LessOrEqual(t, start(ends, next), at-at%blockSize+blockSize, "flip at %d loses record %d", at, next)
				require.Greater(t, ends[next], at-at%blockSize, "flip at %d loses record %d", at, next)
				next++
			}
			require.Less(t, next, len(records), "flip at %d makes up a record", at)
			next++
		}
	}
	_, err = r.Next()
	require.Equal(t, io.EOF, err)
	require.Positive(t, r.Skipped())
	require.Less(t, r.Skipped(), int64(2*blockSize+70000))
}

func start(ends []int64, i int) int64 {
	if i == 0 {
		return fileHeaderSize
	}
	return ends[i-1]
}

func TestAPayloadFlipLosesOneRecord(t *testing.T) {
	var records [][]byte
	for i := range 500 {
		records = append(records, record(i, 116))
	}
	log := makeLog(t, testID, records)
	ends := recordEnds(t, log)
	log[ends[99]+headerSize+50] ^= 4
	r := NewReader(content(log), "f", testID)
	got, err := readAll(r)
	require.Len(t, got, 100)
	var ce *base.CorruptionError
	require.ErrorAs(t, err, &ce)
	require.Equal(t, base.CorruptionError{File: "f", Offset: ends[99], What: "log fragment: bad checksum"}, *ce)
	_, again := r.Next()
	require.Equal(t, err, again, "an error stays")
	require.True(t, r.Skip())
	more, err := readAll(r)
	require.Equal(t, io.EOF, err)
	require.True(t, r.Clean())
	require.Equal(t, records[101:], more)
	require.EqualValues(t, headerSize+116, r.Skipped())
}

func TestFragmentsOfOtherLogsAndPlacesAreRefused(t *testing.T) {
	var records, others [][]byte
	for i := range 1000 {
		records = append(records, record(i, 116))
		others = append(others, record(i+1000, 116))
	}
	log, other := makeLog(t, testID, records), makeLog(t, testID+1, others)
	for name, block := range map[string][]byte{
		"other log, same place": other[blockSize : 2*blockSize],
		"same log, other place": log[2*blockSize : 3*blockSize],
	} {
		t.Run(name, func(t *testing.T) {
			mixed := bytes.Clone(log)
			copy(mixed[blockSize:], block)
			r := NewReader(content(mixed), "f", testID)
			got, err := readAll(r)
			require.ErrorIs(t, err, base.ErrCorruption)
			require.True(t, r.Skip())
			more, err := readAll(r)
			require.Equal(t, io.EOF, err)
			require.Equal(t, records[:len(got)], got)
			require.Equal(t, records[len(records)-len(more):], more)
			ends := recordEnds(t, log)
			require.Equal(t, start(ends, len(records)-len(more))-start(ends, len(got)), r.Skipped())
			require.Less(t, r.Skipped(), int64(blockSize+2*(2*headerSize+116)))
		})
	}
}

func TestGolden(t *testing.T) {
	name := filepath.Join("testdata", "v1.log")
	_, records := smallLog(t)
	records = append(records, record(99, 40000))
	log := makeLog(t, testID, records, 1, 3, 8)
	if *update {
		require.NoError(t, os.MkdirAll("testdata", 0o755))
		require.NoError(t, os.WriteFile(name, log, 0o644))
	}
	golden, err := os.ReadFile(name)
	require.NoError(t, err)
	requireClean(t, golden, records)
	require.True(t, bytes.Equal(golden, log), "the writer's bytes have changed; if the format must, raise its version")
}

func ExampleReader() {
	fsys := vfs.NewMem()
	f, _ := fsys.Create("000007.log")
	w := NewWriter(f, 7, Options{})
	_ = w.Append([]byte("one"))
	_ = w.Append([]byte("two"))
	_ = w.Close()

	rf, _ := fsys.Open("000007.log")
	r := NewReader(rf, "000007.log", 7)
	for {
		rec, err := r.Next()
		if err != nil {
			fmt.Println(err, r.Clean())
			return
		}
		fmt.Printf("%s at %d\n", rec, r.Offset())
	}
	// Output:
	// one at 32
	// two at 42
	// EOF true
}
