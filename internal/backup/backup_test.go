package backup

import (
	"bytes"
	"encoding/hex"
	"errors"
	"io"
	"path/filepath"
	"testing"
	"testing/iotest"

	"github.com/siftkv/siftkv/internal/base"
	"github.com/siftkv/siftkv/internal/golden"
	"github.com/siftkv/siftkv/internal/manifest"
	"github.com/stretchr/testify/require"
)

// sampleHeader is the header of the samples.
func sampleHeader(hasBlobs bool) *Header {
	return &Header{StoreID: 5, BackupID: 0xabc, Parent: 0xab, ParentOffset: 99, Files: 2, Bytes: 30, LastSeq: 1000,
		HasBlobs: hasBlobs}
}

// sample returns a stream of two files and a description, with the offset after
// each file.
func sample(tb testing.TB) (stream []byte, whole []int64) { return sampleOf(tb, false) }

// sampleOf is sample, of a store with blob files: the second file is one.
func sampleOf(tb testing.TB, hasBlobs bool) (stream []byte, whole []int64) {
	tb.Helper()
	var b bytes.Buffer
	w, err := NewWriter(&b, sampleHeader(hasBlobs))
	require.NoError(tb, err)
	require.Zero(tb, w.Whole())
	second := manifest.FileTable
	if hasBlobs {
		second = manifest.FileBlob
	}
	for _, f := range []struct {
		File
		kind   manifest.FileKind
		chunks []string
	}{{File{7, 70}, manifest.FileTable, []string{"0123456789", "0123456789"}},
		{File{9, 90}, second, []string{"abcdefghij"}}} {
		size := 0
		for _, c := range f.chunks {
			size += len(c)
		}
		require.NoError(tb, w.File(f.kind, f.File, int64(size)))
		for _, c := range f.chunks {
			require.NoError(tb, w.Data([]byte(c)))
		}
		whole = append(whole, w.Whole())
	}
	require.NoError(tb, w.End([]byte("the description")))
	require.EqualValues(tb, b.Len(), w.Whole())
	return b.Bytes(), whole
}

func sampleMark() *Mark {
	m := &Mark{StoreID: 5, BackupID: 0xabc, Offset: 1234, LastSeq: 1000}
	m.SetFiles([]File{{9, 90}, {7, 70}, {9, 90}})
	return m
}

// readAll returns the files of a stream, as text, and its description.
func readAll(r *Reader) (files map[File]string, description string, err error) {
	files = map[File]string{}
	for {
		f, ok, err := r.NextFile()
		if err != nil {
			return files, "", err
		}
		if !ok {
			return files, string(r.Description()), nil
		}
		var b []byte
		for {
			c, err := r.Chunk()
			if err != nil {
				return files, "", err
			}
			if c == nil {
				break
			}
			b = append(b, c...)
		}
		if int64(len(b)) != f.Size {
			return files, "", errors.New("a file has another size than it said")
		}
		files[f.File] = string(b)
	}
}

func TestGoldenStream(t *testing.T) {
	for _, hasBlobs := range []bool{false, true} {
		stream, whole := sampleOf(t, hasBlobs)
		src := bytes.NewReader(append(bytes.Clone(stream), "what follows"...))
		r, err := NewReader(iotest.OneByteReader(src))
		require.NoError(t, err)
		require.True(t, r.Started())
		require.Equal(t, *sampleHeader(hasBlobs), r.Header())
		files, description, err := readAll(r)
		require.NoError(t, err)
		require.Equal(t, map[File]string{{7, 70}: "01234567890123456789", {9, 90}: "abcdefghij"}, files)
		require.Equal(t, "the description", description)
		rest, err := io.ReadAll(src)
		require.NoError(t, err)
		require.Equal(t, "what follows", string(rest), "nothing past the end is read")

		r, err = NewReader(bytes.NewReader(stream))
		require.NoError(t, err)
		want := []Sent{{File{7, 70}, manifest.FileTable, 20}, {File{9, 90}, manifest.FileTable, 10}}
		name := "stream.golden"
		if hasBlobs {
			want[1].Kind, name = manifest.FileBlob, "stream-apart.golden"
		}
		for _, want := range want {
			f, ok, err := r.NextFile()
			require.NoError(t, err)
			require.True(t, ok)
			require.Equal(t, want, f)
		}
		require.Greater(t, r.Offset(), whole[0], "files are passed over")
		golden.File(t, filepath.Join("testdata", name), hex.Dump(stream))
	}
}

// A stream without blob files is as it ever was, and says so; one that has them is refused by what reads
// version 1 alone.
func TestOnlyStreamsOfVersion2HaveBlobFiles(t *testing.T) {
	var b bytes.Buffer
	w, err := NewWriter(&b, sampleHeader(false))
	require.NoError(t, err)
	require.EqualValues(t, 1, b.Bytes()[8])
	require.ErrorContains(t, w.File(manifest.FileBlob, File{14, 1}, 3), "000014.blob")
	require.Error(t, w.File(manifest.FileWAL, File{14, 1}, 3))
	stream := appendFrame(b.Bytes(), 0xabc, typeBlob, appendUint64s(nil, 14, 1, 3))
	r, err := NewReader(bytes.NewReader(stream))
	require.NoError(t, err)
	_, _, err = r.NextFile()
	require.ErrorIs(t, err, base.ErrCorruption)
	require.ErrorContains(t, err, "a stream of version 1 has none")
	withBlobs, _ := sampleOf(t, true)
	require.EqualValues(t, 2, withBlobs[8])
}

