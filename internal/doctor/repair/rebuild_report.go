package repair

import (
	"fmt"
	"slices"
)

// settle reports what was rebuilt of lost tables, and subtracts it from the losses.
func (b *rebuilder) settle() {
	r, doubtful := b.r, b.doubtful()
	var gone []int // losses that are none any more
	for _, t := range r.lostTables {
		doubt, exact := uint64(0), true
		for num, n := range t.refs {
			doubt += doubtful[num]
			exact = exact && (n == 0 || b.exact(num))
		}
		if t == b.single() {
			doubt = min(doubt, b.doubtfulKeys(t))
		}
		hidden := t.left // values that keys have newer ones of
		if t == b.single() {
			hidden = b.keys.left
		}
		hidden -= min(hidden, t.unsure.taken)
		if !exact || t.refs == nil || t.uncounted {
			hidden = 0
		}
		if t.taken+hidden == 0 {
			continue
		}
		doubt = min(doubt, t.taken)
		what := fmt.Sprintf("%d values of it were rebuilt from blob files", t.taken)
		switch {
		case t.uncounted:
			what += "; some may have been deleted or overwritten before, which nothing tells"
		case doubt > 0:
			what += fmt.Sprintf("; up to %d may have been deleted or overwritten before, by what is lost", doubt)
		case hidden > 0:
			what += fmt.Sprintf(", and %d are not needed, since their keys have newer ones", hidden)
		}
		if t.loss < 0 {
			r.report.lose(Loss{File: t.name, What: "no table refers to this blob file: " + what, Possible: true})
			continue
		}
		l := &r.report.Lost[t.loss]
		l.What += "; " + what
		if l.Writes != nil {
			n := *l.Writes - min(t.taken+hidden, *l.Writes)
			l.Writes = &n
			if n == 0 && doubt == 0 && !t.uncounted {
				gone = append(gone, t.loss)
				r.report.note("%s: %s: nothing of it is lost", t.name, what)
			}
		}
	}
	slices.Sort(gone)
	for _, i := range slices.Backward(gone) {
		r.report.Lost = slices.Delete(r.report.Lost, i, i+1)
	}
}
