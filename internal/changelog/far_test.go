package changelog

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/internal/base"
	"github.com/siftkv/siftkv/internal/objectdir"
	"github.com/siftkv/siftkv/internal/vfs"
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

// An acknowledgement that seemed to fail is not taken for that of another consumer after a lower one.
func TestAcknowledgementsElsewhereDoNotGoBack(t *testing.T) {
	p := &fakePositions{fail: errors.New("no answer")}
	c := &Consumer{positions: p, record: record{Name: "a", History: 1, Acked: 5}}
	require.Error(t, c.ackFar(10))
	p.fail = nil
	require.NoError(t, c.ackFar(7))
	r, err := positionOf("a", p.text)
	require.NoError(t, err)
	require.EqualValues(t, 10, r.Acked)
	require.EqualValues(t, 10, c.Acked)
}
