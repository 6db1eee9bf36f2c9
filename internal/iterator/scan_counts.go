package iterator

import (
	"bytes"
	"math/rand/v2"

	"github.com/siftkv/siftkv/internal/base"
	"github.com/siftkv/siftkv/internal/counters"
	"github.com/siftkv/siftkv/internal/sstable"
	"github.com/siftkv/siftkv/internal/tablecache"
	"github.com/siftkv/siftkv/internal/version"
)

// found counts that the table was read: ok says that there is an entry, the first that was met going forward or back.
// It reports whether that is within the bounds.
func (l *Run) found(ok, back bool) bool {
	switch {
	case !ok:
		l.err = l.it.Error()
	case back:
		ok = l.lo == nil || bytes.Compare(l.it.User(), l.lo) >= 0
	default:
		ok = l.hi == nil || bytes.Compare(l.it.User(), l.hi) < 0
	}
	l.off = !ok
	switch {
	case ok && l.asked:
		l.scans.WithEntries++
		l.scans.TruePositives++
	case ok:
		l.scans.WithEntries++
	case l.err != nil: // what it would have found is not known
		return false
	case l.asked:
		l.scans.FalsePositives++
	default:
		l.scans.Empty++
	}
	if l.lo != nil || l.hi != nil {
		l.tell(!ok)
	}
	return ok
}

// One visit of a table in sampledOneIn is reported to the table cache.
const sampledOneIn = 16

// tell tells the table cache whether the table had none of the wanted keys. The cache chooses by that which filters are
// in memory. Only a sample is reported, if there is a choice, and the table has a filter that could have said so.
func (l *Run) tell(nothing bool) {
	if l.cache.Memory == nil || rand.Uint32()%sampledOneIn != 0 {
		return
	}
	if ranges := l.reader.CanHaveRangeFilter(); ranges || l.prefix != nil && l.reader.HasPrefixFilter() {
		l.cache.Sampled(&l.run.At(l.at).Entry, nothing, ranges && !l.reader.HasRangeFilter())
	}
}

// countBlocks counts the blocks that were read in the table.
func (l *Run) countBlocks() {
	p := &l.it.Probe
	l.scans.BlocksFromCache += uint64(p.BlocksFromCache)
	p.BlocksFromCache = 0
	if p.BytesFromDisk > 0 {
		l.scans.BlocksFromDisk += uint64(p.BlocksFromDisk)
		l.scans.IndexLeavesFromDisk += uint64(p.IndexLeavesFromDisk)
		l.scans.BytesFromDisk += uint64(p.BytesFromDisk)
		l.scans.BytesDecoded += uint64(p.BytesDecoded)
		p.BlocksFromDisk, p.IndexLeavesFromDisk, p.BytesFromDisk, p.BytesDecoded = 0, 0, 0, 0
	}
}

// Look tells what an iterator does in a table that begins at the lower bound: what it counts, and what it reads. Nil is
// no bound, and no prefix.
func Look(t *version.Table, c *tablecache.Cache, lo, hi []byte, p *Prefix) (n counters.Scan, read sstable.Probe,
	err error) {
	r, err := version.NewRun(0, t.Num, []*version.Table{t})
	if err != nil {
		return n, read, err
	}
	l := &Run{}
	if l.reset(r, c, p, sstable.IterOptions{Bounds: &sstable.Bounds{Lower: lo, Upper: hi}}); lo == nil {
		l.First()
	} else {
		l.SeekGE(base.SearchKey(lo, base.MaxSeqNum))
	}
	return l.scans, l.it.Probe, l.Error()
}

// Scans calls add with what was counted in the runs of a level since AddVersion, or the last Scans, for one level after
// the other.
func (s *Sources) Scans(add func(level int, c *counters.Scan)) {
	runs := s.runs[:s.usedRuns]
	for len(runs) > 0 {
		first := runs[0]
		first.countBlocks()
		runs = runs[1:]
		for len(runs) > 0 && runs[0].run.Level == first.run.Level {
			runs[0].countBlocks()
			first.scans.Take(&runs[0].scans)
			runs = runs[1:]
		}
		add(first.run.Level, &first.scans)
		first.scans = counters.Scan{}
	}
}
