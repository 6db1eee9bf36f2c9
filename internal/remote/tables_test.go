package remote

import (
	"bytes"
	"context"
	"errors"
	"io"
	"io/fs"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/objstore"
)

// A rig is tables in memory, with what was sent for them.
type rig struct {
	*Tables
	store  objstore.Store // below what is counted and spoiled
	counts *objstore.Counters
	spoil  atomic.Pointer[func(call int64, n int, err error) (int, error)] // of ranges and puts
	before atomic.Pointer[func(ctx context.Context) error]
	calls  atomic.Int64
}

// A spoiledStore is what a rig's tables are in.
type spoiledStore struct {
	objstore.Store
	r *rig
}

func (s spoiledStore) outcome(ctx context.Context, do func() (int, error)) (int, error) {
	call := s.r.calls.Add(1)
	if before := s.r.before.Load(); before != nil {
		if err := (*before)(ctx); err != nil {
			return 0, err
		}
	}
	n, err := do()
	if spoil := s.r.spoil.Load(); spoil != nil {
		return (*spoil)(call, n, err)
	}
	return n, err
}

func (s spoiledStore) GetRange(ctx context.Context, key string, off int64, p []byte) (int, error) {
	return s.outcome(ctx, func() (int, error) { return s.Store.GetRange(ctx, key, off, p) })
}

func (s spoiledStore) Put(ctx context.Context, key string, r io.ReaderAt, size int64) error {
	_, err := s.outcome(ctx, func() (int, error) { return 0, s.Store.Put(ctx, key, r, size) })
	return err
}

func newRig(t *testing.T, o TableOptions) *rig {
	r := &rig{store: objstore.NewMem(), counts: new(objstore.Counters)}
	r.Tables = NewTables(objstore.WithCounters(spoiledStore{r.store, r}, r.counts), o)
	t.Cleanup(func() { require.NoError(t, r.Close()) })
	return r
}

// requests returns how many requests of a kind do sends.
func (r *rig) requests(kind objstore.Kind, do func()) int64 {
	before := r.counts.Snapshot()
	do()
	return r.counts.Snapshot().Minus(before)[kind].Requests
}

// spoilUntil makes calls fail with err, until so many were made from now on.
func (r *rig) spoilUntil(calls int64, err error) {
	last := r.calls.Load() + calls
	spoil := func(call int64, n int, real error) (int, error) {
		if call <= last {
			return n / 2, err
		}
		return n, real
	}
	r.spoil.Store(&spoil)
}

func noise(seed uint64, n int) []byte {
	random, b := rand.NewChaCha8([32]byte{byte(seed), byte(seed >> 8)}), make([]byte, n)
	_, _ = random.Read(b)
	return b
}

// write uploads a file in writes of several sizes.
func (r *rig) write(t *testing.T, name string, data []byte) {
	t.Helper()
	f, err := r.Create(name)
	require.NoError(t, err)
	for n := 1; len(data) > 0; n = 2*n + 1 {
		n = min(n, len(data))
		m, err := f.Write(data[:n])
		require.NoError(t, err)
		require.Equal(t, n, m)
		data = data[n:]
	}
	require.NoError(t, f.Sync())
	require.NoError(t, f.Close())
}

func TestAFileIsReadAsItWasWritten(t *testing.T) {
	r := newRig(t, TableOptions{KeepBytes: -1})
	for _, size := range []int{0, 1, chunkSize - 1, chunkSize, chunkSize + 1, 3*chunkSize + 77} {
		name, data := "f"+string(rune('a'+size%26)), noise(uint64(size), size)
		require.EqualValues(t, 1, r.requests(objstore.Put, func() { r.write(t, name, data) }))
		f := r.Open(name, int64(size))
		n, err := f.Size()
		require.NoError(t, err)
		require.EqualValues(t, size, n)
		for _, off := range []int{0, 1, size / 2, max(size-1, 0), size, size + 1} {
			for _, length := range []int{0, 1, 100, size, size + 1} {
				p, want := make([]byte, length), make([]byte, length)
				var m, wantN int
				var err, wantErr error
				requests := r.requests(objstore.Get, func() { m, err = f.ReadAt(p, int64(off)) })
				if wantN, wantErr = bytes.NewReader(data).ReadAt(want, int64(off)); length == 0 {
					wantErr = nil
				}
				require.Equal(t, wantErr, err, "%d bytes at %d of %d", length, off, size)
				require.Equal(t, wantN, m)
				require.True(t, bytes.Equal(want, p))
				require.EqualValues(t, min(wantN, 1), requests)
			}
		}
		_, err = f.ReadAt(make([]byte, 1), -1)
		require.ErrorIs(t, err, fs.ErrInvalid)
		require.NoError(t, f.Close())
		_, err = f.ReadAt(make([]byte, 1), 0)
		require.ErrorIs(t, err, fs.ErrClosed)
		_, err = f.Size()
		require.ErrorIs(t, err, fs.ErrClosed)
		require.ErrorIs(t, f.Close(), fs.ErrClosed)
	}
}

