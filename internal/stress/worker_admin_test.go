package stress

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"sort"
	"strconv"
	"time"

	"github.com/siftkv/siftkv/internal/harness"
	"github.com/siftkv/siftkv/internal/vfs"
	"github.com/siftkv/siftkv/kv"
	"github.com/siftkv/siftkv/sstable"
)

// makeDurable does something that makes everything durable that came before.
func (w *worker) makeDurable(do func() error) error {
	tick := w.r.oracle.tick()
	err := do()
	if err == nil {
		w.r.oracle.durable(tick)
	}
	return err
}

func (w *worker) flush() *Finding {
	return w.allow(w.makeDurable(func() error { return w.db.Flush(context.Background()) }))
}

// sync makes what was acknowledged durable, sometimes for a caller who does not wait.
func (w *worker) sync() *Finding {
	ctx := context.Background()
	if w.r.want["context"] && w.rng.IntN(4) == 0 {
		c, cancel := context.WithTimeout(ctx, time.Duration(w.rng.IntN(3000))*time.Microsecond)
		defer cancel()
		ctx = c
	}
	return w.allow(w.makeDurable(func() error { return w.db.Sync(ctx) }))
}

// compact compacts everything, or a range, sometimes for a caller who does not wait.
func (w *worker) compact() *Finding {
	var lo, hi []byte
	if w.rng.IntN(3) > 0 {
		lo, hi = []byte(w.key()), []byte(w.key())
		if string(hi) < string(lo) {
			lo, hi = hi, lo
		}
	}
	ctx := context.Background()
	if w.r.want["context"] && w.rng.IntN(4) == 0 {
		c, cancel := context.WithTimeout(ctx, time.Duration(w.rng.IntN(5000))*time.Microsecond)
		defer cancel()
		ctx = c
	}
	return w.allow(w.makeDurable(func() error { return w.db.Compact(ctx, lo, hi) }))
}

// ingest takes in one or two files of the worker's keys.
func (w *worker) ingest() *Finding {
	op := w.begin("Ingest", levelSync)
	keys := []string{}
	for range w.rng.IntN(12) {
		keys = append(keys, w.key())
	}
	sort.Strings(keys)
	keys = slices.Compact(keys)
	parts := [][]string{append([]string{w.space.markKey()}, keys...)}
	if len(keys) > 2 && w.rng.IntN(2) == 0 {
		at := 1 + w.rng.IntN(len(keys)-1)
		parts = [][]string{append([]string{w.space.markKey()}, keys[:at]...), keys[at:]}
	}
	op.writes = nil
	var paths []string
	defer func() {
		for _, p := range paths {
			_ = w.r.plain.Remove(p)
		}
	}()
	for n, part := range parts {
		path := fmt.Sprintf("in/%s%d-%d.sst", w.space.prefix[:len(w.space.prefix)-1], op.id, n)
		if err := w.writeTable(path, part, op); err != nil {
			return w.allow(err)
		}
		paths = append(paths, path)
	}
	if w.rng.IntN(2) == 0 {
		slices.Reverse(paths)
	}
	return w.attempt(op, func() error {
		return w.db.Ingest(context.Background(), paths, &kv.IngestOptions{Link: w.rng.IntN(3) == 0})
	})
}

// writeTable writes a file for Ingest, on a disk that does not fail.
func (w *worker) writeTable(path string, keys []string, op *operation) (err error) {
	if err := w.r.plain.MkdirAll("in"); err != nil {
		return err
	}
	f, err := w.r.plain.Create(path)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	t := sstable.NewWriter(f, &sstable.WriterOptions{BlockSize: 64 + w.rng.IntN(500)})
	if len(keys) > 2 && w.r.want["rangedel"] && w.rng.IntN(3) == 0 {
		lo, hi := keys[1], keys[len(keys)-1]
		if err := t.DeleteRange([]byte(lo), []byte(hi)); err != nil {
			return err
		}
		op.writes = append(op.writes, write{kind: writeRange, key: lo, value: hi})
	}
	for _, k := range keys {
		n := write{key: k, value: w.value(op)}
		if k == w.space.markKey() {
			n.value = strconv.FormatUint(op.id, 10)
		} else if w.rng.IntN(4) == 0 {
			n.kind = writeDelete
			err = t.Delete([]byte(k))
		}
		if n.kind == writeSet {
			err = t.Set([]byte(k), []byte(n.value))
		}
		if err != nil {
			return err
		}
		op.writes = append(op.writes, n)
	}
	_, err = t.Finish()
	return err
}

