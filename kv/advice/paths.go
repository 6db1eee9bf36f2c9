package advice

import (
	"bytes"
	"context"
	"fmt"
	"slices"

	"github.com/siftkv/siftkv/filterpolicy"
	"github.com/siftkv/siftkv/internal/advise"
	"github.com/siftkv/siftkv/internal/base"
	"github.com/siftkv/siftkv/internal/filterbudget"
	"github.com/siftkv/siftkv/internal/sstable"
	"github.com/siftkv/siftkv/internal/storeview"
	"github.com/siftkv/siftkv/internal/version"
	"github.com/siftkv/siftkv/kv"
)

// A locator finds keys in one state of a store: which files a lookup asks, and which block of each. It uses what is in
// memory.
type locator struct {
	store  *storeview.View
	files  []file // by number of shape.Files
	number map[*version.Table]int32
	shape  advise.Store

	guessed int // steps of which only a part of the index is known
	read    int // blocks that were read to find out which file has a key
	skipped int // keys for which that was not found out: too many reads
}

// A file is a table of the state.
type file struct {
	run    *version.Run
	table  *version.Table
	reader *sstable.Reader
}

// maxReads bounds the blocks that are read for advice.
const maxReads = 4096

// newLocator describes a state of a store, whose files it opens.
func newLocator(store *storeview.View) (*locator, error) {
	l := &locator{store: store, number: map[*version.Table]int32{}}
	c, blocks := store.Compaction, &store.Blocks
	l.shape = advise.Store{Runs: len(store.Version.Runs), Cache: blocks.Cache, Filter: store.Filters.Point.String(),
		BlockSize: int64(blocks.Size), Budget: store.Filters.Budget, Remembered: blocks.Remembered,
		Compaction: kv.CompactionStyle(c.Style).String(), // they have the same numbers
		BlobFiles:  store.Version.BlobTotals().Files,
		Tree: advise.Tree{RunsPerLevel: c.RunsPerLevel, Level0: c.L0CompactionThreshold, Space: c.SpaceAmplification,
			BaseLevel: c.BaseLevelSize, Memtable: c.MemtableSize}}
	for n, run := range store.Version.Runs {
		for t := range run.All() {
			r, err := t.Open(store.Tables)
			if err != nil {
				return nil, err
			}
			l.number[t] = int32(len(l.files))
			l.files = append(l.files, file{run, t, r})
			l.shape.Files = append(l.shape.Files, describeFile(n, run.Level, r.Properties()))
		}
	}
	return l, nil
}

// describeFile returns the model's description of a file.
func describeFile(run, level int, p *sstable.Properties) advise.File {
	f := advise.File{Run: run, Level: level, Keys: max(p.FilterKeys, p.Entries-p.Overwritten), Blocks: p.DataBlocks,
		Bytes: int64(p.DataBytes), IndexBytes: int64(p.IndexBytes), FilterBytes: int64(p.FilterBytes),
		BlockSize: int64(p.BlockSize), Decoded: int64((p.RawKeyBytes + p.RawValueBytes) / max(1, p.DataBlocks))}
	if p.FilterFamily != "" && !p.PrefixOnly {
		f.Filter = p.FilterPolicy
	}
	if p.RangeFilterFamily != "" {
		f.Ranges, f.RangeBytes = p.RangeFilterPolicy, int64(p.RangeFilterBytes)
	}
	return f
}

// locate finds where keys and scans lead, and which lookups would now have another answer.
func (l *locator) locate(ctx context.Context, t *advise.Trace) error {
	ended := func(i int) error {
		if i%256 == 0 && ctx.Err() != nil {
			return base.ContextError(ctx, "no advice")
		}
		return nil
	}
	for i := range t.Keys {
		if err := ended(i); err != nil {
			return err
		}
		if k := &t.Keys[i]; !k.Pathless {
			if err := l.path(k); err != nil {
				return err
			}
		}
	}
	t.CountChanged()
	for i := range t.Scans {
		if err := ended(i); err != nil {
			return err
		}
		l.scan(&t.Scans[i])
	}
	return nil
}

