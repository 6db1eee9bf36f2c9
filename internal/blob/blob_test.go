package blob

import (
	"bytes"
	"fmt"
	"io"
	"math/rand/v2"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/siftkv/siftkv/internal/base"
	"github.com/siftkv/siftkv/internal/compression"
	"github.com/siftkv/siftkv/internal/racebuild"
	"github.com/stretchr/testify/require"
)

// A value is what a test puts into a file, and its handle.
type value struct {
	key    []byte
	seq    base.SeqNum
	expiry uint64
	bytes  []byte
	handle Handle
}

// testValues are values of all kinds: empty, short, of one piece, of a piece and a byte, of several;
// some shrink, and some keys have versions.
func testValues(rng *rand.Rand) (vs []value) {
	random := func(n int) []byte {
		b := make([]byte, n)
		for i := range b {
			b[i] = byte(rng.Uint32())
		}
		return b
	}
	for i, n := range []int{0, 1, 40, 5000, pieceSize, pieceSize + 1, 3*pieceSize - 7} {
		key := fmt.Appendf(nil, "key/%03d", i)
		vs = append(vs, value{key: key, seq: 1 << 40, expiry: uint64(i), bytes: random(n)},
			value{key: key, seq: 7, bytes: bytes.Repeat([]byte("text"), n/4)})
	}
	return vs
}

const testID = 0x1234567890abcdef

func writeValues(tb testing.TB, kind compression.Kind, vs []value) ([]byte, Info) {
	tb.Helper()
	var buf bytes.Buffer
	w := NewWriter(&buf, WriterOptions{Num: 14, ID: testID, Compression: kind})
	for i := range vs {
		v := &vs[i]
		var err error
		v.handle, err = w.Add(v.key, v.seq, v.expiry, v.bytes)
		require.NoError(tb, err)
	}
	size := w.Size()
	info, err := w.Finish()
	require.NoError(tb, err)
	require.EqualValues(tb, buf.Len(), info.Size)
	require.Equal(tb, size, info.Size)
	return buf.Bytes(), info
}

func openFile(tb testing.TB, f io.ReaderAt, size int) *Reader {
	tb.Helper()
	r, err := NewReader(f, int64(size), ReaderOptions{Name: "000014.blob", ID: testID})
	require.NoError(tb, err)
	return r
}

func open(tb testing.TB, data []byte) *Reader { return openFile(tb, bytes.NewReader(data), len(data)) }

// rooms are slices that values are appended to: none, one without room, with room for a value, and
// with room for its record.
func rooms(size int) [][]byte {
	return [][]byte{nil, {}, []byte("some"), append(make([]byte, 0, 4+size), "some"...),
		append(make([]byte, 0, 500+size+size/1000), "some"...)}
}

func TestValuesComeBack(t *testing.T) {
	for _, kind := range []compression.Kind{compression.None, compression.Snappy, compression.Zstd} {
		vs := testValues(rand.New(rand.NewPCG(1, uint64(kind))))
		data, info := writeValues(t, kind, vs)
		r := open(t, data)
		want := Info{Num: 14, ID: testID, Size: int64(len(data)), Records: uint64(len(vs))}
		for i, v := range vs {
			require.EqualValues(t, i, v.handle.Ordinal)
			want.KeyBytes += uint64(len(v.key))
			want.ValueBytes += uint64(len(v.bytes))
			for _, dst := range rooms(len(v.bytes)) {
				got, err := r.AppendValue(dst, v.key, v.handle)
				require.NoError(t, err)
				require.True(t, string(dst)+string(v.bytes) == string(got), "%s, %d bytes", kind, len(v.bytes))
			}
			s, err := r.OpenStream(v.key, v.handle)
			require.NoError(t, err)
			require.EqualValues(t, len(v.bytes), s.Size())
			require.NoError(t, iotest.TestReader(s, v.bytes))
		}
		require.Equal(t, want, info)
		said, err := ReadInfo(bytes.NewReader(data), int64(len(data)), "")
		require.NoError(t, err)
		said.Num = 14
		require.Equal(t, info, said)
		requireScan(t, r, vs)
		require.NoError(t, r.Verify(14, nil))
		require.NoError(t, r.Close())
	}
}

