package remote

import (
	"context"
	"errors"
	"io/fs"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/internal/base"
	"github.com/siftkv/siftkv/internal/remote/filelist"
	"github.com/siftkv/siftkv/internal/sequence"
	"github.com/siftkv/siftkv/internal/sequence/sequencetest"
	"github.com/siftkv/siftkv/internal/vfs"
	"github.com/siftkv/siftkv/objstore"
	"github.com/siftkv/siftkv/objstore/objstoretest"
)

// eager makes a sequence that does not wait between tries: a call passes when the schedule lets it.
func eager(s *sequence.Sequence) *sequence.Sequence {
	s.Wait = func(ctx context.Context, _ int) bool { return ctx.Err() == nil }
	return s
}

func requireOvertaken(t *testing.T, err error, epoch uint64) {
	t.Helper()
	require.ErrorIs(t, err, base.ErrFenced)
	var fenced *sequence.FencedError
	require.ErrorAs(t, err, &fenced)
	require.Equal(t, epoch, fenced.Epoch)
}

// emptyList is a list without files.
func emptyList() *filelist.List {
	return &filelist.List{Current: string(base.SealLine("siftkv format=1 manifest=MANIFEST-000007")),
		Files: map[uint64]filelist.File{}}
}

// recoverLogs opens a store whose list of files needs the logs from one on.
func recoverLogs(t *testing.T, store objstore.Store) (*Logs, []filelist.Log) {
	t.Helper()
	return recoverLogsOf(t, eager(sequence.New(store, "entry/", sequence.Options{})))
}

func recoverLogsOf(t *testing.T, s *sequence.Sequence) (*Logs, []filelist.Log) {
	t.Helper()
	logs, _, found, err := openAll(t.Context(), s, LogOptions{Interval: -1})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, logs.Close()) })
	return logs, found
}

// openAll is openLogs for who wants whole logs.
func openAll(ctx context.Context, s *sequence.Sequence, o LogOptions) (logs *Logs, st *filelist.State,
	found []filelist.Log, err error) {
	logs, st, err = openLogs(ctx, s, nil, o, func(st *filelist.State) (err error) {
		found, err = st.ReadLogs(s)
		return err
	})
	return logs, st, found, err
}

// publish puts a list of files there that needs the logs from one on.
func publish(t *testing.T, logs *Logs, oldest uint64) uint64 {
	t.Helper()
	slot, err := logs.Publish(needing(t, oldest))
	require.NoError(t, err)
	return slot
}

func needing(t *testing.T, oldest uint64) listMaker {
	return func(start func(uint64) uint64) (*filelist.List, error) {
		l := emptyList()
		l.Logs, l.LogStart = []uint64{oldest}, start(oldest)
		return l, nil
	}
}

func TestLogsShareAPutInTheOrderOfWrites(t *testing.T) {
	mem := objstore.NewMem()
	logs, found := recoverLogs(t, mem)
	require.Empty(t, found)
	require.Equal(t, uint64(2), publish(t, logs, 5))
	five, err := logs.Create(5)
	require.NoError(t, err)
	_, err = five.Write([]byte("abc"))
	require.NoError(t, err)
	six, err := logs.Create(6)
	require.NoError(t, err)
	_, err = six.Write([]byte("123"))
	require.NoError(t, err)
	_, err = five.Write([]byte("def"))
	require.NoError(t, err)
	require.NoError(t, five.Close())
	require.NoError(t, six.Sync())
	require.NoError(t, six.Sync(), "nothing is left to put")
	require.Equal(t, uint64(4), logs.Writer().Next())
	_, err = six.Write([]byte("456"))
	require.NoError(t, err)
	require.NoError(t, logs.Flush())
	_, err = five.Write(nil)
	require.ErrorIs(t, err, fs.ErrClosed)
	logs.mu.Lock()
	require.Equal(t, []uint64{3, 3, 5}, []uint64{logs.start(5), logs.start(6), logs.start(7)})
	logs.mu.Unlock()

	next, found := recoverLogs(t, mem)
	require.Equal(t, []filelist.Log{{Number: 5, Data: []byte("abcdef")}, {Number: 6, Data: []byte("123456")}}, found)
	publish(t, next, 6)
	_, found = recoverLogs(t, mem)
	require.Equal(t, []filelist.Log{{Number: 6, Data: []byte("123456")}}, found)
	_, err = six.Write([]byte("late"))
	require.NoError(t, err)
	requireOvertaken(t, six.Sync(), 5)
	_, err = logs.Create(7)
	requireOvertaken(t, err, 5)
}

// A timer that runs on would hold all that the store had in memory.
func TestTheTimerOfLogsEndsWithThem(t *testing.T) {
	logs, _, _, err := openAll(t.Context(), eager(sequence.New(objstore.NewMem(), "entry/", sequence.Options{})),
		LogOptions{Interval: time.Hour})
	require.NoError(t, err)
	f, err := logs.Create(1)
	require.NoError(t, err)
	_, err = f.Write([]byte("what is buffered"))
	require.NoError(t, err)
	timer := logs.timer
	require.NotNil(t, timer)
	require.NoError(t, logs.Close())
	require.False(t, timer.Stop(), "it runs on")
}

