package repair

import (
	"bytes"
	"cmp"
	"errors"
	"slices"

	"github.com/siftkv/siftkv/internal/base"
	"github.com/siftkv/siftkv/internal/rangedel"
	"github.com/siftkv/siftkv/internal/sstable"
)

// mergedTableSize is the size of the tables of a merged run, in bytes.
const mergedTableSize = 64 << 20

// merge makes one run of a group's pieces. All versions stay: no reader loses
// anything, and the store's own compactions drop what is not needed. In a dry run the
// new tables have no bytes.
func (r *repairer) merge(g *group) (run []*piece, err error) {
	if len(g.pieces) == 1 && !g.shared {
		return g.pieces, nil
	}
	var names []string
	for _, p := range g.pieces {
		names = append(names, p.from...)
	}
	slices.Sort(names)
	names = slices.Compact(names)
	r.report.note("keys and sequence numbers of %d files overlap: they are merged into one run", len(names))
	for i := range r.report.Files {
		if f := &r.report.Files[i]; slices.Contains(names, f.Name) && f.Action == Kept {
			f.Action, f.Why = Rewrote, "merged with files that it overlaps"
		}
	}
	defer r.writeUnread()()
	if run, err = r.mergePieces(g.pieces, nil, mergedTableSize); err != nil {
		return nil, err
	}
	for _, p := range run {
		p.from = names
	}
	r.discard(g.pieces)
	return run, nil
}

// mergePieces makes one run of tables, in tables of about a size; 0: in one.
func (r *repairer) mergePieces(pieces []*piece, o *sstable.WriterOptions, size int64) (run []*piece, err error) {
	m := &merger{}
	defer func() { err = errors.Join(err, m.close()) }()
	var tombs []rangedel.Tombstone
	for _, p := range pieces {
		if tombs, err = m.open(p, tombs); err != nil {
			return nil, err
		}
	}
	w := r.newTables(o, size)
	w.tombs = rangedel.NewSet(tombs)
	var seen handlesOfKey
	for n := 0; m.next(); n++ {
		if n%4096 == 0 && r.ctx.Err() != nil {
			return nil, r.ctx.Err()
		}
		if seen.has(m.key, m.value) {
			continue
		}
		if err := w.add(m.key, m.value); err != nil {
			return nil, err
		}
	}
	if m.err != nil {
		return nil, m.err
	}
	if m.differing > 0 {
		r.report.note("%d versions stood in two files with different values: that of the newer file is kept",
			m.differing)
	}
	return w.finish(nil)
}

// discard removes tables that were written and then merged.
func (r *repairer) discard(pieces []*piece) {
	for _, p := range pieces {
		if i := slices.Index(r.written, p.path); i >= 0 && !p.kept && r.stage.Remove(p.path) == nil {
			r.written = slices.Delete(r.written, i, i+1) // else the store removes it: nothing refers to it
		}
	}
}

// A merger iterates over the point entries of several tables in order. Of the versions of
// a key with one sequence number, it returns that of the table with the largest age.
// Either they are one write, and a compaction has changed its kind, or their number is 0,
// and newer files have newer writes.
type merger struct {
	inputs    []*mergeInput // by descending age
	key       base.InternalKey
	value     []byte
	started   bool
	differing int // versions with one sequence number that are not the same
	err       error
}

type mergeInput struct {
	num uint64
	age uint64
	r   *sstable.Reader
	it  *sstable.Iter
	on  bool
}

// byAge orders newer tables first.
func byAge(a, b *mergeInput) int { return cmp.Compare(b.age, a.age) }

// open adds a table, and its tombstones to tombs.
func (m *merger) open(p *piece, tombs []rangedel.Tombstone) ([]rangedel.Tombstone, error) {
	in, err := openPiece(p)
	if err != nil {
		return nil, err
	}
	m.inputs = append(m.inputs, in)
	slices.SortFunc(m.inputs, byAge)
	return in.r.Tombstones().Clip(tombs, nil, nil), nil
}

func (m *merger) next() bool {
	var least *mergeInput
	for _, in := range m.inputs {
		if !m.started {
			in.on = in.it.First()
		}
		for m.started && in.on && m.sameVersion(in.it.Key()) {
			if in.it.Key().Trailer != m.key.Trailer || !bytes.Equal(in.it.Value(), m.value) {
				m.differing++
			}
			in.on = in.it.Next()
		}
		if err := in.it.Error(); err != nil {
			m.err = err
			return false
		}
		if in.on && (least == nil || comesBefore(in.it.Key(), least.it.Key())) {
			least = in
		}
	}
	m.started = true
	if least == nil {
		return false
	}
	k := least.it.Key()
	m.key = base.InternalKey{User: append(m.key.User[:0], k.User...), Trailer: k.Trailer}
	m.value = append(m.value[:0], least.it.Value()...) // its table may be read on before the others
	return true
}

// sameVersion reports whether k is the version that was returned last, whatever its
// kind.
func (m *merger) sameVersion(k base.InternalKey) bool {
	return bytes.Equal(k.User, m.key.User) && k.SeqNum() == m.key.SeqNum()
}

// comesBefore reports whether a is a smaller key than b, or a newer version of it.
func comesBefore(a, b base.InternalKey) bool {
	return cmp.Or(bytes.Compare(a.User, b.User), cmp.Compare(b.SeqNum(), a.SeqNum())) < 0
}

func (m *merger) close() error { return closeInputs(m.inputs) }

// closeInputs closes what is open of some inputs; nil: it is not.
func closeInputs(inputs []*mergeInput) (err error) {
	for _, in := range inputs {
		if in != nil {
			err = errors.Join(err, in.r.Close())
		}
	}
	return err
}
