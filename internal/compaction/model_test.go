package compaction

import (
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/internal/base"
	"github.com/siftkv/siftkv/internal/manifest"
	"github.com/siftkv/siftkv/internal/version"
)

const numStyles = int(LazyLeveled) + 1

// A pickSim is a store of which only the tree is real: flushes, ingests and compactions
// change it as they do, in any order of beginning and ending, and what tables hold is
// kept aside. A table holds sequence numbers by key, of which the first found in the
// order of lookups must be the newest.
type pickSim struct {
	t       *testing.T
	rng     *rand.Rand
	o       Options
	v       *version.Version
	s       Scheduler
	nextNum uint64
	holds   map[uint64]map[byte]int // by number of table
	newest  map[byte]int
	seq     int
	running []*Job
	kinds   map[Style]int // compactions that ran
	manual  int           // compactions that were asked for
	idles   int           // compactions of an idle store
	damaged bool
	idle    bool // jobs of an idle store run, and flushes pay for all of them
}

const simKeys = 12

func newPickSim(t *testing.T, seed uint64) *pickSim {
	rng := rand.New(rand.NewPCG(seed, 4))
	o := defaults()
	o.Style, o.RunsPerLevel = Style(rng.IntN(numStyles)), 2+rng.IntN(3)
	o.L0CompactionThreshold, o.MaxConcurrentCompactions = 1+rng.IntN(3), 1+rng.IntN(4)
	o.TargetFileSize, o.BaseLevelSize = 16<<10, 16<<10
	return &pickSim{t: t, rng: rng, o: o, v: &version.Version{}, holds: map[uint64]map[byte]int{},
		newest: map[byte]int{}, kinds: map[Style]int{}}
}

// table makes a table.
func (s *pickSim) table(entries map[byte]int) manifest.Table {
	s.nextNum++
	num := s.nextNum
	s.holds[num] = entries
	keys := slices.Sorted(maps.Keys(entries))
	t := manifest.Table{
		Num: num, Smallest: []byte{keys[0]}, Largest: []byte{keys[len(keys)-1]},
		Size: int64(len(keys)) * 4096, Entries: uint64(len(keys)),
	}
	t.SmallestSeq = base.MaxSeqNum
	for _, seq := range entries {
		t.SmallestSeq, t.LargestSeq = min(t.SmallestSeq, base.SeqNum(seq)), max(t.LargestSeq, base.SeqNum(seq))
	}
	return t
}

func (s *pickSim) apply(e *manifest.Edit) {
	next, err := s.v.Apply(e)
	require.NoError(s.t, err)
	s.v = next
	for k, want := range s.newest {
		require.Equal(s.t, want, s.find(k), "key %d, %v", k, s.o.Style)
	}
}

// find looks a key up.
func (s *pickSim) find(k byte) int {
	key := []byte{k}
	for _, r := range s.v.Runs {
		if _, t := r.Find(key); t != nil {
			if seq := s.holds[t.Num][k]; seq > 0 {
				return seq
			}
		}
	}
	return 0
}

// write makes new entries for keys of a random range.
func (s *pickSim) write() map[byte]int {
	entries := map[byte]int{}
	lo := s.rng.IntN(simKeys)
	for k := lo; k <= lo+s.rng.IntN(simKeys-lo); k++ {
		s.seq++
		entries[byte(k)], s.newest[byte(k)] = s.seq, s.seq
	}
	return entries
}

func (s *pickSim) flush() {
	s.apply(&manifest.Edit{Added: []manifest.AddedTable{{Table: s.table(s.write())}}})
}

