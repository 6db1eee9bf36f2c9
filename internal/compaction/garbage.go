package compaction

import (
	"math"
	"time"

	"github.com/siftkv/siftkv/internal/version"
)

// garbage takes a table down that is mostly garbage, in a leveled store, or rewrites it in the last level. There is
// garbage in the last level only because a snapshot needed it, or because time has passed. Level 0 goes down soon in
// any case: it is taken for what has expired.
func (in *Input) garbage(baseLevel int) *Job {
	const reason = "a file is mostly tombstones, or values that expired or were overwritten"
	v := in.Version
	for n := baseLevel; n < NumLevels; n++ {
		for t := range v.Levels[n].Where(func(s *version.Totals) bool {
			return s.FirstGarbage <= in.Now && (n < lastLevel || !in.SeenBySnapshot(s.OldestTop))
		}) {
			if t.Compacting {
				continue
			}
			if j := merge(v, reason, []*version.Table{t}, n, min(n+1, lastLevel)); !in.conflicts(j) {
				return j
			}
		}
	}
	if v.ExpiredInLevel0(in.Now) {
		if j, _ := in.level0(baseLevel); j != nil && version.WorthRewriting(j.Inputs[0], j.Tables()) {
			return j
		}
	}
	return nil
}

// garbageRuns merges a run that is mostly garbage with all that are older, in a store whose levels have several runs,
// or takes level 0 down for what has expired there.
func (in *Input) garbageRuns() *Job {
	const reason = "a run is mostly tombstones, or values that expired or were overwritten"
	v := in.Version
	if v.ExpiredInLevel0(in.Now) {
		if j := in.ifFree(1, func() *Job { return toNextLevel(v, reason, 0) }); j != nil {
			return j
		}
	}
	for i, r := range v.Below() {
		level := v.GarbageLevel(i)
		if !r.MostlyGarbage(level, in.Now) || level == lastLevel && in.SeenBySnapshot(r.Totals().LargestSeq) {
			continue
		}
		if j := in.runsIfFree(reason, v.Below()[i:]); j != nil && version.WorthRewriting(r.Tables(), j.Tables()) {
			return j
		}
	}
	return nil
}

// UntilGarbage returns how long to wait before Pick may find something because values expire: the next tables become
// mostly garbage, or enough separated values are dead. It is 0 if time changes nothing.
func (in *Input) UntilGarbage() (wait time.Duration) {
	consider := func(w time.Duration) {
		if w > 0 && (wait == 0 || w < wait) {
			wait = w
		}
	}
	v := in.Version
	consider(in.UntilDead())
	for n := range v.Levels {
		if n == 0 || in.Style == Leveled {
			consider(v.Levels[n].UntilNextGarbage(in.Now))
		}
	}
	if in.Style != Leveled {
		for i, r := range v.Below() {
			consider(r.UntilGarbage(v.GarbageLevel(i), in.Now))
		}
	}
	return wait
}

// UntilDead returns how long to wait until enough separated values have expired to rewrite tables. It is 0 if that is
// never, or already, so.
func (in *Input) UntilDead() time.Duration {
	v := in.Version
	if v.BlobTotals().Files == 0 {
		return 0
	}
	s := in.BlobSpace()
	dead := func(at uint64) bool { return float64(v.ExpiredBlobBytes(at)) > s.MaxHidden }
	if dead(in.Now) || !dead(math.MaxUint64) {
		return 0
	}
	return version.UntilExpiry(func(wait time.Duration) bool { return dead(in.Now + uint64(wait/time.Microsecond)) })
}
