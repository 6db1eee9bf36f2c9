package remote

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/internal/base"
	"github.com/siftkv/siftkv/internal/remote/filelist"
	"github.com/siftkv/siftkv/internal/sequence"
	"github.com/siftkv/siftkv/internal/vfs"
	"github.com/siftkv/siftkv/objstore"
	"github.com/siftkv/siftkv/objstore/objstoretest"
)

// A brokenLine is a writer whose next put ends before its outcome is known: it is performed, or will be, or never.
type brokenLine struct {
	t      *testing.T
	mem    objstore.Store
	faults *objstoretest.Faults
	seq    *sequence.Sequence
	logs   *Logs
	five   vfs.WriteFile
}

func newBrokenLine(t *testing.T) *brokenLine {
	b := &brokenLine{t: t, mem: objstore.NewMem()}
	b.faults = objstoretest.NewFaults(b.mem, 1)
	b.seq = eager(sequence.New(b.faults, "entry/", sequence.Options{}))
	b.logs, _ = recoverLogsOf(t, b.seq)
	publish(t, b.logs, 5)
	var err error
	b.five, err = b.logs.Create(5)
	require.NoError(t, err)
	b.write(b.five, "five ")
	require.NoError(t, b.five.Sync())
	return b
}

func (b *brokenLine) write(f vfs.WriteFile, text string) {
	b.t.Helper()
	_, err := f.Write([]byte(text))
	require.NoError(b.t, err)
}

// breaks calls put, which gets no reply.
func (b *brokenLine) breaks(outcome objstoretest.Outcome, put func() error) {
	b.t.Helper()
	b.faults.Inject(func(objstoretest.Call) objstoretest.Fault { return objstoretest.Fault{Outcome: outcome} })
	b.seq.Wait = func(context.Context, int) bool { return false } // no second try
	require.ErrorIs(b.t, put(), objstore.ErrUnknown)
	eager(b.seq)
	b.faults.Inject(func(objstoretest.Call) objstoretest.Fault { return objstoretest.Fault{} })
}

// requireLogs requires what whoever takes over finds: a list that needs the logs from one on, and the logs.
func (b *brokenLine) requireLogs(oldest uint64, want ...filelist.Log) {
	b.t.Helper()
	s := eager(sequence.New(b.mem, "entry/", sequence.Options{}))
	logs, st, found, err := openAll(b.t.Context(), s, LogOptions{Interval: -1})
	require.NoError(b.t, err)
	require.NoError(b.t, logs.Close())
	require.Equal(b.t, []uint64{oldest}, st.List.Logs)
	require.Equal(b.t, want, found)
	b.faults.Deliver()
	_, err = b.logs.Publish(needing(b.t, 5))
	require.ErrorIs(b.t, err, base.ErrFenced)
}

var brokenOutcomes = []objstoretest.Outcome{objstoretest.NotPerformed, objstoretest.LostReply, objstoretest.Late}

// A list of files of which nobody knows whether it was published is there when bytes of logs are behind it, and they
// lead to it.
func TestAListOfUnknownOutcomeIsThereBeforeLaterBytes(t *testing.T) {
	for _, outcome := range brokenOutcomes {
		b := newBrokenLine(t)
		six, err := b.logs.Create(6)
		require.NoError(t, err)
		b.breaks(outcome, func() error {
			_, err := b.logs.Publish(needing(t, 6))
			return err
		})
		b.write(six, "six")
		require.NoError(t, six.Sync())
		b.requireLogs(6, filelist.Log{Number: 6, Data: []byte("six")})
	}
}

// Bytes of logs that a list of files takes along are lost with it or there with it, and the file is broken.
func TestWhatAListOfUnknownOutcomeTakesAlong(t *testing.T) {
	for _, outcome := range brokenOutcomes {
		for _, again := range []bool{false, true} {
			b := newBrokenLine(t)
			b.write(b.five, "more")
			b.breaks(outcome, func() error {
				_, err := b.logs.Publish(needing(t, 5))
				return err
			})
			_, err := b.five.Write([]byte("late"))
			require.Error(t, err)
			want := []filelist.Log{{Number: 5, Data: []byte("five more")}}
			if again {
				publish(t, b.logs, 5)
			} else if outcome != objstoretest.LostReply {
				want[0].Data = []byte("five ")
			}
			b.requireLogs(5, want...)
		}
	}
}

// Bytes of which nobody knows whether they were put are before the list of files that comes next.
func TestBytesOfUnknownOutcomeAreThereBeforeALaterList(t *testing.T) {
	for _, outcome := range brokenOutcomes {
		b := newBrokenLine(t)
		b.write(b.five, "more")
		b.breaks(outcome, b.five.Sync)
		six, err := b.logs.Create(6)
		require.NoError(t, err)
		b.write(six, "six")
		publish(t, b.logs, 5)
		b.requireLogs(5, filelist.Log{Number: 5, Data: []byte("five more")}, filelist.Log{Number: 6,
			Data: []byte("six")})
	}
}

// A put that was refused leaves its slot to the next one, and no entry leads to a list that is not there.
func TestAListThatWasRefusedIsNowhere(t *testing.T) {
	b := newBrokenLine(t)
	b.faults.Inject(func(objstoretest.Call) objstoretest.Fault {
		return objstoretest.Fault{Outcome: objstoretest.NotPerformed, Err: objstore.ErrClosed}
	})
	_, err := b.logs.Publish(needing(t, 6))
	require.ErrorIs(t, err, objstore.ErrClosed)
	b.faults.Inject(func(objstoretest.Call) objstoretest.Fault { return objstoretest.Fault{} })
	b.write(b.five, "more")
	require.NoError(t, b.five.Sync())
	b.requireLogs(5, filelist.Log{Number: 5, Data: []byte("five more")})
}

// A list that is published later goes with the first bytes, and again until it is there.
func TestAListThatWaitsGoesWithTheFirstBytes(t *testing.T) {
	for _, outcome := range brokenOutcomes {
		b := newBrokenLine(t)
		b.logs.PublishLater(needing(t, 6))
		six, err := b.logs.Create(6)
		require.NoError(t, err)
		b.write(six, "lost")
		b.breaks(outcome, six.Sync)
		seven, err := b.logs.Create(7)
		require.NoError(t, err)
		b.logs.PublishLater(needing(t, 7))
		b.write(seven, "seven")
		require.NoError(t, seven.Sync())
		require.False(t, b.logs.Unchanged())
		b.requireLogs(7, filelist.Log{Number: 7, Data: []byte("seven")})
	}
}