// checkpoint makes a copy of the store and looks into it.
func (w *worker) checkpoint() *Finding {
	dir := fmt.Sprintf("copy%d", w.id)
	defer w.r.disk.RemoveAll(dir)
	if err := w.makeDurable(func() error { return w.db.Checkpoint(context.Background(), dir) }); err != nil {
		return w.allow(err)
	}
	return w.checkCopy("a checkpoint", dir, w.r.plain)
}

// checkCopy opens a copy of the store that was made just now, and holds it against the
// model.
func (w *worker) checkCopy(what, dir string, fsys vfs.FS) *Finding {
	s := drawSetup(w.rng)
	s.harness.FS = fsys
	*harness.Of(&s.opts) = s.harness
	s.opts.Clock, s.opts.ReadOnly = w.r.oracle.clock.time, true
	db, err := kv.Open(dir, &s.opts)
	if err != nil {
		return cmpFinding(w.allow(err), w.unlessGone("copy", "%s does not open: %v", what, err))
	}
	clock := w.r.oracle.clock
	clock.hold.RLock()
	c, err := readAll(db, "", false)
	var f *Finding
	if err == nil {
		f = w.r.oracle.checkView(what, c, w.space)
	}
	clock.hold.RUnlock()
	if err = errors.Join(err, db.Close()); err != nil && f == nil {
		f = cmpFinding(w.allow(err), w.unlessGone("copy", "%s cannot be read: %v", what, err))
	}
	return f
}

// unlessGone is a finding, if the disk is still there.
func (w *worker) unlessGone(kind, format string, args ...any) *Finding {
	if w.r.gone() {
		return nil
	}
	return found(kind, format, args...)
}

// backup makes a backup of what came since the one before, or of everything, verifies it,
// restores the series and looks into it.
func (w *worker) backup() *Finding {
	var out bytes.Buffer
	if len(w.backups) == 3 {
		w.backups, w.mark = nil, kv.BackupMark{}
	}
	mark, err := w.db.Backup(context.Background(), &out, w.mark)
	if err != nil {
		w.backups, w.mark = nil, kv.BackupMark{}
		return w.allow(err)
	}
	w.backups, w.mark = append(w.backups, out.Bytes()), mark
	checked, err := kv.VerifyBackup(bytes.NewReader(out.Bytes()))
	if err != nil || checked.String() != mark.String() {
		return found("backup", "the backup %v does not verify: %v, %v", mark, checked, err)
	}
	mem := vfs.NewMem()
	o := &kv.Options{}
	*harness.Of(o) = harness.Harness{FS: mem}
	for n, stream := range w.backups {
		if err := kv.Restore(context.Background(), bytes.NewReader(stream), "restored", o); err != nil {
			return found("backup", "backup %d of %d cannot be restored: %v", n+1, len(w.backups), err)
		}
	}
	return w.checkCopy("a restored backup", "restored", mem)
}

// advance moves the clock.
func (w *worker) advance() *Finding {
	w.r.oracle.clock.advance(time.Duration(w.rng.IntN(20)) * time.Second)
	return nil
}

// metrics holds figures against each other, and explains a lookup.
func (w *worker) metrics() *Finding {
	c := w.db.Metrics().Lookup()
	if c.IndexLookups != c.Unfiltered+c.FilterTruePositives+c.FilterFalsePositives ||
		c.FilesConsidered != c.RuledOutByBounds+c.RuledOutByRangeTombstone+c.FilterChecks()+c.Unfiltered {
		return found("metrics", "the counters of lookups contradict each other: %+v", c)
	}
	_, err := w.db.Explain([]byte(w.key()))
	return w.allow(err)
}