func TestAMissingObjectOfTheLogIsCorruption(t *testing.T) {
	mem := objstore.NewMem()
	logs, _ := recoverLogs(t, mem)
	publish(t, logs, 5)
	f, err := logs.Create(5)
	require.NoError(t, err)
	for range 4 {
		_, err := f.Write([]byte("abc"))
		require.NoError(t, err)
		require.NoError(t, f.Sync())
	}
	s := eager(sequence.New(mem, "entry/", sequence.Options{}))
	require.NoError(t, mem.Delete(t.Context(), s.Key(4)))
	_, _, _, err = openAll(t.Context(), s, LogOptions{})
	require.ErrorIs(t, err, base.ErrCorruption)
	require.ErrorContains(t, err, s.Key(4))
	fence := s.Encode(sequence.Entry{Slot: 4, Epoch: 4, Fence: true})
	require.NoError(t, mem.PutIfAbsent(t.Context(), s.Key(4), fence))
	_, _, _, err = openAll(t.Context(), s, LogOptions{})
	require.ErrorIs(t, err, base.ErrCorruption)
	require.ErrorContains(t, err, "goes on at byte 6")
}

// TestWhatIsWrittenDuringAPutIsInTheNext writes to a log while its bytes before are being put.
func TestWhatIsWrittenDuringAPutIsInTheNext(t *testing.T) {
	mem := objstore.NewMem()
	var f vfs.WriteFile
	logs, _ := recoverLogs(t, sequencetest.BeforePut(mem, 4, func() {
		_, err := f.Write([]byte("during"))
		require.NoError(t, err)
	}))
	publish(t, logs, 5)
	var err error
	f, err = logs.Create(5)
	require.NoError(t, err)
	_, err = f.Write([]byte("before "))
	require.NoError(t, err)
	require.NoError(t, f.Sync())
	require.Equal(t, uint64(4), logs.Writer().Next())
	require.NoError(t, f.Sync())
	require.Equal(t, uint64(5), logs.Writer().Next())
	_, found := recoverLogs(t, mem)
	require.Equal(t, []filelist.Log{{Number: 5, Data: []byte("before during")}}, found)
}

// TestAFailedPutBreaksTheOpenLogsAndNoLaterOne loses the connection for longer than a put is tried.
func TestAFailedPutBreaksTheOpenLogsAndNoLaterOne(t *testing.T) {
	mem := objstore.NewMem()
	faults := objstoretest.NewFaults(mem, 1)
	logs, _ := recoverLogs(t, faults)
	publish(t, logs, 5)
	logs.opts.Patience = 1 // the next try finds that it has ended
	five, err := logs.Create(5)
	require.NoError(t, err)
	_, err = five.Write([]byte("lost"))
	require.NoError(t, err)
	faults.Partition(true)
	require.Error(t, five.Sync())
	faults.Partition(false)
	logs.opts.Patience = time.Hour
	require.Error(t, five.Sync(), "it is broken")
	_, err = five.Write([]byte("more"))
	require.Error(t, err)
	six, err := logs.Create(6)
	require.NoError(t, err)
	_, err = six.Write([]byte("kept"))
	require.NoError(t, err)
	require.NoError(t, six.Sync())
	publish(t, logs, 6)
	_, found := recoverLogs(t, mem)
	require.Equal(t, []filelist.Log{{Number: 6, Data: []byte("kept")}}, found)
}

// A list of files waits for the put under way, however many writers sync one time after the other.
func TestWritersWhoSyncDoNotHoldUpAList(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		faults := objstoretest.NewFaults(objstore.NewMem(), 1)
		logs, _ := recoverLogs(t, faults)
		publish(t, logs, 5)
		faults.Inject(func(objstoretest.Call) objstoretest.Fault { return objstoretest.Fault{Delay: time.Second} })
		f, err := logs.Create(5)
		require.NoError(t, err)
		stop := make(chan struct{})
		var writers sync.WaitGroup
		for range 3 {
			writers.Go(func() {
				for {
					select {
					case <-stop:
						return
					default:
						_, err := f.Write([]byte("x"))
						assert.NoError(t, errors.Join(err, f.Sync()))
					}
				}
			})
		}
		for range 200 {
			start := time.Now()
			publish(t, logs, 5)
			require.LessOrEqual(t, time.Since(start), 2*time.Second)
		}
		close(stop)
		writers.Wait()
	})
}

// A log is reported when it has many entries, not before, and not each time after that.
func TestALogWithManyEntriesIsReported(t *testing.T) {
	var long []uint64
	logs, _ := recoverLogs(t, objstore.NewMem())
	logs.long = func(log uint64) { long = append(long, log) }
	publish(t, logs, 5)
	write := func(number uint64, n int) {
		f, err := logs.Create(number)
		require.NoError(t, err)
		for range n {
			_, err := f.Write([]byte("x"))
			require.NoError(t, err)
			require.NoError(t, f.Sync())
		}
		require.NoError(t, f.Close())
		require.Equal(t, n, logs.Entries(number))
	}
	write(5, maxEntries-1)
	require.Empty(t, long)
	write(6, maxEntries+2*reportEvery)
	require.Equal(t, []uint64{6, 6, 6}, long)
	publish(t, logs, 7)
	require.Zero(t, logs.Entries(6))
}
