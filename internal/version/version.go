package version

import (
	"errors"
	"fmt"
	"slices"
	"sort"

	"github.com/siftkv/siftkv/internal/base"
	"github.com/siftkv/siftkv/internal/callback"
	"github.com/siftkv/siftkv/internal/manifest"
	"github.com/siftkv/siftkv/internal/tablecache"
)

// A Version is an immutable list of the store's tables, by level, and of the blob files that they have values in. All
// of these stay on disk while the version has references.
type Version struct {
	Levels [manifest.NumLevels]Level
	Runs   []*Run // of all levels, in the order in which a lookup asks them: level 0 first

	LargestSeq base.SeqNum // of all tables
	LastSeq    base.SeqNum // of all tables that this version and those before it had

	hasTombstones  bool
	files          fileIndex[location]
	blobs          fileIndex[LiveBlob]
	blobTotals     BlobTotals
	hiddenByRanges uint64
	life
}

// Apply returns the version that e makes of v. The new version shares with v the tables that stay
// or change their level, and every tree node that e does not touch. With n tables it takes O(log n)
// for each that comes or goes, and O(1) for each sorted run.
func (v *Version) Apply(e *manifest.Edit) (*Version, error) {
	a := edit{next: &Version{Levels: v.Levels, files: v.files, blobs: v.blobs, blobTotals: v.blobTotals},
		changes: map[RunID]*change{}, maker: new(byte)}
	if err := a.collect(e); err != nil {
		return nil, err
	}
	if err := a.next.applyBlobs(e, a.maker); err != nil {
		return nil, err
	}
	for n := range a.next.Levels {
		if err := a.level(n); err != nil {
			return nil, err
		}
	}
	a.next.LastSeq = max(v.LastSeq, e.LastSeq, a.next.LargestSeq)
	return a.next, nil
}

// An edit makes the next version.
type edit struct {
	next    *Version
	changes map[RunID]*change
	maker   *byte
}

func (a *edit) change(id RunID) *change {
	c := a.changes[id]
	if c == nil {
		c = &change{}
		a.changes[id] = c
	}
	return c
}

// collect finds the tables that leave their runs and make those that come, and gives all their places.
func (a *edit) collect(e *manifest.Edit) error {
	next := a.next
	deleted := map[uint64]*Table{}
	for _, d := range e.Deleted {
		p := next.files.get(d.Num)
		if p == nil || p.Level != d.Level {
			return fmt.Errorf("level %d: table %d is deleted but not there", d.Level, d.Num)
		}
		next.files = next.files.with(d.Num, nil, a.maker)
		c := a.change(p.RunID)
		c.gone = append(c.gone, p.table)
		deleted[d.Num] = p.table
	}
	for i := range e.Added {
		added := &e.Added[i]
		num := added.Table.Num
		if p := next.files.get(num); p != nil {
			return fmt.Errorf("level %d: table %d is in level %d too", added.Level, num, p.Level)
		}
		t := deleted[num]
		if t == nil {
			t = NewTable(added.Table)
			next.come.tables = append(next.come.tables, t)
		}
		delete(deleted, num)
		id := runOf(added)
		next.files = next.files.with(num, &location{t, id}, a.maker)
		c := a.change(id)
		c.added = append(c.added, t)
	}
	for _, t := range deleted {
		next.gone.tables = append(next.gone.tables, t)
	}
	return nil
}

// level changes a level, if it has to, and takes in what it has.
func (a *edit) level(n int) error {
	l := &a.next.Levels[n]
	if err := a.runs(n, l); err != nil {
		return err
	}
	a.next.Runs = append(a.next.Runs, l.Runs...)
	a.next.LargestSeq = max(a.next.LargestSeq, l.LargestSeq)
	a.next.hasTombstones = a.next.hasTombstones || l.RangeDeletes > 0
	return nil
}

// runs changes the runs of a level.
func (a *edit) runs(n int, l *Level) error {
	var nums []uint64
	for id := range a.changes {
		if id.Level == n {
			nums = append(nums, id.Run)
		}
	}
	if len(nums) == 0 {
		return nil
	}
	runs := slices.Clone(l.Runs)
	for _, num := range nums {
		c := a.changes[RunID{n, num}]
		i := slices.IndexFunc(runs, func(r *Run) bool { return r.Num == num })
		if i < 0 {
			i, runs = len(runs), append(runs, &Run{Level: n, Num: num})
		}
		r, err := runs[i].edited(*c)
		if err != nil {
			return err
		}
		if runs[i] = r; r == nil {
			runs = slices.Delete(runs, i, i+1)
		}
	}
	sort.Slice(runs, func(i, j int) bool {
		if n == 0 {
			return compareAge(runs[j], runs[i]) < 0
		}
		return runs[i].Num > runs[j].Num
	})
	l.setRuns(runs)
	return nil
}

