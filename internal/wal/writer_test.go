package wal

import (
	"bytes"
	"errors"
	"io"
	"slices"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/internal/base"
	"github.com/siftkv/siftkv/internal/vfs"
)

var errDisk = errors.New("the disk is on fire")

// faulty fails one call, by its number, and counts the calls that come after.
type faulty struct {
	capture
	failAt int
	short  bool // a write that fails is done in part
	silent bool // and reports no error
	after  int
}

func (f *faulty) fails() bool {
	f.failAt--
	if f.failAt < -1 {
		f.after++
	}
	return f.failAt == -1
}

func (f *faulty) Write(p []byte) (int, error) {
	if !f.fails() {
		return f.capture.Write(p)
	}
	n := 0
	if f.short {
		n, _ = f.capture.Write(p[:len(p)/2])
	}
	if f.silent {
		return n, nil
	}
	return n, errDisk
}

func (f *faulty) Sync() error {
	if f.fails() {
		return errDisk
	}
	return f.capture.Sync()
}

func TestFailureIsForGood(t *testing.T) {
	const calls = 6 // three records, each written and synced
	for failAt := range calls {
		for _, short := range []bool{false, true} {
			f := &faulty{failAt: failAt, short: short}
			w := NewWriter(f, testID)
			var err error
			var acknowledged [][]byte
			for i := range 3 {
				rec := record(i, 500)
				if err = w.Append(rec); err != nil {
					break
				}
				if err = w.Sync(); err != nil {
					break
				}
				acknowledged = append(acknowledged, rec)
			}
			require.ErrorIs(t, err, errDisk)
			require.ErrorContains(t, err, "log 42")
			require.Len(t, acknowledged, failAt/2)
			for range 2 {
				require.Equal(t, err, w.Append(nil))
				require.Equal(t, err, w.Flush())
				require.Equal(t, err, w.SyncFile())
				require.Equal(t, err, w.Sync())
			}
			require.Equal(t, err, w.Close())
			require.ErrorIs(t, w.Close(), base.ErrClosed)
			require.Zero(t, f.after, "nothing is tried again")
			require.Equal(t, "close", f.calls[len(f.calls)-1])

			r := NewReader(content(f.Bytes()), "f", testID)
			got, err := readAll(r)
			require.GreaterOrEqual(t, len(got), len(acknowledged))
			for i := range got {
				require.Equal(t, record(i, 500), got[i])
			}
			require.False(t, r.Clean())
			require.NotErrorIs(t, err, base.ErrCorruption)
		}
	}
}

func TestShortWriteWithoutAnError(t *testing.T) {
	f := &faulty{short: true, silent: true}
	w := NewWriter(f, testID)
	require.NoError(t, w.Append([]byte("record")))
	require.ErrorIs(t, w.Flush(), io.ErrShortWrite)
	require.ErrorIs(t, w.Append(nil), io.ErrShortWrite)
}

func TestFailureInClose(t *testing.T) {
	// write, sync | end mark: write, sync
	for failAt := range 4 {
		f := &faulty{failAt: failAt}
		w := NewWriter(f, testID)
		require.NoError(t, w.Append([]byte("record")))
		require.ErrorIs(t, closeSynced(w), errDisk)
		require.Zero(t, f.after)
		require.Equal(t, "close", f.calls[len(f.calls)-1])
	}
}

func TestNothingIsWrittenBeforeFlush(t *testing.T) {
	var f capture
	w := NewWriter(&f, testID)
	require.EqualValues(t, fileHeaderSize, w.Size())
	for i := range 10 {
		require.NoError(t, w.Append(record(i, 10000)))
	}
	require.Empty(t, f.calls)
	require.EqualValues(t, w.Buffered(), w.Size())
	require.NoError(t, w.SyncFile())
	require.Empty(t, f.calls, "nothing was flushed, so there is nothing to sync")
	require.NoError(t, w.Flush())
	require.NoError(t, w.Flush())
	require.Equal(t, []string{"write"}, f.calls, "a flush is one write, or none")
	require.Zero(t, w.Buffered())
	require.EqualValues(t, f.Len(), w.Size())
}