func requireScan(t *testing.T, r *Reader, vs []value) {
	t.Helper()
	s, err := NewScanner(r)
	require.NoError(t, err)
	for _, v := range vs {
		require.True(t, s.Next(), "%v", s.Err())
		require.Equal(t, v.handle, s.Handle(14))
		rec := s.Record()
		require.Equal(t, []any{string(v.key), v.seq, v.expiry}, []any{string(rec.Key), rec.Seq, rec.Expiry})
		got, err := s.Value([]byte("x"))
		require.NoError(t, err)
		require.True(t, "x"+string(v.bytes) == string(got))
		require.NoError(t, s.Check())
	}
	require.False(t, s.Next())
	require.NoError(t, s.Err())
}

// A value that is read piece by piece is stored as one that is in memory, uncompressed; a copy as its
// original, with its number.
func TestStreamsAndCopiesAreStoredAsValues(t *testing.T) {
	vs := testValues(rand.New(rand.NewPCG(1, 1)))
	want, _ := writeValues(t, compression.None, vs)
	var streamed, copied bytes.Buffer
	w := NewWriter(&streamed, WriterOptions{Num: 14, ID: testID})
	for _, v := range vs {
		src := io.MultiReader(iotest.HalfReader(bytes.NewReader(v.bytes)), strings.NewReader("more"))
		h, err := w.AddFrom(v.key, v.seq, v.expiry, int64(len(v.bytes)), src)
		require.NoError(t, err)
		require.Equal(t, v.handle, h)
	}
	_, err := w.Finish()
	require.NoError(t, err)
	require.True(t, bytes.Equal(want, streamed.Bytes()))

	snappy, _ := writeValues(t, compression.Snappy, vs)
	r, c := open(t, snappy), NewWriter(&copied, WriterOptions{Num: 14, ID: testID, Compression: compression.Zstd})
	for _, v := range vs {
		s, err := r.OpenStream(v.key, v.handle)
		require.NoError(t, err)
		h, err := c.Copy(s)
		require.NoError(t, err)
		require.Equal(t, v.handle, h)
	}
	_, err = c.Finish()
	require.NoError(t, err)
	require.True(t, bytes.Equal(snappy, copied.Bytes()))
}

func TestWritersRefuse(t *testing.T) {
	for name, add := range map[string]func(w *Writer) error{
		"descend": func(w *Writer) error {
			_, err := w.Add([]byte("a"), 1, 0, nil)
			return err
		},
		"limits": func(w *Writer) error {
			_, err := w.Add(make([]byte, MaxKey+1), 1, 0, nil)
			return err
		},
		"a value of 1073741825": func(w *Writer) error {
			_, err := w.AddFrom([]byte("c"), 1, 0, MaxValue+1, strings.NewReader(""))
			return err
		},
		"unexpected EOF": func(w *Writer) error {
			_, err := w.AddFrom([]byte("c"), 1, 0, 3, strings.NewReader("ab"))
			return err
		},
		"no sequence number": func(w *Writer) error {
			_, err := w.Add([]byte("c"), base.MaxSeqNum+1, 0, nil)
			return err
		},
	} {
		w := NewWriter(&bytes.Buffer{}, WriterOptions{Num: 1})
		_, err := w.Add([]byte("b"), 1, 0, []byte("value"))
		require.NoError(t, err)
		require.ErrorContains(t, add(w), name)
		_, err = w.Add([]byte("z"), 1, 0, nil)
		require.ErrorContains(t, err, name, "errors stay")
		_, err = w.Finish()
		require.ErrorContains(t, err, name)
	}
	w := NewWriter(&failingWriter{}, WriterOptions{Num: 1, Compression: compression.None})
	_, err := w.Add([]byte("b"), 1, 0, make([]byte, 2*writeBuffer))
	require.ErrorIs(t, err, io.ErrShortWrite)
	w = NewWriter(&bytes.Buffer{}, WriterOptions{Num: 1})
	_, err = w.Finish()
	require.NoError(t, err)
	_, err = w.Finish()
	require.ErrorIs(t, err, errFinished)
}

type failingWriter struct{}

func (failingWriter) Write([]byte) (int, error) { return 0, io.ErrShortWrite }

