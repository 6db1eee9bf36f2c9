package blob

import (
	"bytes"
	"io"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/internal/base"
	"github.com/siftkv/siftkv/internal/compression"
	"github.com/siftkv/siftkv/internal/vfs"
)

// A farFile is one of which each read is a request, and may come damaged.
type farFile struct {
	*bytes.Reader
	part    int
	reads   int
	again   int
	bytes   int
	damaged func(n int) bool // the nth read
}

func (f *farFile) ReadAt(p []byte, off int64) (int, error) {
	f.reads++
	f.bytes += len(p)
	n, err := f.Reader.ReadAt(p, off)
	if f.damaged != nil && n > 0 && f.damaged(f.reads) {
		for i := 0; i < n; i += 1 + n/16 {
			p[i] ^= 4
		}
	}
	return n, err
}

func (f *farFile) ReadAgain(p []byte, off int64) (int, error) {
	f.again++
	return f.Reader.ReadAt(p, off)
}

func (f *farFile) PartSize() int        { return f.part }
func (f *farFile) Size() (int64, error) { return f.Reader.Size(), nil }
func (f *farFile) Close() error         { return nil }

var (
	_ vfs.PartReader = (*farFile)(nil)
	_ vfs.Rereader   = (*farFile)(nil)
)

// farReader returns a reader of a far file with values of 16 KB and such of testValues.
func farReader(t *testing.T, part int) (*farFile, *Reader, []value) {
	rng := rand.New(rand.NewPCG(4, 5))
	vs := testValues(rng)
	for range 200 {
		b := make([]byte, 16<<10)
		for i := range b {
			b[i] = byte(rng.Uint32())
		}
		vs = append(vs, value{key: []byte("l"), seq: 3, bytes: b})
	}
	b, info := writeValues(t, compression.None, vs)
	f := &farFile{Reader: bytes.NewReader(b), part: part}
	r, err := NewReader(f, info.Size, ReaderOptions{Name: "far", ID: testID})
	require.NoError(t, err)
	return f, r, vs
}

// A pass takes a request for each part, after the first ones, also if it leaves records out.
func TestAPassReadsAhead(t *testing.T) {
	for _, every := range []int{1, 3} {
		for _, stream := range []bool{false, true} {
			f, r, vs := farReader(t, 1<<20)
			pass, w := r.Pass(1<<30), NewWriter(io.Discard, WriterOptions{Num: 15, ID: testID})
			for i := 0; i < len(vs); i += every {
				if stream {
					s, err := pass.OpenStream(vs[i].key, vs[i].handle)
					require.NoError(t, err)
					_, err = w.Copy(s)
					require.NoError(t, err)
					continue
				}
				got, err := pass.AppendValue(nil, vs[i].key, vs[i].handle)
				require.NoError(t, err)
				require.True(t, bytes.Equal(vs[i].bytes, got))
			}
			require.LessOrEqual(t, f.reads, 8+2*int(f.Reader.Size()>>20), "%d %v", every, stream)
			require.LessOrEqual(t, f.bytes, 2*int(f.Reader.Size()))
		}
	}
}

// Where the next record is far away, not much more is read than the record.
func TestAPassLeavesOutWhatIsFarApart(t *testing.T) {
	f, r, vs := farReader(t, 1<<20)
	pass, n := r.Pass(1<<30), 0
	for i := 20; i < len(vs); i += 50 {
		_, err := pass.AppendValue(nil, vs[i].key, vs[i].handle)
		require.NoError(t, err)
		n++
	}
	require.Equal(t, n, f.reads)
	require.LessOrEqual(t, f.bytes, n*vfs.FirstWindow)
}

func TestAPassOfAFileThatIsNear(t *testing.T) {
	_, r, _ := farReader(t, 1<<20)
	near, err := NewReader(bytes.NewReader(nil), r.size, ReaderOptions{ID: testID})
	require.NoError(t, err)
	require.Same(t, near, near.Pass(1<<30))
}

// Whatever reads are damaged on their way, nobody is told of damage that is not there, and no request is repeated
// more than once.
func TestNoScanNorPassFailsForADamagedReply(t *testing.T) {
	for name, damaged := range map[string]func(n int) bool{
		"none": nil, "all": func(int) bool { return true }, "some": func(n int) bool { return n%3 == 1 },
	} {
		for _, part := range []int{1, 100 << 10, 1 << 20} {
			f, r, vs := farReader(t, part)
			f.damaged = damaged
			require.NoError(t, r.Verify(14, nil), name)
			if damaged == nil {
				require.LessOrEqual(t, f.reads, 8+3*int(f.Reader.Size())/max(part, pieceSize))
				require.Zero(t, f.again)
			}
			require.LessOrEqual(t, f.again, f.reads+2)
			pass := r.Pass(1 << 30)
			for i := range vs {
				got, err := pass.AppendValue(nil, vs[i].key, vs[i].handle)
				require.NoError(t, err)
				require.True(t, bytes.Equal(vs[i].bytes, got))
			}
		}
	}
}

// What is damaged for good is told, and the file ends where it ends.
func TestAPassOverADamagedFile(t *testing.T) {
	f, r, vs := farReader(t, 1<<20)
	whole := make([]byte, f.Reader.Size())
	_, err := f.Reader.ReadAt(whole, 0)
	require.NoError(t, err)
	h := vs[50].handle
	whole[h.Offset+h.Length-10] ^= 1
	f.Reader = bytes.NewReader(whole[:vs[100].handle.Offset+5])
	pass := r.Pass(1 << 30)
	for i := range vs {
		got, err := pass.AppendValue(nil, vs[i].key, vs[i].handle)
		if i == 50 || i >= 100 {
			require.ErrorIs(t, err, base.ErrCorruption)
			continue
		}
		require.NoError(t, err, i)
		require.True(t, bytes.Equal(vs[i].bytes, got))
	}
	require.ErrorIs(t, r.Verify(14, nil), base.ErrCorruption)
	require.Less(t, f.again, 300)
	_, err = (&vfs.Ahead{File: f, Size: 1 << 40, Part: 1 << 20}).ReadAt(make([]byte, 10), 1<<39)
	require.ErrorIs(t, err, io.EOF)
}
