package stress

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/kv"
)

// Losses are what a store has logged of slots that are lost, by name.
type losses struct {
	mu     sync.Mutex
	bySlot map[string]lostSlot
}

// A lostSlot is why a slot was lost, and whether there was such a reason.
type lostSlot struct {
	why string
	may bool
}

// of returns why a slot was lost, and forgets it.
func (l *losses) of(slot string) lostSlot {
	l.mu.Lock()
	defer l.mu.Unlock()
	lost := l.bySlot[slot]
	delete(l.bySlot, slot)
	return lost
}

func (l *losses) note(slot string, lost lostSlot) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.bySlot == nil {
		l.bySlot = map[string]lostSlot{}
	}
	if _, ok := l.bySlot[slot]; !ok { // a later opening may not know why
		l.bySlot[slot] = lost
	}
}

// A lossLog is the log of a round's store, which notes slots that are lost.
type lossLog struct {
	r    *round
	next slog.Handler // nil: there is none
}

func (l lossLog) Enabled(ctx context.Context, level slog.Level) bool {
	return level >= slog.LevelError || l.next != nil && l.next.Enabled(ctx, level)
}

func (l lossLog) Handle(ctx context.Context, record slog.Record) error {
	if record.Message == "a slot is lost" {
		attrs := map[string]string{}
		record.Attrs(func(a slog.Attr) bool {
			attrs[a.Key] = a.Value.String()
			return true
		})
		lost := lostSlot{attrs["reason"], l.r.mayLose(attrs["reason"])}
		l.r.losses.note(attrs["slot"], lost)
		if lost.may {
			l.r.tellLoss(attrs["slot"])
		}
	}
	if l.next != nil {
		return l.next.Handle(ctx, record)
	}
	return nil
}

func (l lossLog) WithAttrs(attrs []slog.Attr) slog.Handler {
	if l.next != nil {
		l.next = l.next.WithAttrs(attrs)
	}
	return l
}

func (l lossLog) WithGroup(name string) slog.Handler {
	if l.next != nil {
		l.next = l.next.WithGroup(name)
	}
	return l
}

func TestALossLogPassesOnWhatIsLogged(t *testing.T) {
	t.Parallel()
	r := &round{life: &life{}}
	var got strings.Builder
	log := slog.New(lossLog{r: r, next: slog.NewTextHandler(&got, nil)}).With("dir", "d").WithGroup("g")
	log.Error("a slot is lost", "slot", "copy", "reason", "none")
	require.Contains(t, got.String(), `level=ERROR msg="a slot is lost" dir=d g.slot=copy g.reason=none`)
	require.Equal(t, lostSlot{"none", false}, r.losses.of("copy"))
}

// failed judges the error of a slot.
func (c *consumer) failed(w *worker, err error) *Finding {
	switch {
	case err == nil:
		return nil
	case strings.Contains(err.Error(), "its consumer has a write that the store has not"):
		return found("slot", "%s: %v", c.name, err)
	case errors.Is(err, kv.ErrSlotLost):
		return c.lose(w.r, err.Error())
	case strings.Contains(err.Error(), "call Changes again"):
		return nil
	case c.away != nil && c.away.gone():
		c.detach()
	}
	return w.allow(err)
}

// lose gives up a replica whose slot is lost: the store must have logged why, and must have had that reason.
func (c *consumer) lose(r *round, why string) *Finding {
	c.giveUp(r)
	lost := r.losses.of(c.name)
	for end := time.Now().Add(r.patience); lost.why == "" && time.Now().Before(end); time.Sleep(time.Millisecond) {
		if r.gone() {
			return nil // the process ended before it logged the loss
		}
		lost = r.losses.of(c.name) // the state comes first
	}
	if lost.why == "" {
		return found("slot", "%s is lost, and the store has not logged it: %s", c.name, why)
	}
	r.slot("lost: " + lost.why)
	if !lost.may {
		return found("slot", "%s is lost after %s, mode %v: %s; %s", c.name, r.lastEnd, r.setup.opts.RecoveryMode,
			lost.why, why)
	}
	return nil
}

// mayLose reports whether a slot may be lost for a reason.
func (r *round) mayLose(why string) bool {
	switch {
	case strings.Contains(why, "further behind"):
		return r.slotBytes > 0
	case strings.Contains(why, "SkipCorrupt"):
		return r.setup.opts.RecoveryMode == kv.SkipCorrupt
	case strings.Contains(why, syscall.ENOSPC.Error()), strings.Contains(why, syscall.EIO.Error()),
		strings.Contains(why, syscall.EMFILE.Error()):
		return r.plan.failures() > 0 || r.disk.Counts().Full > 0 // of a copy
	}
	return false
}

// failures returns how many faults made a call fail. A fault that delays one is none of them.
func (p *plan) failures() (n int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for name, struck := range p.strikes {
		if name != "latency" {
			n += struck
		}
	}
	return n
}