func TestNothingIsUploadedBeforeSync(t *testing.T) {
	r := newRig(t, TableOptions{})
	f, err := r.Create("never")
	require.NoError(t, err)
	_, err = f.Write(noise(1, 5000))
	require.NoError(t, err)
	require.NoError(t, f.Close())
	require.Zero(t, r.counts.Snapshot().Total().Requests)
	_, err = f.Write([]byte("x"))
	require.ErrorIs(t, err, fs.ErrClosed)
	require.ErrorIs(t, f.Sync(), fs.ErrClosed)
	require.ErrorIs(t, f.Close(), fs.ErrClosed)
	_, err = r.Create("a//b")
	require.ErrorIs(t, err, objstore.ErrInvalidKey)
}

func TestASyncedFileIsComplete(t *testing.T) {
	r := newRig(t, TableOptions{})
	f, err := r.Create("file")
	require.NoError(t, err)
	_, err = f.Write([]byte("all of it"))
	require.NoError(t, err)
	require.NoError(t, f.Sync())
	_, err = f.Write([]byte("x"))
	require.ErrorIs(t, err, errUploaded)
	require.Zero(t, r.requests(objstore.Put, func() { require.NoError(t, f.Sync()) }))
	require.NoError(t, f.Close())
}

func TestAFailedUploadIsGivenUp(t *testing.T) {
	r := newRig(t, TableOptions{})
	failure := errors.New("access denied")
	r.spoilUntil(1, failure)
	f, err := r.Create("file")
	require.NoError(t, err)
	_, err = f.Write([]byte("data"))
	require.NoError(t, err)
	require.ErrorIs(t, f.Sync(), failure)
	require.ErrorIs(t, f.Sync(), errGivenUp)
	_, err = f.Write([]byte("x"))
	require.ErrorIs(t, err, errGivenUp)
	require.NoError(t, f.Close())
	require.NoError(t, r.Remove(t.Context(), "file"))
	require.EqualValues(t, 1, r.counts.Snapshot()[objstore.Put].Requests)
}

// Puts are repeated as long as nobody knows what came of them; names are never used again.
func TestUnknownOutcomesAreTriedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, TableOptions{})
		for _, err := range []error{objstore.ErrUnknown, objstore.ErrThrottled} {
			r.spoilUntil(tries-1, err)
			require.EqualValues(t, tries, r.requests(objstore.Put, func() { r.write(t, "file", []byte("data")) }))
		}
		r.spoilUntil(tries, objstore.ErrUnknown)
		require.ErrorIs(t, r.Put("file", bytes.NewReader([]byte("data")), 4), objstore.ErrUnknown)
	})
}

func TestBrokenRepliesAreReadAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, TableOptions{KeepBytes: -1})
		data := noise(1, 10000)
		r.write(t, "file", data)
		f := r.Open("file", int64(len(data)))
		for _, err := range []error{io.ErrUnexpectedEOF, objstore.ErrThrottled} {
			p := make([]byte, 4096)
			r.spoilUntil(tries-1, err)
			require.EqualValues(t, tries, r.requests(objstore.Get, func() {
				n, err := f.ReadAt(p, 100)
				require.NoError(t, err)
				require.Equal(t, len(p), n)
			}))
			require.True(t, bytes.Equal(data[100:100+4096], p))
		}
		// A store that never gives all of it is not a file that is too short: that would be damage.
		r.spoilUntil(tries, io.ErrUnexpectedEOF)
		_, err := f.ReadAt(make([]byte, 4096), 100)
		require.ErrorIs(t, err, errBrokenOff)
		require.NotErrorIs(t, err, io.ErrUnexpectedEOF)
		require.NotErrorIs(t, err, io.EOF)
		require.NoError(t, f.Close())
	})
}

