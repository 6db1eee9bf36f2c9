package stress

import (
	"context"
	"errors"
	"log/slog"

	"github.com/siftkv/siftkv/kv"
)

// What an application gives to a store panics where a plan has an error for the call: its merger, its events and its
// log. So the merger leaves operands as they are, lookups of them return a MergeError, and nothing else is changed.

// The functions of the application, as Call.Op.
const (
	opMerge = "merge"
	opTell  = "tell"
)

var errPanic = errors.New("the application panics")

// disturb lets what options have of the application panic, as the plan says.
func (p *plan) disturb(o *kv.Options) {
	merger := o.Merger
	o.Merger = kv.NewMerger(merger.Name(), func(key, older, newer []byte) ([]byte, error) {
		p.panics(opMerge)
		return merger.Merge(key, older, newer)
	})
	o.Logger = slog.New(panickingLog{p})
	o.Events = kv.Events{
		Flushed:         told[kv.FlushInfo](p),
		Compacted:       told[kv.CompactionInfo](p),
		Stalled:         told[kv.StallInfo](p),
		Failed:          told[error](p),
		Resumed:         told[kv.ResumeInfo](p),
		Quarantined:     told[error](p),
		RecoveryDropped: told[kv.DroppedInfo](p),
	}
}

func (p *plan) panics(op string) {
	if err := p.decide(Call{Op: op}).Err; err != nil {
		panic(err)
	}
}

func told[T any](p *plan) func(T) { return func(T) { p.panics(opTell) } }

// A panickingLog is a log whose records are dropped.
type panickingLog struct{ p *plan }

func (panickingLog) Enabled(_ context.Context, l slog.Level) bool { return l >= slog.LevelInfo }

func (l panickingLog) Handle(context.Context, slog.Record) error {
	l.p.panics(opTell)
	return nil
}

func (l panickingLog) WithAttrs([]slog.Attr) slog.Handler { return l }

func (l panickingLog) WithGroup(string) slog.Handler { return l }