// Level0 returns the tables of level 0, by run, the newest first. The caller must not change the result.
func (v *Version) Level0() []*Table { return v.Levels[0].Tables() }

// NumRuns returns the number of sorted runs of a level. A lookup may have to ask each of them. All
// counts of level 0 are of runs: a flush is one run, with any number of tables.
func (v *Version) NumRuns(n int) int { return len(v.Levels[n].Runs) }

// Below returns the runs below level 0, in the order of Runs.
func (v *Version) Below() []*Run { return v.Runs[v.NumRuns(0):] }

// All calls f for every table.
func (v *Version) All(f func(level int, t *Table)) {
	for n := range v.Levels {
		for t := range v.Levels[n].All() {
			f(n, t)
		}
	}
}

// OpenNew opens the files that v has and the version before it has not, up to limit at a time: in an object store each
// of them costs a request. It may be called until v is installed.
func (v *Version) OpenNew(c *tablecache.Cache, b *BlobCache, limit int) error {
	tables, blobs := v.come.tables, v.come.blobs
	errs := make([]error, len(tables)+len(blobs))
	callback.Parallel(len(errs), limit, func(i int) {
		if i < len(tables) {
			_, errs[i] = tables[i].Open(c)
		} else {
			_, errs[i] = blobs[i-len(tables)].Open(b)
		}
	})
	return errors.Join(errs...)
}

// CloseNew closes these files, of a version that will not be installed.
func (v *Version) CloseNew(c *tablecache.Cache) (err error) {
	for _, t := range v.come.tables {
		err = errors.Join(err, c.Close(&t.Entry))
	}
	for _, b := range v.come.blobs {
		err = errors.Join(err, b.Close())
	}
	return err
}

// RunOf returns the run of a table, or false if v does not have it.
func (v *Version) RunOf(t *Table) (RunID, bool) {
	p := v.files.get(t.Num)
	if p == nil || p.table != t {
		return RunID{}, false
	}
	return p.RunID, true
}

// RunsOf returns how many runs tables are from.
func (v *Version) RunsOf(tables []*Table) int {
	runs := map[RunID]bool{}
	for _, t := range tables {
		if id, ok := v.RunOf(t); ok {
			runs[id] = true
		}
	}
	return len(runs)
}

// Has reports whether v has a table with this number.
func (v *Version) Has(num uint64) bool { return v.files.get(num) != nil }

// Describe adds every table and every blob file to an edit.
func (v *Version) Describe(e *manifest.Edit) {
	for _, r := range v.Runs {
		for t := range r.All() {
			a := manifest.AddedTable{Level: r.Level, Run: r.Num, Table: t.Table}
			if r.Level == 0 && r.Num == t.Num && r.Len() == 1 {
				a.Run = 0
			}
			e.Added = append(e.Added, a)
		}
	}
	for b := range v.Blobs() {
		e.AddedBlobs = append(e.AddedBlobs, b.BlobFile)
	}
}

// Features returns what the version's tables hold.
func (v *Version) Features() (f manifest.Features) {
	for n := range v.Levels {
		if v.Levels[n].Merges > 0 {
			f |= manifest.FeatureMerge
		}
		if v.Levels[n].Expiring > 0 {
			f |= manifest.FeatureTTL
		}
	}
	if v.blobTotals.Files > 0 {
		f |= manifest.FeatureSeparated
	}
	return f
}

// WrittenAfter returns the tables that have entries newer than write seq. With n tables, of which it returns k, it
// takes O(k log n). It looks at sequence numbers alone, since every commit of a transaction calls it. Where makes the
// totals of each table that it visits, and takes three times as long with a hundred tables.
func (v *Version) WrittenAfter(seq base.SeqNum) (tables []*Table) {
	for _, r := range v.Runs {
		tables = r.root.writtenAfter(seq, tables)
	}
	return tables
}

// writtenAfter appends the tables of a part of a run.
func (n *node) writtenAfter(seq base.SeqNum, tables []*Table) []*Table {
	if n.totals.LargestSeq <= seq {
		return tables
	}
	for _, k := range n.kids {
		tables = k.writtenAfter(seq, tables)
	}
	for _, t := range n.tables {
		if t.LargestSeq > seq {
			tables = append(tables, t)
		}
	}
	return tables
}