// A countingFile counts reads.
type countingFile struct {
	bytes.Reader
	reads int
}

func (f *countingFile) ReadAt(p []byte, off int64) (int, error) {
	f.reads++
	return f.Reader.ReadAt(p, off)
}

func TestAValueIsOneRead(t *testing.T) {
	vs := testValues(rand.New(rand.NewPCG(1, 2)))
	data, _ := writeValues(t, compression.Snappy, vs)
	f := &countingFile{Reader: *bytes.NewReader(data)}
	r := openFile(t, f, len(data))
	for _, v := range vs {
		_, err := r.AppendValue(nil, v.key, v.handle)
		require.NoError(t, err)
	}
	require.Equal(t, len(vs), f.reads, "opening reads nothing, a value takes one read")
}

// What is appended ends with the value: memory behind it, which may be another's, is not touched.
func TestMemoryBehindAValueIsNotTouched(t *testing.T) {
	for _, kind := range []compression.Kind{compression.None, compression.Snappy, compression.Zstd} {
		vs := testValues(rand.New(rand.NewPCG(1, 3)))
		long := make([]byte, 2*maxPooled)
		_, _ = rand.NewChaCha8([32]byte{}).Read(long)
		vs = append(vs, value{key: []byte("l"), bytes: long}, value{key: []byte("m"),
			bytes: append(bytes.Repeat([]byte("text to find again"), 20_000), long[:9000]...)})
		data, _ := writeValues(t, kind, vs)
		for _, far := range []bool{false, true} {
			var f io.ReaderAt = bytes.NewReader(data)
			if far {
				f = &rereadFile{Reader: *bytes.NewReader(data), good: data}
			}
			r := openFile(t, f, len(data))
			for _, v := range vs {
				for _, damaged := range []bool{false, true} {
					slab := bytes.Repeat([]byte("#"), 10+len(v.bytes)+1000)
					h := v.handle
					if damaged {
						h.Offset++
					}
					got, err := r.AppendValue(slab[:10], v.key, h)
					require.Equal(t, damaged, err != nil)
					if !damaged {
						require.True(t, bytes.Equal(v.bytes, got[10:]))
					}
					untouched := strings.Repeat("#", 1000) == string(slab[10+len(v.bytes):])
					require.True(t, untouched, "%s, %d bytes", kind, len(v.bytes))
				}
			}
		}
	}
}

func TestReadsIntoRoomAllocateNothing(t *testing.T) {
	vs := []value{{key: []byte("key"), bytes: bytes.Repeat([]byte("0123456789abcdef"), 1000)}}
	for _, kind := range []compression.Kind{compression.None, compression.Snappy} {
		data, _ := writeValues(t, kind, vs)
		r := open(t, data)
		for _, room := range []int{16000, 17000} {
			dst := make([]byte, 0, room)
			least := testing.AllocsPerRun(100, func() {
				if _, err := r.AppendValue(dst, vs[0].key, vs[0].handle); err != nil {
					panic(err)
				}
			})
			if !racebuild.Enabled { // its pools forget
				require.Zero(t, least, "%s, room for %d", kind, room)
			}
		}
	}
}

// A rereadFile gives damaged bytes, and good ones past its cache.
type rereadFile struct {
	bytes.Reader
	good []byte
}

func (f *rereadFile) ReadAgain(p []byte, off int64) (int, error) { return copy(p, f.good[off:]), nil }

func TestDamageOnTheWayIsReadAgain(t *testing.T) {
	vs := testValues(rand.New(rand.NewPCG(1, 3)))
	data, _ := writeValues(t, compression.None, vs)
	bad := bytes.Clone(data)
	for i := range bad {
		bad[i] ^= 0x40
	}
	r := openFile(t, &rereadFile{*bytes.NewReader(bad), data}, len(data))
	for _, v := range vs {
		got, err := r.AppendValue(nil, v.key, v.handle)
		require.NoError(t, err)
		require.True(t, bytes.Equal(v.bytes, got))
		s, err := r.OpenStream(v.key, v.handle)
		require.NoError(t, err)
		got, err = io.ReadAll(s)
		require.NoError(t, err)
		require.True(t, bytes.Equal(v.bytes, got))
	}
}
