package stress

import (
	"cmp"
	"time"

	"github.com/siftkv/siftkv/kv"
)

// checkSlots compares the slots of a store that was opened with what consumers have: no slot goes without a reason, and
// no consumer has what the store has lost.
func (r *round) checkSlots() *Finding {
	states := map[string]kv.SlotInfo{}
	for _, s := range r.db.Slots() {
		states[s.Name] = s
	}
	for _, c := range r.consumers {
		if !c.there {
			continue
		}
		s, ok := states[c.name]
		if !ok {
			return found("slot", "%s is gone after %s", c.name, r.lastEnd)
		}
		if s.Lost != "" {
			if f := c.lose(r, s.Lost); f != nil {
				return f
			}
			continue
		}
		if lost := r.losses.of(c.name); lost.why != "" && !lost.may { // by an opening that failed, in memory alone
			return found("slot", "%s was lost for a while before %s: %s", c.name, r.lastEnd, lost.why)
		}
		for n, k := range r.oracle.spaces {
			if v, _ := k.base.get(k.markKey(), 0); c.seen[n] > 0 {
				if id, _ := parseMark(v); id < c.seen[n] {
					return found("slot", "after %s: slot %s has delivered operation %d of %s, and the store has %d",
						r.lastEnd, c.name, c.seen[n], k.prefix, id)
				}
			}
		}
	}
	return nil
}

// catchUp brings each consumer of a quiet store up to it.
func (r *round) catchUp() *Finding {
	w := &worker{r: r, id: mainGoroutine, rng: r.rng, db: r.db, space: r.oracle.spaces[0]}
	for _, c := range r.consumers {
		end := time.Now().Add(r.patience) // for attempts that only wait for what the writer says to be durable
		for attempt := 0; c.there && (c.slot == nil || c.lags(r.oracle)); attempt++ {
			do := c.reopen
			if c.slot != nil {
				do = func(w *worker) *Finding { return c.take(w, 100_000) }
			}
			if f := cmp.Or(do(w), c.wrong); f != nil {
				return f
			}
			if attempt >= 100 && (c.away == nil || time.Now().After(end)) {
				return found("slot", "%s does not come up to the store when all is quiet", c.name)
			}
		}
		if c.slot != nil && c.away != nil {
			if f := c.beginAgain(w, r.patience); f != nil {
				return f
			}
		}
	}
	return nil
}
