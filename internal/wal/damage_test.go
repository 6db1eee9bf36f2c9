package wal

import (
	"bytes"
	"errors"
	"io"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/internal/base"
	"github.com/siftkv/siftkv/internal/scale"
)

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
	scale.OneGoroutine(t, "one goroutine reads a log")
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
	scale.OneGoroutine(t, "one goroutine reads a log")
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
	scale.OneGoroutine(t, "one goroutine reads a log")
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
		more, _ := readAll(r)
		for _, rec := range more {
			for next < len(records) && !bytes.Equal(rec, records[next]) {
				// A record is lost only where its bytes share a block with the flip.
				require.LessOrEqual(t, start(ends, next), at-at%blockSize+blockSize, "flip at %d loses record %d", at,
					next)
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