func (s *pickSim) ingest() {
	t := s.table(s.write())
	seq := base.SeqNum(s.seq)
	t.Seq, t.SmallestSeq, t.LargestSeq = seq, seq, seq
	span := version.Span{Lo: t.Smallest, Hi: t.UpperBound()}
	level := s.input().IngestLevel(span)
	r := s.s.Reserve(level, span)
	a := manifest.AddedTable{Level: level, Table: t}
	if level > 0 {
		a.Run = s.v.Levels[level].NewestRun()
	}
	s.apply(&manifest.Edit{Added: []manifest.AddedTable{a}})
	s.s.Release(r)
}

// input returns what the next decision depends on.
func (s *pickSim) input() *Input {
	in := input(s.v)
	in.Options, in.State, in.BusyThreads = s.o, &s.s.State, s.s.BusyThreads()
	if s.idle {
		idle := unbounded
		in.Idle = &idle
	}
	return in
}

// begin starts a compaction if there is one to do.
func (s *pickSim) begin() bool {
	if s.s.Background >= s.o.MaxConcurrentCompactions {
		return false
	}
	j := Pick(s.input())
	if j == nil {
		return false
	}
	s.s.Begin(j)
	s.running = append(s.running, j)
	s.kinds[s.o.Style]++
	if j.Reason == ReasonIdle {
		s.idles++
	}
	return true
}

// beginManual starts a compaction of some range if there is one to do that nothing is in
// the way of.
func (s *pickSim) beginManual() {
	lo := s.rng.IntN(simKeys)
	end := []byte{byte(lo + s.rng.IntN(simKeys-lo)), 0}
	in := s.input()
	j := in.MergeRange([]byte{byte(lo)}, end, nil)
	if j == nil || in.Busy(j) {
		return
	}
	s.s.Begin(j)
	s.running = append(s.running, j)
	s.manual++
}

// end ends a running compaction.
func (s *pickSim) end(i int) {
	c := s.running[i]
	s.running = slices.Delete(s.running, i, i+1)
	merged := map[byte]int{}
	e := &manifest.Edit{}
	for level, inputs := range c.Inputs {
		for _, t := range inputs {
			e.Deleted = append(e.Deleted, manifest.DeletedTable{Level: level, Num: t.Num})
			for k, seq := range s.holds[t.Num] {
				merged[k] = max(merged[k], seq)
			}
		}
	}
	keys := slices.Sorted(maps.Keys(merged))
	for n := 0; len(keys) > 0; keys = keys[n:] { // tables of two keys, or one of all
		n = len(keys)
		if c.Output > 0 {
			n = min(n, 2)
		}
		part := map[byte]int{}
		for _, k := range keys[:n] {
			part[k] = merged[k]
			require.False(s.t, c.Bottom([]byte{k}) && s.belowInputs(c, k), "key %d has older versions below", k)
		}
		e.Added = append(e.Added, manifest.AddedTable{Level: c.Output, Run: c.Run, Table: s.table(part)})
	}
	s.apply(e)
	s.s.End(c)
}

// belowInputs reports whether a table that is not an input has an older version of a
// key than the newest of the inputs, now.
func (s *pickSim) belowInputs(c *Job, k byte) (below bool) {
	newest := 0
	for _, t := range c.Tables() {
		newest = max(newest, s.holds[t.Num][k])
	}
	s.v.All(func(_ int, t *version.Table) {
		if seq := s.holds[t.Num][k]; seq > 0 && seq < newest && !slices.Contains(c.Tables(), t) {
			below = true
		}
	})
	return below
}

// quarantine marks some table as damaged, or none any more.
func (s *pickSim) quarantine(some bool) {
	s.v.All(func(_ int, t *version.Table) {
		t.Quarantined = some && s.rng.IntN(5) == 0
		s.damaged = some
	})
}

// settle ends everything.
func (s *pickSim) settle() {
	for n := 0; s.begin() || len(s.running) > 0; n++ {
		require.Less(s.t, n, 1000, "compactions come to an end")
		if len(s.running) > 0 && s.rng.IntN(2) == 0 {
			s.end(s.rng.IntN(len(s.running)))
		}
	}
}