func TestAStreamIsResumed(t *testing.T) {
	stream, whole := sampleOf(t, true)
	r, err := NewReader(bytes.NewReader(stream[whole[0]:]))
	require.NoError(t, err)
	require.False(t, r.Started())
	r.Resume(0xabc, whole[0])
	files, description, err := readAll(r)
	require.NoError(t, err)
	require.Equal(t, map[File]string{{9, 90}: "abcdefghij"}, files)
	require.Equal(t, "the description", description)
	for _, wrong := range []struct {
		id uint64
		at int64
	}{{0xabd, whole[0]}, {0xabc, whole[1]}, {0xabc, 0}} {
		r, err := NewReader(bytes.NewReader(stream[whole[0]:]))
		require.NoError(t, err)
		r.Resume(wrong.id, wrong.at)
		_, _, err = readAll(r)
		require.ErrorIs(t, err, base.ErrCorruption)
	}
}

func TestEveryTruncationAndEveryBitOfAStream(t *testing.T) {
	stream, _ := sampleOf(t, true)
	read := func(b []byte) error {
		r, err := NewReader(bytes.NewReader(b))
		if err != nil {
			return err
		}
		if !r.Started() {
			return io.ErrUnexpectedEOF
		}
		_, _, err = readAll(r)
		return err
	}
	require.NoError(t, read(stream))
	for n := range stream {
		require.ErrorIs(t, read(stream[:n]), io.ErrUnexpectedEOF, "cut at %d", n)
		for bit := range 8 {
			b := bytes.Clone(stream)
			b[n] ^= 1 << bit
			if err := read(b); n < 28 || n >= preambleSize {
				require.Error(t, err, "bit %d of byte %d", bit, n)
			}
		}
	}
}

func TestNewerFormatsAreRefusedByName(t *testing.T) {
	b := sampleHeader(true).appendPreamble(nil)
	b[8] = FormatVersion + 1
	copy(b[24:], checksumOf(b[:24]))
	_, err := NewReader(bytes.NewReader(b))
	require.ErrorIs(t, err, manifest.ErrNewerFormat)
	m := sampleMark().Append(nil)
	m[8] = MarkVersion + 1
	_, err = DecodeMark(m)
	require.ErrorIs(t, err, base.ErrCorruption, "the checksum tells a damaged version from a newer one")
	copy(m[len(m)-4:], checksumOf(m[:len(m)-4]))
	_, err = DecodeMark(m)
	require.ErrorIs(t, err, manifest.ErrNewerFormat)
}

func checksumOf(b []byte) []byte {
	sum := base.Checksum(0, 0, b)
	return []byte{byte(sum), byte(sum >> 8), byte(sum >> 16), byte(sum >> 24)}
}

func TestGoldenMark(t *testing.T) {
	m := sampleMark()
	require.True(t, m.Has(File{7, 70}))
	require.False(t, m.Has(File{7, 71}))
	b := m.Append(nil)
	got, err := DecodeMark(b)
	require.NoError(t, err)
	require.Equal(t, m, got)
	golden.File(t, filepath.Join("testdata", "mark.golden"), hex.Dump(b))
	for n := range b {
		_, err := DecodeMark(b[:n])
		require.ErrorIs(t, err, base.ErrCorruption)
		bad := bytes.Clone(b)
		bad[n] ^= 4
		_, err = DecodeMark(bad)
		require.Error(t, err, "byte %d", n)
	}
}

// limited fails a writer after so many bytes.
type limited struct{ left int }

var errFull = errors.New("full")

func (l *limited) Write(b []byte) (int, error) {
	if len(b) > l.left {
		return 0, errFull
	}
	l.left -= len(b)
	return len(b), nil
}

func TestAWriterThatFailsKnowsWhatIsWhole(t *testing.T) {
	stream, whole := sample(t)
	for n := range stream {
		w, err := NewWriter(&limited{n}, &Header{BackupID: 1})
		if err != nil {
			require.ErrorIs(t, err, errFull)
			continue
		}
		for range 2 {
			if err == nil {
				err = w.File(manifest.FileTable, File{1, 1}, 20)
			}
			for range 2 {
				if err == nil {
					err = w.Data(make([]byte, 10))
				}
			}
		}
		if err == nil {
			err = w.End(nil)
		}
		if err != nil {
			require.ErrorIs(t, err, errFull)
		}
		require.LessOrEqual(t, w.Whole(), int64(n))
		if int64(n) >= whole[0] {
			require.GreaterOrEqual(t, w.Whole(), whole[0])
		}
	}
	w, err := NewWriter(io.Discard, &Header{BackupID: 1})
	require.NoError(t, err)
	require.Error(t, w.File(manifest.FileTable, File{}, 0))
	require.NoError(t, w.File(manifest.FileTable, File{}, 5))
	require.Error(t, w.File(manifest.FileTable, File{}, 5), "the file before is not whole")
	require.Error(t, w.Data(make([]byte, 6)))
}

func FuzzReader(f *testing.F) {
	stream, whole := sample(f)
	f.Add(stream, uint64(0), int64(0))
	f.Add(stream[whole[0]:], uint64(0xabc), whole[0])
	f.Add(stream[:100], uint64(1), int64(1))
	f.Fuzz(func(t *testing.T, b []byte, id uint64, offset int64) {
		r, err := NewReader(bytes.NewReader(b))
		if err != nil {
			return
		}
		if !r.Started() {
			r.Resume(id, offset)
		}
		files, description, err := readAll(r)
		size := len(description)
		for _, content := range files {
			size += len(content)
		}
		require.LessOrEqual(t, size, len(b))
		_ = err
	})
}

func FuzzDecodeMark(f *testing.F) {
	f.Add(sampleMark().Append(nil))
	f.Fuzz(func(t *testing.T, b []byte) {
		m, err := DecodeMark(b)
		if err == nil {
			require.Equal(t, b, m.Append(nil))
		}
	})
}
