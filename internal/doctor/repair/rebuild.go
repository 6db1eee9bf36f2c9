package repair

import (
	"bytes"
	"cmp"
	"errors"
	"maps"
	"slices"

	"github.com/siftkv/siftkv/internal/base"
	"github.com/siftkv/siftkv/internal/rangedel"
	"github.com/siftkv/siftkv/internal/sstable"
)

// Entries of lost tables are rebuilt from the records of blob files, which have key, sequence number and expiry. If no
// remaining table refers to a record, a lost table did, or it is garbage. This is known:
//
//   - Only the newest record of a key can be its value. If a remaining table refers to it, all older ones are
//     overwritten. If it cannot have been of a lost table, it was deleted or overwritten, and so were they. Records of
//     the blob file of a log count only as far as the log does.
//   - A lost table referred to records of its keys, its sequence numbers and its blob files. The manifest has their
//     number in each file, or the table itself does if only its data is damaged.
//   - A remaining table that has a newer entry of the key, or an older one in a newer place, proves that the record was
//     garbage, unless the entry is a merge operand. An entry with sequence number 0 and a value of its own does not
//     tell which is newer. Then the record is left out, unless all candidates together contain no garbage.
//
// Some rebuilt keys may have a tombstone, or a short newer value, in a lost table, or a tombstone that was compacted
// away long ago. Their greatest number is known: the candidates beyond the records that the lost tables referred to.
// The report has it.

// rebuildTables rebuilds the entries of lost tables, as far as blob files tell.
func (r *repairer) rebuildTables() (err error) {
	r.loseUnlisted()
	if len(r.lostTables) == 0 {
		return nil
	}
	defer func() {
		for _, t := range r.lostTables {
			if t.near != nil {
				err = errors.Join(err, t.near.close())
			}
			t.sure.abort()
			t.unsure.abort()
		}
	}()
	// Newer places first: a record that may have been of several tables goes to the newest that fits.
	slices.SortStableFunc(r.lostTables, func(a, b *lostTable) int {
		return cmp.Or(cmp.Compare(a.level, b.level), cmp.Compare(b.run, a.run), cmp.Compare(b.last, a.last))
	})
	b := &rebuilder{r: r, files: map[uint64]*recordTally{}}
	r.o.Progress("records", 0, 1)
	if err := r.eachKey(r.filesWithRecords(), b.key); err != nil {
		return err
	}
	r.o.Progress("records", 1, 1)
	for _, t := range r.lostTables {
		if err := b.finishLost(t); err != nil {
			return err
		}
	}
	b.settle()
	return nil
}

// filesWithRecords returns the blob files of which records may be the store's.
func (r *repairer) filesWithRecords() (files []*blobFile) {
	kept := r.referred()
	for _, b := range r.blobs {
		if b.path == "" {
			continue
		}
		if r.s.Trusted() && !kept[b.num] && (r.s.Manifest.Blobs[b.num].Num == 0) {
			continue // left by a crash
		}
		files = append(files, b)
	}
	slices.SortFunc(files, func(a, b *blobFile) int { return cmp.Compare(a.num, b.num) })
	return files
}

// A recordTally counts the records of one blob file that a lost table may have referred to.
type recordTally struct{ taken, left uint64 }

type rebuilder struct {
	r     *repairer
	files map[uint64]*recordTally
	keys  recordTally // of keys with such records

	undecided bool // of some key nothing tells which record is the newest
}

func (b *rebuilder) tally(rec *foundRecord) *recordTally {
	t := b.files[rec.file.num]
	if t == nil {
		t = &recordTally{}
		b.files[rec.file.num] = t
	}
	return t
}

