package sstable

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"testing"

	"github.com/siftkv/siftkv/internal/base"
	"github.com/stretchr/testify/require"
)

var errUnread = errors.New("the device does not answer")

// A failingReader fails from its n-th read on.
type failingReader struct {
	io.ReaderAt
	left int
}

func (f *failingReader) ReadAt(b []byte, off int64) (int, error) {
	if f.left--; f.left < 0 {
		return 0, errUnread
	}
	return f.ReaderAt.ReadAt(b, off)
}

// A file that cannot be read is not damaged, at whatever read the error comes: also if a
// fault was found before.
func TestVerifyTellsWhatCannotBeReadFromDamage(t *testing.T) {
	var vs []version
	for i := range 400 {
		vs = append(vs, version{base.MakeKey(fmt.Appendf(nil, "key%04d", i), base.SeqNum(1+i), base.KindSet),
			[]byte("value")})
	}
	data, info := writeFile(t, &WriterOptions{BlockSize: 256, IndexPartition: 200, Filter: mustParse("blocked:10")}, vs)
	require.Greater(t, info.IndexLeaves, uint64(2))
	for _, damaged := range []bool{false, true} {
		data := bytes.Clone(data)
		if damaged {
			data[100] ^= 1
		}
		f := &failingReader{ReaderAt: bytes.NewReader(data), left: 1 << 30}
		r, err := NewReader(f, int64(len(data)), &ReaderOptions{CacheSize: -1})
		require.NoError(t, err)
		before := f.left
		require.Equal(t, damaged, errors.Is(r.Verify(), ErrCorruption))
		reads := before - f.left
		require.Greater(t, reads, 20)
		for n := range reads {
			f.left = n
			err := r.Verify()
			require.ErrorIs(t, err, errUnread, "read %d of %d", n, reads)
			require.NotErrorIs(t, err, ErrCorruption, "read %d of %d", n, reads)
		}
		f.left = 1 << 30
		require.Equal(t, damaged, errors.Is(r.Verify(), ErrCorruption))
		require.NoError(t, r.Close())
	}
}
