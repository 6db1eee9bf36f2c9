package kv

import (
	"cmp"
	"slices"

	"github.com/siftkv/siftkv/internal/compaction"
	"github.com/siftkv/siftkv/internal/tablemeta"
	"github.com/siftkv/siftkv/internal/version"
)

// Blob files are collected in batches. The files with the least that is live become victims. All
// tables that refer to them are rewritten in their runs, a few at a time, and their records are copied
// on the way, into the blob files to which values go that are set apart then; other handles
// pass as they are. Compactions that begin for other reasons meanwhile do the same. A victim is gone
// with the last table that refers to it.
//
// Nothing new ever refers to a victim: flushes refer to files of their own, and compactions that begin
// after the choice copy what they meet. One that began before passes handles on: when no table is left that is
// known to refer to a victim, all are looked at once more.

// pickCollection returns the next step of a batch, and begins one if that is due; nil if there is nothing to do now.
// The caller holds d.mu.
func (d *DB) pickCollection(v *version.Version, s *compaction.BlobSpace) *runningCompaction {
	b := &d.compactions.GC
	for range 2 {
		c, waits := d.nextCollection(v)
		if c != nil || waits {
			return c
		}
		victims := d.victimsLeft(v)
		if len(victims) == 0 && s.NeedsGC() {
			if victims = d.chooseVictims(v, s, false); len(victims) == 0 {
				victims = d.chooseVictims(v, s, true)
			}
		}
		b.Candidates, b.Waiting = victims, nil
		if len(victims) == 0 {
			b.Candidates = nil
			return nil
		}
		if b.Waiting = v.ReferringTo(victims); len(b.Waiting) == 0 {
			b.Candidates = nil
			return nil
		}
	}
	return nil
}

// victimsLeft returns the victims that are still there, and can be read.
func (d *DB) victimsLeft(v *version.Version) map[uint64]bool {
	stuck, left := d.compactions.StuckBlobs(v), map[uint64]bool{}
	for num := range d.compactions.GC.Candidates {
		if v.Blob(num) != nil && !stuck[num] {
			left[num] = true
		}
	}
	return left
}

// chooseVictims returns the emptiest files: as many as have the garbage that is over the limit, and a batch. None is
// fuller than all are together, so that there is always more to free than at the average. Those with values of level
// 0, which goes down before, are only taken on demand: of a log's values commits may have overwritten all but a few,
// and level 0 may stay as it is for long. If the disk has no room to copy what is live in them, they are fewer. It
// takes O(n log n), with n files.
func (d *DB) chooseVictims(v *version.Version, s *compaction.BlobSpace, ofLevel0 bool) map[uint64]bool {
	left := d.compactions.StuckBlobs(v)
	if left == nil {
		left = map[uint64]bool{}
	}
	if !ofLevel0 {
		for t := range v.Levels[0].All() {
			for _, r := range t.Blobs {
				left[r.Num] = true
			}
		}
	}
	average := s.Live / (s.Live + s.Garbage)
	var files []*version.LiveBlob
	for b := range v.Blobs() {
		if b.Garbage() > 0 && !left[b.Num] && fullness(b) <= average {
			files = append(files, b)
		}
	}
	victims, freed := map[uint64]bool{}, 0.0
	room := d.space.free.Load() - d.opts.compaction().SpaceWanted(v) + 2*d.opts.compaction().NewBlobSize(v)
	for _, b := range emptiestFirst(files) {
		room -= int64(b.LiveBytes)
		if freed >= s.Over()+s.Batch || room < 0 && len(victims) > 0 {
			break
		}
		victims[b.Num] = true
		freed += float64(b.Garbage())
	}
	return victims
}

// fullness returns which share of a blob file's records is live.
func fullness(b *version.LiveBlob) float64 {
	return float64(b.LiveBytes) / (float64(b.LiveBytes) + float64(b.Garbage()))
}

// emptiestFirst sorts blob files by their fullness, and returns them.
func emptiestFirst(files []*version.LiveBlob) []*version.LiveBlob {
	slices.SortFunc(files, func(a, b *version.LiveBlob) int {
		return cmp.Or(cmp.Compare(fullness(a), fullness(b)), cmp.Compare(a.Num, b.Num))
	})
	return files
}

// nextCollection returns the next step of the batch. It reports whether there is one that has to wait.
func (d *DB) nextCollection(v *version.Version) (c *runningCompaction, waits bool) {
	b := &d.compactions.GC
	b.Waiting = slices.DeleteFunc(b.Waiting, func(t *version.Table) bool {
		_, there := v.RunOf(t)
		return !there || t.Quarantined
	})
	for at := 0; at < len(b.Waiting); {
		tables := d.collectedAtOnce(v, b.Waiting[at:])
		if len(tables) > 0 {
			if c = d.collectWithAbove(v, tables, len(tables) == len(b.Waiting)); c != nil && !d.conflicts(c) {
				return c, false
			}
			if c = collect(v, tables); !d.conflicts(c) {
				return c, false
			}
		}
		at += max(len(tables), 1)
	}
	return nil, len(b.Waiting) > 0
}