// key decides on the records of a key, the newest first.
func (b *rebuilder) key(key []byte, records []foundRecord) error {
	records = slices.DeleteFunc(records, b.afterLog)
	if len(records) == 0 {
		return nil
	}
	newest := 1 // the number of copies of the newest
	for newest < len(records) && records[newest].seq == records[0].seq {
		newest++
	}
	decided := slices.ContainsFunc(records[:newest], func(rec foundRecord) bool { return rec.referenced })
	least := silent
	if !decided {
		least = b.besideZero(key, records)
	}
	taken, left := false, false
	for i := range records {
		rec := &records[i]
		if rec.referenced {
			continue
		}
		home, says, err := b.homeOf(key, records, i, decided || i >= newest)
		if home == nil || err != nil {
			if err != nil {
				return err
			}
			continue
		}
		says = max(says, least)
		if says == silent {
			decided, taken = true, true
			b.tally(rec).taken++
			err = home.sure.take(b.r, home, key, rec)
		} else {
			left = true
			b.tally(rec).left++
			home.left++
			if says == open {
				decided = true
				err = home.unsure.take(b.r, home, key, rec)
			}
		}
		if err != nil {
			return err
		}
	}
	switch {
	case taken:
		b.keys.taken++
	case left:
		b.keys.left++
	}
	return nil
}

// afterLog reports whether a record is of a write that its log has lost to a crash: it never counted. If a lost table
// refers to the file, the write may have been flushed before.
func (b *rebuilder) afterLog(rec foundRecord) bool {
	last, ok := b.r.logEnds[rec.file.num]
	flushed := func(t *lostTable) bool { return t.refs[rec.file.num] > 0 && !t.uncounted }
	return ok && !rec.referenced && uint64(rec.seq) > last && !slices.ContainsFunc(b.r.lostTables, flushed)
}

// besideZero returns what records of a key with sequence number 0 say of those with others. A value that was separated
// when its entry had number 0 already may be newer. If it may have been of a lost table, nothing tells which of the two
// the table had.
func (b *rebuilder) besideZero(key []byte, records []foundRecord) evidence {
	if records[0].seq == 0 || records[len(records)-1].seq > 0 {
		return silent
	}
	for i := range records {
		rec := &records[i]
		ofLost := func(t *lostTable) bool { return t.may(key, rec) }
		if rec.seq == 0 && !rec.referenced && slices.ContainsFunc(b.r.lostTables, ofLost) {
			b.undecided = true
			return refuted
		}
	}
	return open
}

// homeOf returns the lost table that a record was most likely of, nil if of none, and what the tables that are left say
// of it. They are not asked about one that was decided on: then it is refuted.
func (b *rebuilder) homeOf(key []byte, records []foundRecord, i int, decided bool) (*lostTable, evidence, error) {
	var first *lostTable
	for _, t := range b.r.lostTables {
		if !t.may(key, &records[i]) {
			continue
		}
		first = cmp.Or(first, t)
		if decided {
			break
		}
		says, err := t.ask(b.r, key, &records[i], records)
		if err != nil || says != refuted {
			return t, says, err
		}
	}
	return first, refuted, nil
}

// expected returns how many records of a blob file the lost tables referred to, if that is known.
func (b *rebuilder) expected(num uint64) (n uint64, known bool) {
	known = b.files[num] != nil
	for _, t := range b.r.lostTables {
		n += t.refs[num]
		known = known && t.refs != nil && (!t.uncounted || t.refs[num] == 0)
	}
	return n, known
}

// doubtful returns how many of the values that were taken from each blob file may be garbage.
func (b *rebuilder) doubtful() map[uint64]uint64 {
	doubtful := map[uint64]uint64{}
	for num, t := range b.files {
		expected, known := b.expected(num)
		if !known {
			expected = 0
		}
		doubtful[num] = t.taken - min(t.taken, expected-min(expected, t.left))
	}
	return doubtful
}

// If only one table is lost, and it had one version of each key, it referred to at most one record of a key. It
// referred to none if a lost entry deleted or overwrote the newest, for then all older ones are gone too. So the bound
// above holds for keys instead of records, and is sharper.

// single returns the only lost table, if that is one with one version of each key; else nil.
func (b *rebuilder) single() *lostTable {
	if t := b.r.lostTables; !b.undecided && b.r.tablesLost == 1 &&
		len(t) == 1 && t[0].refs != nil && !t[0].uncounted && t[0].single {
		return t[0]
	}
	return nil
}

// doubtfulKeys returns how many of the keys that were rebuilt of the only lost table may be garbage.
func (b *rebuilder) doubtfulKeys(t *lostTable) uint64 {
	expected := t.referred()
	return b.keys.taken - min(b.keys.taken, expected-min(expected, b.keys.left))
}