// A large record is not held in memory: all but its last part is handed over as it is appended.
func TestALargeRecordIsWrittenInPieces(t *testing.T) {
	var f capture
	w := NewWriter(&f, testID)
	large := record(1, 10*maxRetainedBuffer)
	require.NoError(t, w.Append(record(0, 1000)))
	require.NoError(t, w.Append(large))
	require.LessOrEqual(t, cap(w.buf), maxRetainedBuffer)
	require.Greater(t, len(f.calls), 10)
	r := NewReader(content(slices.Clone(f.Bytes())), "log", testID)
	_, err := r.Next()
	require.NoError(t, err)
	_, err = r.Next()
	require.ErrorIs(t, err, ErrTornTail, "no part of it is there before Flush")
	require.NoError(t, w.Flush())
	require.NoError(t, w.Append(record(2, 1000)))
	require.NoError(t, w.Flush())

	r = NewReader(content(f.Bytes()), "log", testID)
	first, err := r.Next()
	require.NoError(t, err)
	first = r.Take(first)
	second, err := r.Next()
	require.NoError(t, err)
	second = r.Take(second)
	third, err := r.Next()
	require.NoError(t, err)
	require.Equal(t, record(2, 1000), third)
	require.Equal(t, record(0, 1000), first, "what was taken stays")
	require.True(t, bytes.Equal(large, second))
}

func TestAppendCopies(t *testing.T) {
	var f capture
	w := NewWriter(&f, testID)
	rec := []byte("record")
	require.NoError(t, w.Append(rec))
	clear(rec)
	require.NoError(t, w.Close())
	requireClean(t, f.Bytes(), [][]byte{[]byte("record")})
}

// closeSynced closes a log that is whole whatever happens next: the records are made
// durable before the mark is written, and the mark too.
func closeSynced(w *Writer) error {
	err := w.Sync()
	if err == nil {
		err = w.End()
	}
	if err == nil {
		err = w.Sync()
	}
	if cerr := w.Close(); err == nil {
		err = cerr
	}
	return err
}

// The next log writes from the memory of the one before, which is whole without it.
func TestTakeBuffer(t *testing.T) {
	var files [2]capture
	before, next := NewWriter(&files[0], 7), NewWriter(&files[1], 8)
	require.NoError(t, before.Append(make([]byte, 10_000)))
	next.TakeBuffer(before)
	require.Less(t, cap(next.buf), 10_000, "a log that has not ended keeps its buffer")
	require.NoError(t, before.End())
	next.TakeBuffer(before)
	require.GreaterOrEqual(t, cap(next.buf), 10_000)
	require.Nil(t, before.buf)

	record := make([]byte, 5000)
	memory := &next.buf[0]
	require.NoError(t, next.Append(record))
	require.Same(t, memory, &next.buf[0])
	require.NoError(t, next.Close())
	require.NoError(t, before.SyncFile())
	require.NoError(t, before.Close())

	var plain [2]capture
	for i, size := range []int{10_000, 5000} {
		w := NewWriter(&plain[i], uint64(7+i))
		require.NoError(t, w.Append(make([]byte, size)))
		require.NoError(t, w.Close())
		require.Equal(t, plain[i].Bytes(), files[i].Bytes())
	}
}

func TestCloseOrder(t *testing.T) {
	for _, c := range []struct {
		name  string
		close func(*Writer) error
		sync  bool // before close
		calls []string
	}{
		{"no sync", (*Writer).Close, false, []string{"write", "close"}},
		{"records first", closeSynced, false, []string{"write", "sync", "write", "sync", "close"}},
		{"already synced", closeSynced, true, []string{"write", "sync", "write", "sync", "close"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			var f capture
			w := NewWriter(&f, testID)
			require.NoError(t, w.Append([]byte("record")))
			if c.sync {
				require.NoError(t, w.Sync())
			}
			end := w.Size()
			require.NoError(t, c.close(w))
			require.Equal(t, c.calls, f.calls)
			require.ErrorIs(t, w.Append(nil), base.ErrClosed)
			require.ErrorIs(t, w.Flush(), base.ErrClosed)
			require.ErrorIs(t, w.Close(), base.ErrClosed)
			if len(c.calls) > 2 {
				require.NoError(t, w.SyncFile(), "all that was flushed is durable")
			} else {
				require.ErrorIs(t, w.SyncFile(), base.ErrClosed)
			}

			r := NewReader(content(f.Bytes()), "f", testID)
			_, err := readAll(r)
			require.Equal(t, io.EOF, err)
			require.True(t, r.Clean())
			if len(c.calls) > 2 {
				require.Equal(t, end, r.SyncedTo(), "the mark vouches for all records")
			} else {
				require.Zero(t, r.SyncedTo())
			}
		})
	}
}