func TestAShorterObjectIsAFileThatEnds(t *testing.T) {
	r := newRig(t, TableOptions{KeepBytes: -1})
	r.write(t, "file", []byte("short"))
	n, err := r.Open("file", 100).ReadAt(make([]byte, 50), 0)
	require.Equal(t, 5, n)
	require.ErrorIs(t, err, io.EOF)
}

func TestAMissingFileIsSaidToBeMissing(t *testing.T) {
	r := newRig(t, TableOptions{})
	f := r.Open("none", 100)
	_, err := f.ReadAt(make([]byte, 10), 0)
	require.ErrorIs(t, err, fs.ErrNotExist)
	require.ErrorIs(t, err, objstore.ErrNotExist)
	require.NoError(t, r.Remove(t.Context(), "none"))
}

func TestReadsHaveADeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, TableOptions{ReadTimeout: time.Minute, KeepBytes: -1})
		r.write(t, "file", []byte("data"))
		hang := func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }
		r.before.Store(&hang)
		begun := time.Now()
		_, err := r.Open("file", 4).ReadAt(make([]byte, 4), 0)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.Equal(t, time.Minute, time.Since(begun))
		require.ErrorIs(t, r.Put("other", bytes.NewReader(nil), 0), context.DeadlineExceeded)
	})
}

// Closing a file, or all tables, does not wait for a store that does not answer.
func TestCloseEndsReads(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, TableOptions{KeepBytes: -1})
		r.write(t, "file", []byte("data"))
		hang := func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }
		r.before.Store(&hang)
		begun := time.Now()
		for _, stop := range []func(f io.Closer) error{io.Closer.Close, func(io.Closer) error { return r.Close() }} {
			f := r.Open("file", 4)
			failed := make(chan error)
			go func() {
				_, err := f.ReadAt(make([]byte, 4), 0)
				failed <- err
			}()
			synctest.Wait()
			go func() { require.NoError(t, stop(f)) }()
			require.ErrorIs(t, <-failed, context.Canceled)
		}
		require.Zero(t, time.Since(begun))
	})
}

func TestReadsAtATimeAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const most, readers = 3, 20
		r := newRig(t, TableOptions{MaxReads: most, KeepBytes: -1})
		data := noise(2, readers*100)
		r.write(t, "file", data)
		var flying atomic.Int64
		slow := func(context.Context) error {
			if flying.Add(1) > most {
				t.Error("too many reads at a time")
			}
			time.Sleep(time.Second)
			flying.Add(-1)
			return nil
		}
		r.before.Store(&slow)
		f, begun := r.Open("file", int64(len(data))), time.Now()
		var all sync.WaitGroup
		for i := range readers {
			all.Go(func() {
				p := make([]byte, 100)
				_, err := f.ReadAt(p, int64(i*100))
				require.NoError(t, err)
				require.True(t, bytes.Equal(data[i*100:][:100], p))
			})
		}
		all.Wait()
		require.Equal(t, (readers+most-1)/most*time.Second, time.Since(begun), "as many at a time as may")
	})
}

func TestWhoHasWrittenAFileOpensItWithoutARequest(t *testing.T) {
	r := newRig(t, TableOptions{KeepBytes: 30000})
	data := noise(3, 20000)
	r.write(t, "file", data)
	f, p := r.Open("file", 20000), make([]byte, 5000)
	read := func(off int64) {
		_, err := f.ReadAt(p, off)
		require.NoError(t, err)
		require.True(t, bytes.Equal(data[off:off+5000], p))
	}
	require.Zero(t, r.requests(objstore.Get, func() { read(0); read(15000) }))
	require.EqualValues(t, 1, r.requests(objstore.Get, func() { read(15000) }), "only once")

	for _, name := range []string{"a", "b", "c"} {
		r.write(t, name, data)
	}
	require.EqualValues(t, 20000, r.fresh.size)
	f = r.Open("b", 20000)
	require.EqualValues(t, 1, r.requests(objstore.Get, func() { read(15000) }), "c has its memory")
	require.NoError(t, r.Remove(t.Context(), "c"))
	require.Zero(t, r.fresh.size)
	f = r.Open("c", 20000)
	_, err := f.ReadAt(p, 15000)
	require.ErrorIs(t, err, fs.ErrNotExist)
	r.write(t, "large", noise(4, 100000))
	f, data = r.Open("large", 100000), noise(4, 100000)
	require.EqualValues(t, 1, r.requests(objstore.Get, func() { read(0); read(95000) }), "its end is there")
}
