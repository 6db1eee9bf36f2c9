package wal

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/internal/base"
)

func TestHeaders(t *testing.T) {
	good := makeLog(t, testID, [][]byte{[]byte("record")})
	header := func(change func(h []byte)) []byte {
		log := bytes.Clone(good)
		change(log)
		binary.LittleEndian.PutUint32(log[24:], base.Checksum(0, 0, log[:24]))
		return log
	}
	for _, c := range []struct {
		name string
		log  []byte
		is   error
		text string
		skip bool // the records can be read nonetheless
	}{
		{"empty", nil, io.EOF, "EOF", false},
		{"zeros", make([]byte, 100), ErrTornTail,
			"f: siftkv: log has a torn tail at offset 0 of 100: log header: zeros, or cut short", false},
		{"cut short", good[:20], ErrTornTail, "at offset 0 of 20", false},
		{"short foreign", []byte("hello"), ErrNotLog, "in f at offset 0: no room for a log header: not a siftkv log",
			false},
		{"foreign", bytes.Repeat([]byte("hello, world\n"), 9000), ErrNotLog, "wrong magic number", false},
		{"wrong magic", append([]byte{'X'}, good[1:]...), ErrNotLog, "wrong magic number", true},
		{"zeros before a log", append(make([]byte, 32), good[32:]...), base.ErrCorruption, "zeros", true},
		{"bad checksum", append(append(bytes.Clone(good[:24]), 1, 2, 3, 4), good[28:]...), base.ErrCorruption,
			"bad checksum", true},
		{"newer", header(func(h []byte) { h[8] = 2 }), ErrNewerFormat,
			"f: siftkv: newer format: version 2, and this release reads up to 1", false},
		{"version 0", header(func(h []byte) { h[8] = 0 }), base.ErrCorruption, "impossible field", true},
		{"reserved", header(func(h []byte) { h[13] = 1 }), base.ErrCorruption, "impossible field", true},
		{"other id", makeLog(t, 7, [][]byte{nil}), base.ErrCorruption,
			"this is log 7, not 42; the file was renamed or copied", false},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := NewReader(content(c.log), "f", testID)
			_, err := r.Next()
			require.ErrorIs(t, err, c.is)
			require.ErrorContains(t, err, c.text)
			if errors.Is(err, ErrNotLog) {
				require.ErrorIs(t, err, base.ErrCorruption)
			}
			require.False(t, r.Clean())
			require.Equal(t, c.skip, r.Skip())
			if c.skip {
				got, err := readAll(r)
				require.Equal(t, io.EOF, err)
				require.Equal(t, [][]byte{[]byte("record")}, got)
				require.EqualValues(t, fileHeaderSize, r.Skipped())
			}
		})
	}
}

func TestNewerFormatIsNotSkipped(t *testing.T) {
	log := makeLog(t, testID, [][]byte{nil})
	log[8]++
	binary.LittleEndian.PutUint32(log[24:], base.Checksum(0, 0, log[:24]))
	r := NewReader(content(log), "f", testID)
	for range 3 {
		_, err := r.Next()
		require.ErrorIs(t, err, ErrNewerFormat)
		require.NotErrorIs(t, err, base.ErrCorruption)
		require.False(t, r.Skip())
	}
}

// assemble makes a log of fragments with good checksums, in any order.
func assemble(fragments ...fragment) []byte {
	log := appendFileHeader(nil, testID)
	for _, f := range fragments {
		log = appendFragment(log, testID, int64(len(log)), f.typ, f.payload)
	}
	return log
}

