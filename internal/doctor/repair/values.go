package repair

import (
	"bytes"
	"cmp"
	"errors"
	"slices"

	"github.com/siftkv/siftkv/internal/base"
	"github.com/siftkv/siftkv/internal/batchrepr"
	"github.com/siftkv/siftkv/internal/blob"
	"github.com/siftkv/siftkv/internal/sstable"
)

// A table with handles of a damaged blob file is written again. Readable values go to a new blob file. In place of a
// lost value the table gets a tombstone with the same sequence number: the key is then absent, and does not show an
// older value. Each such key is reported.

// values makes every handle lead to a value.
func (r *repairer) values() (err error) {
	w := &valueWriter{r: r}
	defer func() {
		w.abort()
		err = errors.Join(err, r.closeBlobs())
	}()
	for num := range r.referred() {
		r.blob(num)
	}
	for num := range r.blobs { // handles of files that are lost must not lead into new ones
		if num < 1<<62 {
			r.nextFile = max(r.nextFile, num+1)
		}
	}
	if err := r.checkHandles(); err != nil {
		return err
	}
	if err := r.rebuildTables(); err != nil {
		return err
	}
	var work []*piece
	for _, p := range r.pieces {
		if slices.ContainsFunc(p.t.Blobs, func(ref blobRef) bool { return !r.blob(ref.Num).whole }) {
			work = append(work, p)
		}
	}
	slices.SortStableFunc(work, func(a, b *piece) int {
		return cmp.Or(cmp.Compare(a.level, b.level), cmp.Compare(b.run, a.run),
			bytes.Compare(a.t.Smallest, b.t.Smallest))
	})
	if err := r.findCopies(work); err != nil {
		return err
	}
	before := slices.Clone(r.pieces)
	for i, p := range work {
		if err := r.ctx.Err(); err != nil {
			return err
		}
		r.o.Progress("values", i, len(work))
		if err := r.rewrite(p, before, w); err != nil {
			return err
		}
	}
	if len(work) > 0 {
		r.o.Progress("values", len(work), len(work))
	}
	if err := w.finish(); err != nil {
		return err
	}
	if !r.o.DryRun {
		r.discard(work)
	}
	r.loseValues()
	return nil
}

// rewrite writes a table again. before are all tables as they were.
func (r *repairer) rewrite(p *piece, before []*piece, w *valueWriter) (err error) {
	in, err := openPiece(p)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, in.r.Close()) }()
	info, err := in.r.Info()
	if err != nil {
		return err
	}
	newer := &newerVersions{of: p, all: before}
	defer func() { err = errors.Join(err, newer.close()) }()
	out := r.newTables(writerOptions(info), 0)
	out.tombs = in.r.Tombstones()
	for ok := in.it.First(); ok; ok = in.it.Next() {
		k, value := in.it.Key(), in.it.Value()
		if k.Kind().Separated() {
			if k, value, err = r.value(k, value, w, newer); err != nil {
				return err
			}
		}
		if err := out.add(k, value); err != nil {
			return err
		}
	}
	if err := in.it.Error(); err != nil {
		return err
	}
	tables, err := out.finish(nil)
	if err != nil {
		return err
	}
	for _, t := range tables {
		t.level, t.run, t.from = p.level, p.run, p.from
	}
	i := slices.Index(r.pieces, p)
	r.pieces = slices.Replace(r.pieces, i, i+1, tables...)
	for i := range r.report.Files {
		if f := &r.report.Files[i]; slices.Contains(p.from, f.Name) && f.Action == Kept {
			f.Action, f.Why = Rewrote, "it had values in blob files that are not whole"
		}
	}
	return nil
}

// value returns what a table gets in the place of an entry with a handle: the same, or an entry with another handle. If
// the value is lost, that is what a log or another table has of the same write, or else a tombstone.
func (r *repairer) value(k base.InternalKey, stored []byte, w *valueWriter, newer *newerVersions) (base.InternalKey,
	[]byte, error) {
	if kept, err := r.keepValue(k, stored, w); kept != nil || err != nil {
		return k, kept, err
	}
	if e, ok := r.logged[k.SeqNum()]; ok && bytes.Equal(e.Key.User, k.User) {
		return e.Key, e.Value, nil
	}
	shows, err := newer.shows(k)
	if err != nil {
		return k, nil, err
	}
	other, kept, certain, err := r.sameWrite(k, w, newer)
	switch {
	case err != nil || kept != nil && (certain || shows == ShowsNewer):
		return other, kept, err
	case kept != nil:
		shows = ShowsOther
	default:
		other = base.MakeKey(k.User, k.SeqNum(), base.KindDelete)
	}
	h, _, err := blob.HandleOf(k.Kind(), stored)
	if err != nil {
		return k, nil, err
	}
	err = r.loseValue(r.blob(h.File), LostValue{Key: bytes.Clone(k.User), Seq: uint64(k.SeqNum()), Bytes: h.Size,
		Offset: h.Offset, Shows: shows})
	return other, kept, err
}