func TestSyncMarks(t *testing.T) {
	var f capture
	w := NewWriter(&f, testID)
	appendAndFlush := func() int64 {
		require.NoError(t, w.Append(record(1, 100)))
		require.NoError(t, w.Flush())
		return w.Size()
	}
	appendAndFlush()
	synced := appendAndFlush()
	require.NoError(t, w.SyncFile())
	appendAndFlush() // carries the mark
	marked := appendAndFlush()
	require.Equal(t, synced+minRoom+2*(headerSize+100), marked, "one mark per sync")
	for n, want := range map[int64]int64{synced: 0, synced + minRoom: synced, marked: synced} {
		r := NewReader(content(f.Bytes()[:n]), "f", testID)
		_, err := readAll(r)
		require.Equal(t, io.EOF, err)
		require.Equal(t, want, r.SyncedTo())
	}
}

// A mark may be the last thing in a log, be cut short, be followed by another, and come after a block's end. It is
// written only if it says more than the last.
func TestMarksWithoutRecordsAfterThem(t *testing.T) {
	var f capture
	w := NewWriter(&f, testID)
	require.NoError(t, w.Sync())
	require.NoError(t, w.Mark())
	require.EqualValues(t, fileHeaderSize, w.Size(), "a log without records gets none")
	require.NoError(t, w.Append(record(1, blockSize-fileHeaderSize-minRoom-headerSize-5))) // with a mark of the header
	require.NoError(t, w.Mark())
	require.Zero(t, f.Len()-fileHeaderSize, "nothing is synced")
	records, marks := []int64{w.Size()}, []int64{}
	for range 3 {
		require.NoError(t, w.Sync())
		require.NoError(t, w.Mark())
		require.NoError(t, w.Mark())
		marks = append(marks, w.Size())
	}
	w.HoldMarks(true)
	require.NoError(t, w.Sync())
	require.NoError(t, w.Append(record(2, 100)))
	require.NoError(t, w.Mark())
	records = append(records, w.Size())
	require.NoError(t, w.Flush())
	require.Equal(t, marks[2]+headerSize+100, records[1], "marks are held")
	w.HoldMarks(false)
	require.NoError(t, w.Sync())
	require.NoError(t, w.Mark())
	marks = append(marks, w.Size())
	require.EqualValues(t, records[0]+minRoom+5, marks[0], "it is in the next block")
	for n := records[0]; n <= w.Size(); n++ {
		r := NewReader(content(f.Bytes()[:n]), "f", testID)
		got, err := readAll(r)
		want := 1
		if n >= records[1] {
			want = 2
		}
		require.Len(t, got, want)
		if !errors.Is(err, io.EOF) {
			require.ErrorIs(t, err, ErrTornTail)
			require.True(t, r.CrashExplains(err))
		}
		proved := int64(0)
		if n >= marks[0] {
			proved = records[0]
		}
		if n == w.Size() {
			proved = records[1]
		}
		require.GreaterOrEqual(t, r.SyncedTo(), proved)
		require.LessOrEqual(t, r.SyncedTo(), n)
	}
	w.HoldMarks(true)
	require.NoError(t, w.Sync())
	require.NoError(t, w.End())
	require.NoError(t, w.Mark())
	r := NewReader(content(f.Bytes()), "f", testID)
	_, err := readAll(r)
	require.Equal(t, io.EOF, err)
	require.Equal(t, records[1], r.SyncedTo(), "the end says what the last mark does")
	broken := errors.New("broken")
	w.Break(broken)
	require.ErrorIs(t, w.Mark(), broken)
}