// path finds the path of lookups of a key that had its answer, and whether the store has the other one now.
func (l *locator) path(k *advise.Key) error {
	m, err := l.store.Memtables(k.Bytes, k.Hash)
	if err != nil {
		return err
	}
	if m.Answered {
		if k.Changed = m.Found != k.Found; !k.Changed {
			return nil
		}
	}
	var may []int // steps of files whose filters do not exclude the key
	for _, run := range l.store.Version.Runs {
		_, t := run.Find(k.Bytes)
		if t == nil || bytes.Compare(t.Smallest, k.Bytes) > 0 || t.LargestSeq < m.Cover {
			continue
		}
		n := l.number[t]
		r := l.files[n].reader
		block, exact, ok := r.BlockAbout(k.Bytes, k.Hash)
		if !ok {
			continue
		}
		if !exact {
			l.guessed++
		}
		if r.AskFilter(k.Bytes, k.Hash) != sstable.Negative {
			may = append(may, len(k.Path))
		}
		k.Path = append(k.Path, advise.Step{File: n, Block: int32(block)})
	}
	if m.Answered {
		may = nil
	}
	holder, err := l.holder(k, may)
	if err != nil {
		return err
	}
	if holder < 0 && k.Found {
		k.Changed = true
		holder = len(k.Path) - 1
	}
	if holder >= 0 {
		k.Path[holder].Present = true
		k.Path = k.Path[:holder+1]
	}
	return nil
}

// holder returns the step of the file that has the key's answer, or -1. A found key that only one file may have needs
// no read. It reads blocks if several files may have the key, or if a file that may have it has tombstones. If they
// give the other answer, it sets k.Changed.
func (l *locator) holder(k *advise.Key, may []int) (int, error) {
	doubt := func(i int) bool { return l.files[k.Path[i].File].table.Deletes > 0 }
	switch {
	case len(may) == 0:
		return -1, nil
	case len(may) == 1 && k.Found:
		return may[0], nil
	case !k.Found && !slices.ContainsFunc(may, doubt):
		return -1, nil
	case l.read >= maxReads:
		l.skipped++
		if k.Found {
			return may[len(may)-1], nil
		}
		return -1, nil
	}
	for _, i := range may {
		if !k.Found && !doubt(i) {
			continue
		}
		p := sstable.Probe{SkipValue: true}
		l.read++
		_, trailer, ok, err := l.files[k.Path[i].File].reader.Find(nil, k.Bytes, k.Hash, l.store.Seq, &p)
		if err != nil {
			return -1, err
		}
		if !ok {
			continue
		}
		if k.Changed = (trailer.Kind() != base.KindDelete) != k.Found; k.Changed && !k.Found {
			return -1, nil
		}
		return i, nil
	}
	return -1, nil
}

// unknown says what was not found out.
func (l *locator) unknown() (all []string) {
	if l.guessed > 0 {
		all = append(all, fmt.Sprintf("the block of %d of the steps of lookups: their files have partitioned indexes, "+
			"of which advice reads no leaf; any of a leaf's blocks is taken", l.guessed))
	}
	if l.skipped > 0 {
		all = append(all, fmt.Sprintf("which file has %d of the keys: several may, and advice reads %d blocks at most",
			l.skipped, maxReads))
	}
	if l.store.Blocks.SharedMemory {
		all = append(all, "how a MemoryLimit or MemoryBudget shares memory: the cache then has what filters and "+
			"indexes leave, and CacheSize is not the whole of it")
	}
	if l.store.Filters.Prefix != "" {
		all = append(all, "what filters take of prefixes: only keys are counted")
	}
	return all
}

// countRewrites counts the files that a recommendation has CompactFilters write.
func (l *locator) countRewrites(r *Report) (err error) {
	o, plan := &r.Recommended, *l.store.Filters
	if o.RangeFilter != "" {
		if plan.Ranges, err = filterpolicy.ParseRange(o.RangeFilter); err != nil {
			return err
		}
	}
	if o.Filter != "" {
		if plan.Point, err = filterpolicy.Parse(o.Filter); err != nil {
			return err
		}
		plan.Budget = o.FilterBudget
	}
	for _, f := range l.files {
		want := plan.Fair(filterbudget.Tables{Version: l.store.Version, To: f.run.ID(), Entries: f.table.Entries,
			Inputs: []*version.Table{f.table}})
		p := f.reader.Properties()
		stale := o.RangeFilter != "" && plan.RangesStale(p, want.Ranges) ||
			o.Filter != "" && plan.PointDiffers(p, want.Point)
		if stale && p.Entries > 0 {
			r.RewriteFiles++
			r.RewriteBytes += f.table.Size
		}
	}
	return nil
}