// keepValue returns what a table gets in the place of a handle: the same, or another handle of the value or a copy; nil
// if there is none that can be read.
func (r *repairer) keepValue(k base.InternalKey, stored []byte, w *valueWriter) ([]byte, error) {
	h, expiry, err := blob.HandleOf(k.Kind(), stored)
	if err != nil {
		return nil, err // the table was checked
	}
	b := r.blob(h.File)
	if b.whole {
		return stored, nil
	}
	entry := func(h blob.Handle) []byte {
		if k.Kind().Expires() {
			return h.Append(base.AppendExpiry(nil, expiry))
		}
		return h.Append(nil)
	}
	src, err := r.readable(b, k.User, h)
	if src == nil && err == nil {
		var c *recordCopy
		if c, src, err = r.copyOf(k); c != nil {
			if b, h = c.file, c.h; b.whole {
				return entry(h), nil
			}
		}
	}
	if src == nil || err != nil {
		return nil, err
	}
	if h, err = w.copy(src, k.User, h); err != nil {
		return nil, err
	}
	b.moved++
	return entry(h), nil
}

// sameWrite returns what another table has of a write of which the value is lost; nil if there is none. Two tables of a
// store have no write in common: without a trusted manifest, one of them is left from before or after a compaction.
//
// Writes of a key with sequence number 0 count as one. It is certain that they are one, or that the other is newer, if
// the other table is newer.
func (r *repairer) sameWrite(k base.InternalKey, w *valueWriter, newer *newerVersions) (other base.InternalKey,
	kept []byte, certain bool, err error) {
	if r.s.Trusted() {
		return k, nil, false, nil
	}
	err = newer.same(k, func(o base.InternalKey, value []byte, older bool) (found bool, err error) {
		if o.Kind() == base.KindDelete || o.Kind() == base.KindMerge {
			return false, nil // an interrupted repair put the tombstone there; a lone operand is not the combined value
		}
		other, certain = base.MakeKey(k.User, k.SeqNum(), o.Kind()), k.SeqNum() > 0 || !older
		if kept = value; o.Kind().Separated() {
			kept, err = r.keepValue(o, value, w)
		}
		return kept != nil, err
	})
	return other, kept, certain, err
}

// keepLogged keeps the values of a batch that counts for nothing, since tables have its writes, for the case
// that the tables' blob files have lost them.
func (r *repairer) keepLogged(record []byte) {
	for e, err := range batchrepr.All(record) {
		if err == nil && (e.Key.Kind() == base.KindSet || e.Key.Kind() == base.KindSetTTL) {
			r.keepEntry(e)
		}
	}
}

func (r *repairer) keepEntry(e batchrepr.Entry) {
	if !r.anyBlobLost() {
		return
	}
	if r.logged == nil {
		r.logged = map[base.SeqNum]batchrepr.Entry{}
	}
	r.logged[e.Key.SeqNum()] = batchrepr.Entry{Key: e.Key.Clone(), Value: bytes.Clone(e.Value)}
}

// anyBlobLost reports whether some blob file is not whole.
func (r *repairer) anyBlobLost() bool {
	for _, b := range r.blobs {
		if !b.whole {
			return true
		}
	}
	return false
}

// openPiece opens the table of a piece, for one pass through it.
func openPiece(p *piece) (*mergeInput, error) {
	f, err := p.fs.Open(p.path)
	if err != nil {
		return nil, err
	}
	r, err := sstable.NewReader(f, p.t.Size,
		&sstable.ReaderOptions{Name: p.path, CacheSize: -1, ID: p.t.ID, TailSize: p.t.TailSize, Seq: p.t.Seq,
			SkipFilter: true, AnyExpansion: true})
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return &mergeInput{num: p.t.Num, age: p.age(), r: r, it: r.NewIter(sstable.IterOptions{Sequential: true})}, nil
}