func TestFragmentsOutOfOrder(t *testing.T) {
	full := fragment{typeFull, []byte("full")}
	first, middle, last := fragment{typeFirst, []byte("f")}, fragment{typeMiddle, []byte("m")},
		fragment{typeLast, []byte("l")}
	end := fragment{typeEnd, make([]byte, markSize)}
	const one = headerSize + 1
	for _, c := range []struct {
		name    string
		log     []byte
		before  []string
		offset  int64
		text    string
		behind  []string
		skipped int64
	}{
		{"last alone", assemble(full, last, full, end), []string{"full"}, 32 + 11, "without a beginning",
			[]string{"full"}, one},
		{"middle, last", assemble(middle, last, full, end), nil, 32, "without a beginning", []string{"full"}, 2 * one},
		{"no last", assemble(full, first, middle, full, end), []string{"full"}, 32 + 11, "without an end",
			[]string{"full"}, 2 * one},
		{"first, first", assemble(first, first, last, end), nil, 32, "without an end", []string{"fl"}, one},
		{"end in a record", assemble(full, first, end), []string{"full"}, 32 + 11, "without an end", nil, one},
		{"after the end", assemble(full, end, full), []string{"full"}, 32 + 11 + minRoom,
			"11 bytes after the end of the log", nil, 11},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := NewReader(content(c.log), "f", testID)
			requireNext := func(want []string) (err error) {
				got, err := readAll(r)
				require.Len(t, got, len(want))
				for i := range want {
					require.Equal(t, want[i], string(got[i]))
				}
				return err
			}
			var ce *base.CorruptionError
			require.ErrorAs(t, requireNext(c.before), &ce)
			require.Equal(t, c.offset, ce.Offset)
			require.Contains(t, ce.What, c.text)
			require.False(t, r.Clean())
			require.Equal(t, c.name != "after the end", r.Skip())
			require.Equal(t, io.EOF, requireNext(c.behind))
			require.Equal(t, c.skipped, r.Skipped())
		})
	}
}

func TestImpossibleMarks(t *testing.T) {
	for _, payload := range [][]byte{
		nil,
		make([]byte, markSize+1),
		binary.LittleEndian.AppendUint64(nil, 33),    // later than the mark itself
		binary.LittleEndian.AppendUint64(nil, 1<<63), // negative
	} {
		for _, typ := range []fragmentType{typeSynced, typeEnd, typeEnd + 1, 0} {
			r := NewReader(content(assemble(fragment{typ, payload}, fragment{typeFull, nil})), "f", testID)
			_, err := r.Next()
			require.ErrorIs(t, err, base.ErrCorruption)
			require.Zero(t, r.SyncedTo())
		}
	}
}

// failing is a ReadFile whose reads fail from an offset on.
type failing struct {
	content
	from    int64
	sizeErr error
}

func (f failing) Size() (int64, error) { return int64(len(f.content)), f.sizeErr }

func (f failing) ReadAt(p []byte, off int64) (int, error) {
	if off+int64(len(p)) > f.from {
		return 0, errDisk
	}
	return f.content.ReadAt(p, off)
}

func TestReadErrors(t *testing.T) {
	log, records := spanningLog(t)
	r := NewReader(failing{content: log, sizeErr: errDisk}, "f", testID)
	_, err := r.Next()
	require.ErrorIs(t, err, errDisk)

	for from := int64(0); from < int64(len(log)); from += blockSize {
		r := NewReader(failing{content: log, from: from}, "f", testID)
		got, err := readAll(r)
		requirePrefix(t, records, got)
		require.ErrorIs(t, err, errDisk)
		require.ErrorContains(t, err, "read log f at offset")
		require.NotErrorIs(t, err, base.ErrCorruption)
		require.False(t, r.Skip(), "the file may be good: it only cannot be read now")
		_, again := r.Next()
		require.Equal(t, err, again)
	}

	// An error while looking at what follows damage.
	log[100] ^= 1
	r = NewReader(failing{content: log, from: blockSize}, "f", testID)
	_, err = readAll(r)
	require.ErrorIs(t, err, errDisk)
}

// shrunk claims to be longer than it is.
type shrunk struct{ content }

func (s shrunk) Size() (int64, error) { return 1 << 50, nil }

func TestFileShorterThanItsSize(t *testing.T) {
	log, records := smallLog(t)
	r := NewReader(shrunk{content(log)}, "f", testID)
	got, err := readAll(r)
	requirePrefix(t, records, got)
	require.ErrorIs(t, err, io.ErrUnexpectedEOF)
	require.LessOrEqual(t, cap(r.block), blockSize)
}