// collectedAtOnce returns the first of some tables that a step takes: neighbours among them of one run; in level 0,
// whose runs have no other age than that of all their tables, the whole run. There are none if the first is being
// compacted.
func (d *DB) collectedAtOnce(v *version.Version, tables []*version.Table) []*version.Table {
	run, _ := v.RunOf(tables[0])
	most, size := uint64(compaction.BlobFilesAtOnce*d.opts.compaction().NewBlobSize(v)), uint64(0)
	if d.compactionInput(v).ShortOfSpace() {
		most = 0
	}
	bytes, maxBytes := int64(0), d.opts.compaction().MaxGCTables(v)
	for n, t := range tables {
		id, _ := v.RunOf(t)
		bytes += t.Size
		if id != run || t.Compacting || n > 0 && run.Level > 0 && (size >= most || bytes > maxBytes) {
			return tables[:n]
		}
		for _, r := range t.Blobs {
			if d.compactions.GC.Candidates[r.Num] {
				size += r.Bytes
			}
		}
	}
	return tables
}

// collect returns a compaction that rewrites tables of a run in their place, in key order.
func collect(v *version.Version, tables []*version.Table) *runningCompaction {
	id, _ := v.RunOf(tables[0])
	c := &runningCompaction{reason: reasonGarbage, level: id.Level, output: id.Level, collects: true}
	runs := v.Levels[id.Level].Runs
	run := runs[slices.IndexFunc(runs, func(r *version.Run) bool { return r.Num == id.Run })]
	if id.Level == 0 {
		c.inputs[0] = run.Tables()
		return c
	}
	c.run = id.Run
	c.inputs[id.Level] = slices.Clone(tables)
	c.noteGaps(run)
	return c
}

// noteGaps notes where tables of the output's run are between inputs: new tables end there.
func (c *runningCompaction) noteGaps(run *version.Run) {
	inputs := map[*version.Table]bool{}
	for _, t := range c.inputs[run.Level] {
		inputs[t] = true
	}
	s := version.SpanOf(c.tables())
	for _, t := range run.Overlapping(s.Lo, s.Hi) {
		if !inputs[t] {
			c.gaps = append(c.gaps, t.UpperBound())
		}
	}
}

// collectWithAbove is collect of tables of the last level of a leveled store, together with what has keys of theirs in
// the next level above that has tables: what those hide is dropped then, and not copied. Level 0 comes in as a whole,
// so only if these are all tables that there are to rewrite. It returns nil if there is nothing above, or too much of
// what lies between them would come in.
func (d *DB) collectWithAbove(v *version.Version, tables []*version.Table, all bool) *runningCompaction {
	id, _ := v.RunOf(tables[0])
	last := &v.Levels[lastLevel]
	if d.opts.Compaction != Leveled || id.Level < lastLevel || len(last.Runs) != 1 ||
		d.compactionInput(v).ShortOfSpace() {
		return nil
	}
	c := collect(v, tables)
	s := version.SpanOf(tables)
	for c.level--; c.level > 0 && v.Levels[c.level].Len() == 0; c.level-- {
	}
	if c.level > 0 {
		c.inputs[c.level] = v.Levels[c.level].Overlapping(s.Lo, s.Hi)
	} else if all {
		c.inputs[0] = v.Level0()
	}
	if len(c.inputs[c.level]) == 0 {
		return nil
	}
	// What is below those above comes in too.
	within := map[*version.Table]bool{}
	for _, t := range tables {
		within[t] = true
	}
	s = version.SpanOf(c.inputs[c.level])
	for _, t := range last.Overlapping(s.Lo, s.Hi) {
		within[t] = true
	}
	s, c.inputs[lastLevel] = version.SpanOf(c.tables()), nil
	for _, t := range last.Overlapping(s.Lo, s.Hi) {
		if within[t] {
			c.inputs[lastLevel] = append(c.inputs[lastLevel], t)
		}
	}
	if version.SizeOf(c.tables()) > 2*d.opts.compaction().MaxGCTables(v) {
		return nil
	}
	c.gaps = nil
	c.noteGaps(last.Runs[0])
	return c
}

// separationOf says which values of a compaction go into blob files, and which come from others.
func (d *DB) separationOf(c *runningCompaction) tablemeta.Separation {
	s := d.separation(c.version, c.output)
	s.Victims, s.Open = c.victims, d.openApart(c.version, len(c.victims))
	return s
}

// leaveAlone keeps a blob file from being collected, since it cannot be read.
func (d *DB) leaveAlone(num uint64, cause error) {
	b := &d.compactions.GC
	d.mu.Lock()
	known := b.Excluded[num]
	if b.Excluded == nil {
		b.Excluded = map[uint64]bool{}
	}
	b.Excluded[num] = true
	d.mu.Unlock()
	if known {
		return
	}
	d.log.Error("a blob file cannot be read: it is left as it is", "file", d.blobPath(num), "error", cause)
	tell(d, "Quarantined", d.opts.Events.Quarantined, cause)
}

// setAside leaves a blob file alone that could not be read: for good if it is damaged or gone, or else for a while.
func (d *DB) setAside(e *tablemeta.VictimError, forGood bool) {
	d.leaveAlone(e.Num, e.Cause)
	b := &d.compactions.GC
	d.mu.Lock()
	b.Candidates, b.Waiting = d.victimsLeft(d.current), nil
	d.mu.Unlock()
	if !forGood {
		d.afterLongestWait(func() { delete(b.Excluded, e.Num) })
	}
}