// gate is a file whose Sync waits to be let through.
type gate struct {
	capture
	entered, leave chan struct{}
	syncs          int
	err            error
}

func (g *gate) Sync() error {
	g.entered <- struct{}{}
	<-g.leave
	g.syncs++
	return g.err
}

func TestSyncFileCoversWhatWasFlushedBefore(t *testing.T) {
	g := &gate{entered: make(chan struct{}), leave: make(chan struct{})}
	w := NewWriter(g, testID)
	require.NoError(t, w.Append([]byte("before")))
	require.NoError(t, w.Flush())
	before := w.Size()
	var wg sync.WaitGroup
	wg.Go(func() { assert.NoError(t, w.SyncFile()) })
	<-g.entered
	require.NoError(t, w.Append([]byte("meanwhile")), "a sync holds up no appends")
	require.NoError(t, w.Flush())
	for range 3 {
		wg.Go(func() { assert.NoError(t, w.SyncFile()) })
	}
	g.leave <- struct{}{}
	<-g.entered // one of the three; it covers the others
	require.Equal(t, before, w.synced.Load())
	g.leave <- struct{}{}
	wg.Wait()
	require.Equal(t, 2, g.syncs)
	require.Equal(t, w.Size(), w.synced.Load())
}

func TestWaitingSyncsSeeAnEarlierFailure(t *testing.T) {
	g := &gate{entered: make(chan struct{}), leave: make(chan struct{}), err: errDisk}
	w := NewWriter(g, testID)
	require.NoError(t, w.Append([]byte("record")))
	require.NoError(t, w.Flush())
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() { assert.ErrorIs(t, w.SyncFile(), errDisk) })
	}
	<-g.entered
	g.leave <- struct{}{}
	wg.Wait()
	require.Equal(t, 1, g.syncs, "the kernel would tell only one of two")
	require.ErrorIs(t, w.Append(nil), errDisk)
}

func TestConcurrentSyncs(t *testing.T) {
	var f capture
	w := NewWriter(&syncedCapture{capture: &f}, testID)
	var records [][]byte
	var wg sync.WaitGroup
	stop := make(chan struct{})
	for range 3 {
		wg.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
					assert.NoError(t, w.SyncFile())
				}
			}
		})
	}
	for i := range 2000 {
		records = append(records, record(i, 80))
		require.NoError(t, w.Append(records[i]))
		if i%3 == 0 {
			require.NoError(t, w.Flush())
		}
	}
	require.NoError(t, closeSynced(w))
	close(stop)
	wg.Wait()
	requireClean(t, f.Bytes(), records)
	require.Equal(t, "close", f.calls[len(f.calls)-1])
}

// syncedCapture is a capture that may be synced beside writes.
type syncedCapture struct {
	*capture
	mu sync.Mutex
}

func (s *syncedCapture) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.capture.Write(p)
}

func (s *syncedCapture) Sync() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.capture.Sync()
}

// A log closes its file also if what is synced beside it was closed.
func TestALogBesideAClosedFileIsClosed(t *testing.T) {
	m := vfs.NewMem()
	f, err := m.Create("log")
	require.NoError(t, err)
	c := &closedFile{WriteFile: f}
	w := NewWriter(c, 1)
	w.SyncBeside(func() error { return base.ErrClosed })
	require.NoError(t, w.Append([]byte("record")))
	require.ErrorIs(t, w.Sync(), base.ErrClosed)
	require.ErrorIs(t, w.Close(), base.ErrClosed)
	require.Equal(t, 1, c.times)
	require.ErrorIs(t, w.Close(), base.ErrClosed)
	require.ErrorIs(t, w.CloseFile(), base.ErrClosed)
	require.Equal(t, 1, c.times)
}

type closedFile struct {
	vfs.WriteFile
	times int
}

func (f *closedFile) Close() error {
	f.times++
	return f.WriteFile.Close()
}
