package changelog

import (
	"context"
	"errors"
	"io/fs"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/internal/base"
	"github.com/siftkv/siftkv/internal/manifest"
	"github.com/siftkv/siftkv/internal/objectdir"
	"github.com/siftkv/siftkv/internal/vfs"
	"github.com/siftkv/siftkv/internal/vfs/vfstest"
)

// A fakePositions has the newest text in memory.
type fakePositions struct {
	text string
	fail error // of all calls
}

func (p *fakePositions) Claim(context.Context, bool) (string, error) { return p.text, p.fail }

func (p *fakePositions) Put(_ context.Context, text string) error {
	if p.fail == nil {
		p.text = text
	}
	return p.fail
}

func (p *fakePositions) Newest(_ context.Context, take func(string) error) error {
	if p.fail != nil || p.text == "" {
		return p.fail
	}
	return take(p.text)
}

// newFarLog returns a log with a slot at write 5, which no consumer in this process has.
func newFarLog(t *testing.T) (*Log, *fakePositions) {
	l, p := newLog(t, vfs.NewMem()), &fakePositions{}
	l.MaxBytes, l.Last = 100, func() base.SeqNum { return 1000 }
	l.Positions = func(string) objectdir.Positions { return p }
	l.begin(t, "a", 5)
	l.Close("a")
	return l, p
}

// acknowledge is what a consumer on another machine does.
func (p *fakePositions) acknowledge(t *testing.T, l *Log, seq base.SeqNum) {
	r, err := l.recordOf("a")
	require.NoError(t, err)
	r.Acked = seq
	p.text = string(r.sealed())
}

// An edit that no flush comes before loses no slot whose consumer on another machine was in time. A slot whose consumer
// is late is lost by the next, but not while the object store does not tell.
func TestASlotIsNotLostBeforeItsConsumerElsewhereIsAsked(t *testing.T) {
	l, p := newFarLog(t)
	next := uint64(0)
	edit := func() {
		next++
		l.LearnBeforeEdit()
		l.edit(part(next, base.SeqNum(10*next), 90))
	}
	for range 6 {
		edit()
		p.acknowledge(t, l, base.SeqNum(10*next))
	}
	require.Empty(t, l.States(100)[0].Lost)
	p.fail = errors.New("the object store does not answer")
	for range 6 {
		edit()
	}
	require.Empty(t, l.States(100)[0].Lost)
	p.fail = nil
	edit()
	require.Equal(t, whyOverrun, l.States(100)[0].Lost)

	l, p = newFarLog(t)
	p.text = "damaged"
	next = 0
	for range 3 {
		edit()
	}
	require.Equal(t, whyOverrun, l.States(100)[0].Lost, "history is not kept without bounds")
}

// An edit that another goroutine has begun settles nothing: the next does.
func TestAConsumerElsewhereThatIsAheadOfTheStoreIsRemembered(t *testing.T) {
	l, p := newFarLog(t)
	l.Last = func() base.SeqNum { return 10 }
	p.acknowledge(t, l, 20)
	require.False(t, l.LearnFar(false))
	l.edit(part(1, 10, 10))
	require.Empty(t, l.States(10)[0].Lost)
	l.LearnBeforeEdit()
	require.Equal(t, whyDiverged, l.States(10)[0].Lost)
}

// A slot can be dropped, and made again, if what its consumer has acknowledged cannot be read.
func TestDropReplacesAPositionThatCannotBeRead(t *testing.T) {
	l, p := newFarLog(t)
	p.text = "not a position"
	_, err := l.Open("a")
	require.ErrorIs(t, err, base.ErrCorruption)
	require.NoError(t, l.Drop("a"))
	l.begin(t, "a", 7)
	l.Close("a")
	acked, err := l.Open("a")
	require.NoError(t, err)
	require.EqualValues(t, 7, acked)
}

// A hangingPositions does not answer before the test says so.
type hangingPositions struct {
	fakePositions
	asked, answer chan struct{}
	late          atomic.Bool // a request has ended without an answer
}

func (p *hangingPositions) hang(ctx context.Context) error {
	if _, bounded := ctx.Deadline(); !bounded {
		return errors.New("the request may take for ever")
	}
	p.asked <- struct{}{}
	select {
	case <-p.answer:
		return nil
	case <-ctx.Done():
		p.late.Store(true)
		return ctx.Err()
	}
}

func (p *hangingPositions) Claim(ctx context.Context, _ bool) (string, error) {
	return p.text, p.hang(ctx)
}

func (p *hangingPositions) Newest(ctx context.Context, _ func(string) error) error {
	return p.hang(ctx)
}

// While an object store does not answer about one slot, another is acknowledged and closed.
func TestASlotDoesNotWaitForRequestsOfAnother(t *testing.T) {
	t.Parallel()
	for name, ask := range map[string]func(l *Log) error{
		"open": func(l *Log) error { _, err := l.Open("a"); return err },
		"drop": func(l *Log) error { return l.Drop("a") },
		"learn": func(l *Log) error {
			if !l.LearnFar(false) {
				return errors.New("it has no answer")
			}
			return nil
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) { requireNoWait(t, ask) }) // 5 s are over only when all wait
		})
	}
}

