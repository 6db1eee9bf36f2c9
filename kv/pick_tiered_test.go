package kv

import (
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/siftkv/siftkv/internal/base"
	"github.com/siftkv/siftkv/internal/compaction"
	"github.com/siftkv/siftkv/internal/ingest"
	"github.com/siftkv/siftkv/internal/manifest"
	"github.com/siftkv/siftkv/internal/version"
	"github.com/stretchr/testify/require"
)

// A pickSim is a store of which only the tree is real: flushes, ingests and compactions
// change it as they do, in any order of beginning and ending, and what tables hold is
// kept aside. A table holds sequence numbers by key, of which the first found in the
// order of lookups must be the newest.
type pickSim struct {
	t       *testing.T
	rng     *rand.Rand
	d       *DB
	holds   map[uint64]map[byte]int // by number of table
	newest  map[byte]int
	seq     int
	running []*runningCompaction
	kinds   map[CompactionStyle]int // compactions that ran
	manual  int                     // compactions that were asked for
	damaged bool
}

const simKeys = 12

func newPickSim(t *testing.T, seed uint64) *pickSim {
	rng := rand.New(rand.NewPCG(seed, 4))
	o, err := (&Options{
		Compaction: CompactionStyle(rng.IntN(int(numCompactions))), RunsPerLevel: 2 + rng.IntN(3),
		L0CompactionThreshold: 1 + rng.IntN(3),
		TargetFileSize:        16 << 10, BaseLevelSize: 16 << 10, MaxConcurrentCompactions: 1 + rng.IntN(4),
		Clock: func() time.Time { return time.Unix(0, 0) },
	}).withDefaults()
	require.NoError(t, err)
	d := &DB{opts: o, current: &version.Version{}}
	d.nextFile.Store(1)
	return &pickSim{t: t, rng: rng, d: d, holds: map[uint64]map[byte]int{}, newest: map[byte]int{},
		kinds: map[CompactionStyle]int{}}
}

// table makes a table.
func (s *pickSim) table(entries map[byte]int) manifest.Table {
	num := s.d.newFileNum()
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
	next, err := s.d.current.Apply(e)
	require.NoError(s.t, err)
	s.d.current = next
	for k, want := range s.newest {
		require.Equal(s.t, want, s.find(k), "key %d, %v", k, s.d.opts.Compaction)
	}
}

// find looks a key up.
func (s *pickSim) find(k byte) int {
	key := []byte{k}
	for _, r := range s.d.current.Runs {
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
	in := &ingestJob{d: s.d}
	in.files.Files = []ingest.File{{Table: s.table(s.write())}}
	e := in.place(base.SeqNum(s.seq))
	s.apply(e)
	s.d.compactions.Release(in.reserved[0]) // as unreserve does, which takes locks
}

// begin starts a compaction if there is one to do.
func (s *pickSim) begin() bool {
	d := s.d
	if d.compactions.inBackground >= d.opts.MaxConcurrentCompactions {
		return false
	}
	j := compaction.Pick(d.compactionInput(d.current))
	if j == nil {
		return false
	}
	s.running = append(s.running, d.begin(j))
	s.kinds[d.opts.Compaction]++
	return true
}

// beginManual starts a compaction of some range if there is one to do that nothing is in
// the way of.
func (s *pickSim) beginManual() {
	lo := s.rng.IntN(simKeys)
	end := endAfter([]byte{byte(lo + s.rng.IntN(simKeys-lo))})
	j := s.d.compactionInput(s.d.current).MergeRange([]byte{byte(lo)}, end, nil)
	if j == nil || s.d.compactionInput(s.d.current).Busy(j) {
		return
	}
	s.running = append(s.running, s.d.begin(j))
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
	for _, t := range c.Tables() {
		t.Compacting = false
	}
	s.d.compactions.count(c, -1)
	s.d.compactions.Release(c.reserved)
}

// belowInputs reports whether a table that is not an input has an older version of a
// key than the newest of the inputs, now.
func (s *pickSim) belowInputs(c *runningCompaction, k byte) (below bool) {
	newest := 0
	for _, t := range c.Tables() {
		newest = max(newest, s.holds[t.Num][k])
	}
	s.d.current.All(func(_ int, t *version.Table) {
		if seq := s.holds[t.Num][k]; seq > 0 && seq < newest && !slices.Contains(c.Tables(), t) {
			below = true
		}
	})
	return below
}

// quarantine marks some table as damaged, or none any more.
func (s *pickSim) quarantine(some bool) {
	s.d.current.All(func(_ int, t *version.Table) {
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
	v, o := s.d.current, &s.d.opts
	if s.damaged {
		return
	}
	for n := range NumLevels {
		allowed := s.d.opts.compaction().RunsAllowed(n)
		if n > 0 && o.Compaction == Leveled {
			allowed = 2
		}
		require.Less(s.t, v.NumRuns(n), allowed, "%v: level %d", o.Compaction, n)
	}
	if runs := v.Below(); o.Compaction != Leveled && len(runs) > 1 {
		oldest, all := version.SizeOf(runs[len(runs)-1].Tables()), int64(0)
		for _, r := range runs {
			all += version.SizeOf(r.Tables())
		}
		require.Less(s.t, all, int64(o.RunsPerLevel+1)*oldest+int64(o.RunsPerLevel), "%v: space", o.Compaction)
	}
}

// A level that is one run stays one run when a part of it is compacted, whatever number
// the run has from when the store was tiered.
func TestALeveledCompactionJoinsTheRunOfALevel(t *testing.T) {
	s := newPickSim(t, 1)
	s.d.opts.Compaction, s.d.opts.L0CompactionThreshold = Leveled, 1
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
	require.Len(t, s.d.current.Levels[lastLevel].Runs, 1)
	require.False(t, s.begin(), "nothing is left to do")
}

// Whatever happens in whatever order, and however often the kind of compaction changes,
// lookups find what is newest, tombstones go only when nothing is below, and the tree
// comes to have the shape that was asked for.
func TestPickingKeepsOrderAndShape(t *testing.T) {
	t.Parallel()
	ran, manual := map[CompactionStyle]int{}, 0
	for seed := range uint64(200) {
		s := newPickSim(t, seed)
		for range 150 {
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
					s.d.opts.Compaction = CompactionStyle(s.rng.IntN(int(numCompactions)))
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
		s.settle()
		s.requireShape()
		for k, n := range s.kinds {
			ran[k] += n
		}
		manual += s.manual
	}
	for k := range numCompactions {
		require.Greater(t, ran[k], 500, "%v", k)
	}
	require.Greater(t, manual, 200)
}
