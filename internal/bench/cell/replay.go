package cell

import (
	"fmt"
	"time"

	"github.com/siftkv/siftkv/internal/bench"
	"github.com/siftkv/siftkv/internal/bench/engine"
	"github.com/siftkv/siftkv/internal/bench/keys"
	"github.com/siftkv/siftkv/internal/bench/measure"
)

// checkReplay holds the workload against the keys.
func (x *run) checkReplay() error {
	_, isTrace := x.source.(*keys.Trace)
	switch {
	case x.settings.Workload == Replay && !isTrace:
		return bench.Usagef("workload %s: keys %s is no lookup trace; kv.LookupTracer writes one", Replay,
			x.settings.Keys)
	case x.settings.Workload != Replay && x.source.Absent() == 0:
		return bench.Usagef("workload %s: every key of %s was found, and there is no absent one to ask for; take workload %s", x.settings.Workload, x.settings.Keys, Replay)
	}
	return nil
}

// loop returns how many lookups of a kind are timed as one loop, and how many more one
// by one: none if the trace is replayed at a pace. Of a trace there may be fewer than the
// settings say, or none.
func (x *run) loop(kind engine.Kind) (n, single int) {
	n = int(x.settings.Lookups)
	if t, ok := x.source.(*keys.Trace); ok && x.settings.Workload == Replay {
		n = min(n, len(t.Asked(kind == engine.Existing)))
	}
	if x.settings.Pace != NoPace {
		return n, 0
	}
	return n, min(n, max(1, n/singleShare))
}

// skip fills the phase of a kind that a trace has no lookups of.
func (p *Phase) skip() { p.Repetitions, p.Spectrum = []measure.Repetition{}, []Quantile{} }

// replayNote says what was replayed.
func replayNote(k *keys.Description, lookups int64) string {
	t := k.Replay
	text := fmt.Sprintf("Replay of %d lookups of keys that were found and %d of keys that never were, recorded over %s: each kind by itself, in the recorded order, as fast as it goes, at most %d. The store has the %d keys that were found, and ",
		t.Existing, t.Absent, t.Span.Round(time.Millisecond), lookups, k.Present-t.Filled)
	if t.Filled > 0 {
		text += fmt.Sprintf("%d like them that are never looked up.", t.Filled)
	} else {
		text += "no others."
	}
	if t.Hashed {
		text += " The trace has hashes: keys are made up, and none is a neighbour of another that it was near."
	}
	if t.OneIn > 1 {
		text += fmt.Sprintf(" It has one key in %d: a cache that is as many times smaller finds about as much.",
			t.OneIn)
	}
	return text
}

// replayWarnings says what a trace lacks.
func replayWarnings(k *keys.Description) []string {
	t := k.Replay
	if t == nil {
		return nil
	}
	var out []string
	if t.Unfinished {
		out = append(out, "the trace has no end: lookups that came after are not in it")
	}
	if t.Dropped > 0 {
		out = append(out, fmt.Sprintf("the trace lacks %d lookups, which its writer was too slow for", t.Dropped))
	}
	if t.Missed > 0 {
		out = append(out, fmt.Sprintf("%d lookups did not find a key that others found: they are replayed as lookups of an existing key", t.Missed))
	}
	return out
}