func (s *pickSim) requireShape() {
	v, o := s.v, &s.o
	if s.damaged {
		return
	}
	for n := range NumLevels {
		allowed := o.RunsAllowed(n)
		if n > 0 && o.Style == Leveled {
			allowed = 2
		}
		require.Less(s.t, v.NumRuns(n), allowed, "%v: level %d", o.Style, n)
	}
	if runs := v.Below(); o.Style != Leveled && len(runs) > 1 {
		oldest, all := version.SizeOf(runs[len(runs)-1].Tables()), int64(0)
		for _, r := range runs {
			all += version.SizeOf(r.Tables())
		}
		require.Less(s.t, all, int64(o.RunsPerLevel+1)*oldest+int64(o.RunsPerLevel), "%v: space", o.Style)
	}
}

// requireOneRun checks that no key has two runs in a leveled store.
func (s *pickSim) requireOneRun() {
	for k := byte(0); k < simKeys && s.o.Style == Leveled; k++ {
		runs := 0
		for _, r := range s.v.Runs {
			if r.MayContain([]byte{k}) {
				runs++
			}
		}
		require.LessOrEqual(s.t, runs, 1, "key %d", k)
	}
}

// A level that is one run stays one run when a part of it is compacted, whatever number
// the run has from when the store was tiered.
func TestALeveledCompactionJoinsTheRunOfALevel(t *testing.T) {
	s := newPickSim(t, 1)
	s.o.Style, s.o.L0CompactionThreshold = Leveled, 1
	e := &manifest.Edit{}
	for k := byte(0); k < 6; k += 2 {
		s.seq++
		s.newest[k] = s.seq
		e.Added = append(e.Added, manifest.AddedTable{Level: lastLevel, Run: 5, Table: s.table(map[byte]int{k: s.seq})})
	}
	s.apply(e)
	s.newest[0] = s.seq + 1
	s.apply(&manifest.Edit{Added: []manifest.AddedTable{{Table: s.table(map[byte]int{0: s.seq + 1})}}})
	require.True(t, s.begin())
	s.end(0)
	require.Len(t, s.v.Levels[lastLevel].Runs, 1)
	require.False(t, s.begin(), "nothing is left to do")
}

// Whatever happens in whatever order, and however often the kind of compaction changes,
// lookups find what is newest, tombstones go only when nothing is below, and the tree
// comes to have the shape that was asked for.
func TestPickingKeepsOrderAndShape(t *testing.T) {
	t.Parallel()
	ran, manual, idles := map[Style]int{}, 0, 0
	for seed := range uint64(200) {
		s := newPickSim(t, seed)
		for range 150 {
			s.idle = s.rng.IntN(2) == 0
			switch s.rng.IntN(14) {
			case 0, 1, 2, 3:
				s.flush()
			case 4:
				s.ingest()
			case 5, 6, 7, 8:
				s.begin()
			case 9, 10:
				if len(s.running) > 0 {
					s.end(s.rng.IntN(len(s.running)))
				}
			case 11:
				if s.rng.IntN(4) == 0 {
					s.settle()
					s.requireShape()
					s.quarantine(false)
					s.o.Style = Style(s.rng.IntN(numStyles))
				}
			case 12:
				if s.rng.IntN(4) == 0 {
					s.quarantine(s.rng.IntN(3) > 0)
				}
			case 13:
				if s.rng.IntN(3) == 0 {
					s.beginManual()
				}
			}
		}
		s.quarantine(false)
		s.idle = false
		s.settle()
		s.requireShape()
		s.idle = true
		s.settle()
		s.requireOneRun()
		for k, n := range s.kinds {
			ran[k] += n
		}
		manual += s.manual
		idles += s.idles
	}
	for k := range Style(numStyles) {
		require.Greater(t, ran[k], 500, "%v", k)
	}
	require.Greater(t, manual, 200)
	require.Greater(t, idles, 100)
}
