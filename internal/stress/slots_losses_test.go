package stress

import (
	"context"
	"log/slog"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
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
		l.r.losses.note(attrs["slot"], lostSlot{attrs["reason"], l.r.mayLose(attrs["reason"])})
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
