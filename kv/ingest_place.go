package kv

import (
	"github.com/siftkv/siftkv/internal/base"
	"github.com/siftkv/siftkv/internal/manifest"
)

// place returns the edit that adds the files, each to the lowest level where it
// fits, and keeps compactions from writing there until unreserve. It is called with
// the locks of a version edit held.
func (in *ingest) place(seq base.SeqNum) *manifest.Edit {
	d := in.d
	e := &manifest.Edit{LastSeq: seq}
	for _, f := range in.files {
		t := f.table
		t.Seq, t.SmallestSeq, t.LargestSeq = seq, seq, seq
		s := span{t.Smallest, t.UpperBound()}
		level := d.lowestLevel(s)
		in.reserved = append(in.reserved, d.compactions.reserve(level, s))
		e.Added = append(e.Added, manifest.AddedTable{Level: level, Run: d.current.levels[level].newestRun(), Table: t})
	}
	return e
}

// unreserve lets compactions write again where the files were placed.
func (in *ingest) unreserve() {
	d := in.d
	d.mu.Lock()
	for _, r := range in.reserved {
		d.compactions.release(r)
	}
	d.mu.Unlock()
	d.progress.Broadcast()
}

// lowestLevel returns the lowest level for a table that is newer than all others and
// has keys in s: above it, and in it, no table shares keys with s. In level 0 they
// may. A table of a running compaction's output may reach over a gap between inputs,
// so the levels and spans of these are taken too. Levels that are empty because the
// store is small, or tiered, stay so. In a level the table joins any run, since it shares
// keys with none. The caller holds d.mu.
func (d *DB) lowestLevel(s span) int {
	v := d.current
	baseLevel, _ := d.levelTargets(v)
	inUse := func(n int) bool {
		if d.opts.Compaction == Leveled {
			return n >= baseLevel
		}
		return n == lastLevel || len(v.levels[n].runs) > 0
	}
	lowest := 0
	for n := range v.levels {
		if len(overlappingIn(&v.levels[n], n, s.lo, s.hi)) > 0 {
			break
		}
		if inUse(n) && !d.compactions.isReserved(n, s) {
			lowest = n
		}
	}
	return lowest
}