func requireNoWait(t *testing.T, ask func(l *Log) error) {
	l, _ := newFarLog(t)
	p := &hangingPositions{asked: make(chan struct{}), answer: make(chan struct{})}
	l.begin(t, "b", 5)
	l.slots["a"].positions = p
	asked := make(chan error, 1)
	go func() { asked <- ask(l) }()
	select {
	case <-p.asked:
	case err := <-asked:
		t.Fatal(err)
	}
	require.NoError(t, l.Ack("b", 6))
	l.Close("b")
	require.False(t, p.late.Load())
	go func() { // the next request of the same work
		for range p.asked {
		}
	}()
	close(p.answer)
	require.NoError(t, <-asked)
	close(p.asked)
	require.EqualValues(t, 6, l.slots["b"].Acked)
}

// A consumer on another machine that claims a slot first while it is dropped has no claim to a later slot of the name.
func TestDropEndsAClaimThatIsMadeMeanwhile(t *testing.T) {
	t.Parallel()
	l, _ := newFarLog(t)
	p := &firstClaims{}
	l.slots["a"].positions = p
	disk := &vfstest.FaultFS{FS: l.FS}
	disk.Set(func(call vfstest.Call) (int, error) {
		if call.Op == "remove" && p.owner == "" {
			p.owner = "consumer" // it has seen the slot's file
		}
		return 0, nil
	})
	l.FS = disk
	require.NoError(t, l.Drop("a"))
	require.Equal(t, "writer", p.owner)
}

// A firstClaims is positions that nothing was ever put to, until there is an owner.
type firstClaims struct {
	fakePositions
	owner string
}

func (p *firstClaims) Claim(context.Context, bool) (string, error) {
	if p.owner != "" {
		p.owner = "writer"
	}
	return "", nil
}

// An acknowledgement that seemed to fail is not taken for that of another consumer after a lower one.
func TestAcknowledgementsElsewhereDoNotGoBack(t *testing.T) {
	p := &fakePositions{fail: errors.New("no answer")}
	c, a := &Consumer{record: record{Name: "a", History: 1, Acked: 5}}, &objectAccess{positions: p}
	require.Error(t, a.ack(c, 10))
	p.fail = nil
	require.NoError(t, a.ack(c, 7))
	r, err := positionOf("a", p.text)
	require.NoError(t, err)
	require.EqualValues(t, 10, r.Acked)
	require.EqualValues(t, 10, c.Acked)
}

// A failingFS fails to open some files.
type failingFS struct {
	vfs.FS
	fail func(name string) error
}

func (f failingFS) Open(name string) (vfs.ReadFile, error) {
	if err := f.fail(name); err != nil {
		return nil, err
	}
	return f.FS.Open(name)
}

// A fakeObjects is the directory of a consumer on another machine, which looks again now and then.
type fakeObjects struct {
	objectdir.Directory
	looks int
}

func (*fakeObjects) Within(context.Context) func() { return func() {} }
func (o *fakeObjects) LookAgain()                  { o.looks++ }

// What passes is not the end of a consumer on another machine, and a list of files that is too old not even an error.
func TestAConsumerElsewhereGetsOverErrors(t *testing.T) {
	mem := vfs.NewMem()
	w := newWriter(t, mem)
	o, c := &fakeObjects{}, w.consumer()
	defer func(disk access) { c.access = disk; require.NoError(t, c.Close()) }(c.access)
	var errs []error
	fail := func(which string) func(string) error {
		return func(name string) error {
			if len(errs) == 0 || !strings.HasSuffix(name, which) {
				return nil
			}
			defer func() { errs = errs[1:] }()
			return errs[0]
		}
	}
	c.FS, c.access, c.tries = failingFS{mem, fail(manifest.SlotName("a"))}, &objectAccess{Directory: o}, maxFarTries
	errs = []error{syscall.EIO}
	_, _, err := c.Range(t.Context())
	require.ErrorIs(t, err, syscall.EIO)
	_, _, err = c.Range(t.Context())
	require.NoError(t, err)
	c.FS = failingFS{mem, fail("CURRENT")}
	errs = []error{fs.ErrNotExist, fs.ErrNotExist}
	_, _, err = c.Range(t.Context())
	require.NoError(t, err)
	require.Equal(t, 3, o.looks)
	c.FS = failingFS{mem, fail(manifest.SlotName("a"))}
	errs = []error{fs.ErrNotExist}
	for range 2 {
		_, _, err = c.Range(t.Context())
		require.ErrorIs(t, err, fs.ErrNotExist, "the slot was dropped")
	}
}

// An acknowledgement may be of a write that an ingest is about to show. If an edit does not find it, the store has lost
// it, and the slot stays lost when other writes have the numbers.
func TestAConsumerElsewhereIsAheadOfTheStore(t *testing.T) {
	l, p := newFarLog(t)
	last := base.SeqNum(10)
	l.Last = func() base.SeqNum { return last }
	p.acknowledge(t, l, 11)
	require.False(t, l.LearnFar(false))
	last = 11
	l.LearnBeforeEdit()
	require.EqualValues(t, 11, l.States(last)[0].Acked)
	p.acknowledge(t, l, 12)
	require.False(t, l.LearnFar(false))
	l.LearnBeforeEdit()
	require.Equal(t, whyDiverged, l.States(last)[0].Lost)
	r, err := readRecord(l.FS, "db/"+manifest.SlotName("a"))
	require.NoError(t, err)
	require.Zero(t, r.History)
}
