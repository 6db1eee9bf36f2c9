package vfs

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
)

// A lostFile is a file whose syncs may fail, and whose pages may be gone.
type lostFile struct {
	data   []byte
	synced int
	fail   error // of Sync
	eio    error // of reads beyond what was synced
}

func (f *lostFile) Write(p []byte) (int, error) { f.data = append(f.data, p...); return len(p), nil }
func (f *lostFile) Close() error                { return nil }
func (f *lostFile) Size() (int64, error)        { return int64(len(f.data)), nil }

// Sync drops, when it fails, what was not synced.
func (f *lostFile) Sync() error {
	if f.fail != nil {
		clear(f.data[f.synced:])
		return f.fail
	}
	f.synced = len(f.data)
	return nil
}

func (f *lostFile) ReadAt(p []byte, off int64) (int, error) {
	if end := off + int64(len(p)); f.eio != nil && end > int64(f.synced) {
		return copy(p, f.data[min(off, int64(f.synced)):f.synced]), f.eio
	}
	n := copy(p, f.data[min(off, int64(len(f.data))):])
	if n < len(p) {
		return n, io.EOF
	}
	return n, nil
}

// What a sync that failed has dropped is read from memory, at any offset, and what was synced is not in memory.
func TestTailFileHasWhatAFailedSyncDropped(t *testing.T) {
	t.Parallel()
	rng := rand.New(rand.NewPCG(1, 2))
	for _, read := range []error{nil, errors.New("input/output error")} {
		under := &lostFile{}
		f := NewTailFile(under)
		r, ok := f.Reader(under).(interface {
			ReadFile
			Rereader
		})
		require.True(t, ok)
		var all []byte
		write := func(n int) {
			b := make([]byte, n)
			for i := range b {
				b[i] = byte(rng.Uint32() | 1)
			}
			all = append(all, b...)
			m, err := f.Write(b)
			require.NoError(t, err)
			require.Equal(t, n, m)
		}
		for range 6 {
			write(rng.IntN(2 * tailChunk))
			require.NoError(t, f.Sync())
			require.Zero(t, f.Unsynced())
		}
		durable := len(all)
		for range 20 {
			write(rng.IntN(tailChunk / 2))
		}
		under.fail = errors.New("disk")
		require.ErrorIs(t, f.Sync(), under.fail)
		require.EqualValues(t, len(all)-durable, f.Unsynced())
		under.eio, under.fail = read, nil
		require.Error(t, f.Sync(), "a later sync proves nothing")
		require.NoError(t, f.Close())
		require.NoError(t, f.Close())
		require.ErrorIs(t, f.Sync(), fs.ErrClosed)
		for range 300 {
			off := rng.IntN(len(all))
			p := make([]byte, rng.IntN(min(len(all)-off, 3*tailChunk)+1))
			if read != nil {
				n, err := r.ReadAt(p, int64(off))
				require.NoError(t, err)
				require.Equal(t, len(p), n)
				require.True(t, bytes.Equal(all[off:off+len(p)], p))
			}
			n, err := r.ReadAgain(p, int64(off))
			require.NoError(t, err)
			require.Equal(t, len(p), n)
			require.True(t, bytes.Equal(all[off:off+len(p)], p))
		}
		_, err := r.ReadAgain(make([]byte, 2), int64(len(all)-1))
		require.Error(t, err, "the file ends before")
	}
}

// A TailFile holds no more than what is not synced, and a chunk.
func TestTailFileGivesUpWhatIsSynced(t *testing.T) {
	t.Parallel()
	f := NewTailFile(&lostFile{})
	for range 100 {
		_, err := f.Write(make([]byte, tailChunk/3))
		require.NoError(t, err)
		require.NoError(t, f.Sync())
		require.LessOrEqual(t, len(f.tail.chunks), 1)
	}
}