// exact reports whether the lost tables referred to all records of a blob file that could be theirs.
func (b *rebuilder) exact(num uint64) bool {
	if t := b.single(); t != nil && b.keys.taken+b.keys.left == t.referred() {
		return true
	}
	expected, known := b.expected(num)
	return known && !b.undecided && b.files[num].taken+b.files[num].left == expected
}

// ask returns what tables that are left say of a record being the table's.
func (t *lostTable) ask(r *repairer, key []byte, rec *foundRecord, records []foundRecord) (evidence, error) {
	if t.near == nil {
		t.near = &neighbours{}
		for _, p := range r.pieces {
			if slices.ContainsFunc(t.ranges, func(g Range) bool { return meets(p, &g) }) {
				t.near.pieces = append(t.near.pieces, p)
			}
		}
	}
	ours := func(at place) bool {
		return slices.ContainsFunc(records, func(o foundRecord) bool {
			return o.seq > 0 && o.file.num == at.file && o.h.Offset == at.offset
		})
	}
	return t.near.ask(t, key, t.seqOf(rec), ours)
}

// meets reports whether a table may have keys of a range.
func meets(p *piece, g *Range) bool {
	return (g.Upper == nil || bytes.Compare(p.t.Smallest, g.Upper) <= 0) && (g.Lower == nil || !p.t.Before(g.Lower))
}

// rebuiltEntries are entries of a lost table that were made of records.
type rebuiltEntries struct {
	out   *tableWriter // nil: there are none
	taken uint64
	from  map[uint64]bool // blob files
}

// take makes an entry of a record.
func (e *rebuiltEntries) take(r *repairer, t *lostTable, key []byte, rec *foundRecord) error {
	if e.out == nil {
		size := int64(0)
		if t.level < 0 {
			size = mergedTableSize
		}
		e.out, e.from = r.newTables(r.optionsOfOthers(), size), map[uint64]bool{}
		e.out.tombs = rangedel.NewSet(nil)
	}
	e.taken++
	e.from[rec.file.num] = true
	if rec.expiry > 0 {
		value := rec.h.Append(base.AppendExpiry(nil, rec.expiry))
		return e.out.add(base.MakeKey(key, t.seqOf(rec), base.KindSetTTLSeparated), value)
	}
	return e.out.add(base.MakeKey(key, t.seqOf(rec), base.KindSetSeparated), rec.h.Append(nil))
}

func (e *rebuiltEntries) finish() ([]*piece, error) {
	if e.out == nil {
		return nil, nil
	}
	w := e.out
	e.out = nil
	return w.finish(nil)
}

func (e *rebuiltEntries) abort() {
	if e.out != nil {
		e.out.abort()
	}
}

// finishLost adds what was rebuilt of a table to the store's, in one table with what is left of it.
func (b *rebuilder) finishLost(t *lostTable) error {
	r := b.r
	tables, err := t.sure.finish()
	if err != nil {
		return err
	}
	more, err := t.unsure.finish()
	if err != nil {
		return err
	}
	inexact := func(num uint64) bool { return !b.exact(num) }
	if slices.ContainsFunc(slices.Collect(maps.Keys(t.unsure.from)), inexact) {
		r.discard(more)
		more, t.unsure.taken = nil, 0
	}
	t.taken = t.sure.taken + t.unsure.taken
	parts := append(tables, more...)
	if t.rest != nil && t.level >= 0 && len(parts) > 0 {
		parts = append(parts, t.rest)
		r.pieces = slices.DeleteFunc(r.pieces, func(p *piece) bool { return p == t.rest })
	}
	if tables = parts; t.level >= 0 && len(parts) > 1 {
		if tables, err = r.mergePieces(parts, r.optionsOfOthers(), 0); err != nil {
			return err
		}
		r.discard(parts)
	}
	for _, p := range tables {
		p.level, p.run, p.from = t.level, t.run, []string{t.name}
		r.pieces = append(r.pieces, p)
	}
	return nil
}

// optionsOfOthers are those that some table of the store was written with.
func (r *repairer) optionsOfOthers() *sstable.WriterOptions {
	for i := range r.s.Tables {
		if info := r.s.Tables[i].Info; info != nil {
			return writerOptions(info)
		}
	}
	return &sstable.WriterOptions{}
}
