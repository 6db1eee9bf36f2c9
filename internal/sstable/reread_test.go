package sstable

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/filterpolicy"
	"github.com/siftkv/siftkv/internal/base"
)

// A noisyFile gives damaged bytes, unless it is asked again. It is read in parts if part is not 0.
type noisyFile struct {
	*bytes.Reader
	noisy, bad bool
	part       int
	again      int
}

func (f *noisyFile) PartSize() int { return f.part }

func (f *noisyFile) ReadAt(p []byte, off int64) (int, error) {
	n, err := f.Reader.ReadAt(p, off)
	if f.noisy {
		for i := 0; i < n; i += 50 {
			p[i] ^= 4
		}
	}
	return n, err
}

func (f *noisyFile) ReadAgain(p []byte, off int64) (int, error) {
	if f.again++; f.bad {
		return f.ReadAt(p, off)
	}
	return f.Reader.ReadAt(p, off)
}

func TestWhatIsDamagedOnItsWayIsReadAgain(t *testing.T) {
	for _, part := range []int{0, 4 << 10} {
		for _, o := range []WriterOptions{{}, {IndexPartition: 300}, {Compression: NoCompression}} {
			data := plainFile(t, 2000, o)
			f := &noisyFile{Reader: bytes.NewReader(data), noisy: true, part: part}
			r, err := NewReader(f, int64(len(data)), &ReaderOptions{CacheSize: -1})
			require.NoError(t, err)
			require.True(t, r.HasFilter())
			require.Positive(t, f.again)
			for i := range 20 {
				k := keyOf(i * 100)
				_, _, ok, err := r.Find(nil, k, filterpolicy.Hash(k), base.MaxSeqNum, new(Probe))
				require.NoError(t, err)
				require.True(t, ok)
			}
			for _, sequential := range []bool{false, true} {
				it, n := r.NewIter(IterOptions{Sequential: sequential}), 0
				for ok := it.First(); ok; ok = it.Next() {
					require.Equal(t, keyOf(n), it.User())
					n++
				}
				require.NoError(t, it.Error())
				require.Equal(t, 2000, n)
			}
			// Damage that stays is told.
			f.bad = true
			k := keyOf(7)
			_, _, _, err = r.Find(nil, k, filterpolicy.Hash(k), base.MaxSeqNum, new(Probe))
			require.ErrorIs(t, err, base.ErrCorruption)
			require.NoError(t, r.Close())
			_, err = NewReader(f, int64(len(data)), nil)
			require.ErrorIs(t, err, base.ErrCorruption)
		}
	}
}

// A flippedFile has a wrong bit wherever it is read, unless it is asked again.
type flippedFile struct {
	*bytes.Reader
	bit int64
}

func (f *flippedFile) ReadAt(p []byte, off int64) (int, error) {
	n, err := f.Reader.ReadAt(p, off)
	if at := f.bit/8 - off; at >= 0 && at < int64(n) {
		p[at] ^= 1 << (f.bit % 8)
	}
	return n, err
}

func (f *flippedFile) ReadAgain(p []byte, off int64) (int, error) { return f.Reader.ReadAt(p, off) }

// No bit of a footer makes a file unreadable, or one of a newer format, if it was damaged on its way.
func TestAFooterThatIsDamagedOnItsWayIsReadAgain(t *testing.T) {
	var file bytes.Buffer
	w := NewWriter(&file, &WriterOptions{ID: 7})
	require.NoError(t, w.Add(base.MakeKey([]byte("key"), 1, base.KindSet), []byte("value")))
	_, err := w.Finish()
	require.NoError(t, err)
	size := int64(file.Len())
	for bit := 8 * (size - footerSize); bit < 8*size; bit++ {
		r, err := NewReader(&flippedFile{bytes.NewReader(file.Bytes()), bit}, size, &ReaderOptions{CacheSize: -1})
		require.NoError(t, err, "bit %d", bit)
		_, err = r.Info()
		require.NoError(t, err, "bit %d", bit)
		require.NoError(t, r.Verify(), "bit %d", bit)
		require.NoError(t, r.Close())
	}
}
