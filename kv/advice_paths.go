package kv

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
	"github.com/siftkv/siftkv/internal/version"
)

// whereabouts locates keys in one state of a store: which files a lookup visits, and which block of each. It goes by
// what is in memory.
type whereabouts struct {
	d      *DB
	state  *readState
	at     base.SeqNum
	files  []adviceFile // by number of shape.Files
	number map[*version.Table]int32
	shape  advise.Store

	guessed int // steps of which only a part of the index is known
	read    int // blocks that were read to find out which file has a key
	skipped int // keys for which that was not found out: too many reads
}

// An adviceFile is a file of the state.
type adviceFile struct {
	run    *version.Run
	table  *version.Table
	reader *sstable.Reader
}

// maxAdviceReads bounds the blocks that are read for advice.
const maxAdviceReads = 4096

// newWhereabouts describes the present state of the store, whose files it opens. The caller closes it.
func (d *DB) newWhereabouts() (*whereabouts, error) {
	filter := d.opts.Filter.String()
	s, _, now := d.present.enter(0)
	if s == nil {
		return nil, d.unreadable()
	}
	w := &whereabouts{d: d, state: s, at: now, number: map[*version.Table]int32{}}
	w.shape = advise.Store{Runs: len(s.version.Runs), Cache: max(d.opts.CacheSize, 0), Filter: filter,
		BlockSize: int64(d.opts.BlockSize),
		Budget:    d.opts.FilterBudget, Remembered: max(0, d.opts.FalsePositiveMemory),
		Compaction: d.opts.Compaction.String(), Objects: d.tables.Far, BlobFiles: s.version.BlobTotals().Files,
		Tree: advise.Tree{RunsPerLevel: d.opts.RunsPerLevel, Level0: d.opts.L0CompactionThreshold,
			Space: d.opts.SpaceAmplification, BaseLevel: d.opts.BaseLevelSize, Memtable: d.opts.MemtableSize}}
	for n, run := range s.version.Runs {
		for t := range run.All() {
			r, err := t.Open(&d.tables)
			if err != nil {
				w.close()
				return nil, err
			}
			w.number[t] = int32(len(w.files))
			w.files = append(w.files, adviceFile{run, t, r})
			w.shape.Files = append(w.shape.Files, describeFile(n, run.Level, r.Properties()))
		}
	}
	return w, nil
}

// describeFile returns what the model must know of a file.
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

// close releases the state.
func (w *whereabouts) close() { w.d.release(w.state, 0) }

// locate finds where keys and scans lead, and which lookups would now have another answer.
func (w *whereabouts) locate(ctx context.Context, t *advise.Trace) error {
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
			if err := w.path(k); err != nil {
				return err
			}
		}
	}
	t.CountChanged()
	for i := range t.Scans {
		if err := ended(i); err != nil {
			return err
		}
		w.scan(&t.Scans[i])
	}
	return nil
}

// path finds the path of lookups of a key that had its answer, and whether the store has the other one now.
func (w *whereabouts) path(k *advise.Key) error {
	key := k.Bytes
	l := lookup{d: w.d, key: key, hash: k.Hash, at: w.at}
	if w.state.hasTombstones() {
		cover, err := w.state.tombstoneCover(w.d, key, w.at)
		if err != nil {
			return err
		}
		l.cover = cover
	}
	answered := w.inMemory(&l)
	if answered {
		if k.Changed = l.found != k.Found; !k.Changed {
			return nil
		}
	}
	var may []int // steps of files whose filters do not exclude the key
	for _, run := range w.state.version.Runs {
		_, t := run.Find(key)
		if t == nil || bytes.Compare(t.Smallest, key) > 0 || t.LargestSeq < l.cover {
			continue
		}
		n := w.number[t]
		r := w.files[n].reader
		block, exact, ok := r.BlockAbout(key, k.Hash)
		if !ok {
			continue
		}
		if !exact {
			w.guessed++
		}
		if r.AskFilter(key, k.Hash) != sstable.Negative {
			may = append(may, len(k.Path))
		}
		k.Path = append(k.Path, advise.Step{File: n, Block: int32(block)})
	}
	if answered {
		may = nil
	}
	holder, err := w.holder(&l, k, may)
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

// inMemory reports whether memtables answer a lookup.
func (w *whereabouts) inMemory(l *lookup) bool {
	for _, m := range append([]*memTable{w.state.mem}, w.state.imms...) {
		if l.memtable(m, "") {
			return true
		}
	}
	return false
}

// holder returns the step of the file that has the key's answer, or -1. A found key that only one file may have needs
// no read. It reads blocks if several files may have the key, or if a file that may have it has tombstones. If they
// give the other answer, it sets k.Changed.
func (w *whereabouts) holder(l *lookup, k *advise.Key, may []int) (int, error) {
	doubt := func(i int) bool { return w.files[k.Path[i].File].table.Deletes > 0 }
	switch {
	case len(may) == 0:
		return -1, nil
	case len(may) == 1 && k.Found:
		return may[0], nil
	case !k.Found && !slices.ContainsFunc(may, doubt):
		return -1, nil
	case w.read >= maxAdviceReads:
		w.skipped++
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
		w.read++
		_, trailer, ok, err := w.files[k.Path[i].File].reader.Find(nil, l.key, l.hash, l.at, &p)
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
func (w *whereabouts) unknown() (all []string) {
	if w.guessed > 0 {
		all = append(all, fmt.Sprintf("the block of %d of the steps of lookups: their files have partitioned indexes, "+
			"of which advice reads no leaf; any of a leaf's blocks is taken", w.guessed))
	}
	if w.skipped > 0 {
		all = append(all, fmt.Sprintf("which file has %d of the keys: several may, and advice reads %d blocks at most",
			w.skipped, maxAdviceReads))
	}
	o := &w.d.opts
	if o.MemoryLimit > 0 || o.MemoryBudget != nil {
		all = append(all, "how a MemoryLimit or MemoryBudget shares memory: the cache then has what filters and "+
			"indexes leave, and CacheSize is not the whole of it")
	}
	if o.Filter != nil && o.Prefix != nil {
		all = append(all, "what filters take of prefixes: only keys are counted")
	}
	return all
}

// countRewrites counts the files that a recommendation has CompactFilters write.
func (w *whereabouts) countRewrites(r *Advice) (err error) {
	o, plan := &r.Recommended, w.d.opts.filterPlan()
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
	for _, f := range w.files {
		want := plan.Fair(filterbudget.Tables{Version: w.state.version, To: f.run.ID(), Entries: f.table.Entries,
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
