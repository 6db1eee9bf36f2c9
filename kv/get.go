package kv

import (
	"bytes"

	"github.com/siftkv/siftkv/internal/base"
	"github.com/siftkv/siftkv/internal/blob"
	"github.com/siftkv/siftkv/internal/counters"
	"github.com/siftkv/siftkv/internal/sstable"
	"github.com/siftkv/siftkv/internal/values"
	"github.com/siftkv/siftkv/internal/version"
	"github.com/siftkv/siftkv/kv/explain"
)

// Get returns a copy of the value of key, or ErrNotFound.
func (d *DB) Get(key []byte) ([]byte, error) { return d.AppendGet(nil, key) }

// AppendGet appends the value of key to dst and returns the extended slice; dst as it was and ErrNotFound if there is
// no such key. It does not allocate if dst has room and no block has to be read.
func (d *DB) AppendGet(dst, key []byte) ([]byte, error) { return d.present.get(dst, key) }

// Has reports whether there is a value under key. It costs what AppendGet costs, without the copy.
func (d *DB) Has(key []byte) (bool, error) { return d.present.has(key) }

// A lookup is one point lookup. It asks memory first: memtables, then of each
// file its bounds, its filter and its index. The key is hashed once.
type lookup struct {
	d        *DB
	key      []byte
	hash     uint64
	at       base.SeqNum
	cover    base.SeqNum      // the newest range tombstone over key that is visible; 0: none
	want     bool             // the value itself, or what is asked of it: operands are combined
	sizeOnly bool             // of the value, its size
	stripe   *counters.Stripe // nil: not counted
	version  *version.Version
	sampled  bool // the table cache is told what tables said
	explain  *explain.Lookup
	stream   *blob.Handle // not nil: gets the handle of a blob value, in place of the value

	dst     []byte // what tables append values to, and copyValue the answer
	value   []byte // the answer, if it is one
	found   bool
	skipped bool         // a table has left the value out, which has size bytes
	size    int          // see skipped
	expiry  uint64       // of the value, in microseconds; 0: none, or there are operands
	chain   operandChain // what the value is made of, if there are operands
}

// copyValue appends the value that was found to l.dst, whose first n bytes are what it began as. It does nothing if
// the lookup wants no value, or has only a handle of it.
func (l *lookup) copyValue(n int) {
	if !l.want || l.sizeOnly || l.stream != nil && l.stream.File != 0 {
		return
	}
	// A value out of a table already follows, or its copy in a larger array, and then this moves nothing.
	if l.dst = append(l.dst[:n], l.value...); l.dst == nil {
		l.dst = []byte{}
	}
}

// run looks in memtables and tables, the newest first. It reports whether there is a value.
func (l *lookup) run(s *readState) (bool, error) {
	found, err := l.search(s)
	if l.chain.begun {
		return l.combine(s, err)
	}
	return found, err
}

// search asks memtables and tables, the newest first, until one answers.
func (l *lookup) search(s *readState) (bool, error) {
	l.version = s.version
	if done, err := l.inMemory(s); done || err != nil {
		return l.found, err
	}
	return l.tables(s.version)
}

// inMemory finds the range tombstone over the key and asks the memtables, the newest first. It reports whether one of
// them answers the lookup.
func (l *lookup) inMemory(s *readState) (done bool, err error) {
	if s.hasTombstones() {
		if l.cover, err = s.tombstoneCover(l.d, l.key, l.at); err != nil {
			return false, err
		}
	}
	if l.memtable(s.mem, "memtable") {
		return true, nil
	}
	for _, m := range s.imms {
		if l.memtable(m, "memtable being flushed") {
			return true, nil
		}
	}
	return false, nil
}

// memtable looks in a memtable and reports whether that answers the lookup.
func (l *lookup) memtable(m *memTable, name string) bool {
	if !m.HasPoints() {
		l.explainMemtable(name, "empty", false)
		return false
	}
	value, trailer, ok := m.Get(l.key, l.hash, l.at)
	if !ok {
		l.explainMemtable(name, "", false)
		return false
	}
	if !l.answer(value, trailer) && !l.olderInMemtable(m, value, trailer) {
		l.explainMemtable(name, explain.ReadOperand, false)
		return false
	}
	if l.stripe != nil {
		l.stripe.MemtableHits.Add(1)
	}
	l.explainMemtable(name, "", true)
	return true
}

// answer takes the newest visible version of the key that was not taken yet. It
// reports whether that answers the lookup: an operand does not.
func (l *lookup) answer(value []byte, trailer base.Trailer) bool {
	if trailer.Kind() > base.KindRangeDelete || l.chain.begun {
		return l.answerInChain(value, trailer)
	}
	l.value = value
	l.found = trailer.Kind() == base.KindSet && trailer.SeqNum() >= l.cover
	return true
}

// tables looks in the tables: of every sorted run the only one whose bounds admit the key.
func (l *lookup) tables(v *version.Version) (bool, error) {
	for _, r := range v.Runs {
		_, t := r.Find(l.key)
		if t == nil || bytes.Compare(t.Smallest, l.key) > 0 {
			if t == nil {
				t = r.Last()
			}
			l.outOfBounds(r.Level, t)
			continue
		}
		if done, err := l.table(r.Level, t); done || err != nil {
			return l.found, err
		}
	}
	return false, nil
}

// table looks in a table and reports whether that answers the lookup.
func (l *lookup) table(level int, t *version.Table) (done bool, err error) {
	if t.LargestSeq < l.cover {
		l.underTombstone(level, t)
		return false, nil
	}
	r, err := t.Open(&l.d.tables)
	if err != nil {
		return false, err
	}
	p := sstable.Probe{SkipValue: !l.want || l.sizeOnly && !l.chain.begun}
	operand := false
	trailer, ok, done, err := l.find(r, l.at, &p)
	if err != nil {
		return false, err
	}
	if l.sampled {
		l.tellCache(t, &p)
	}
	if ok && !done {
		operand = true
		if ok, err = l.olderInTable(r, trailer, &p); err != nil {
			return false, err
		}
	}
	if l.stripe != nil {
		l.stripe.Levels[level].Count(&p, ok)
	}
	if l.explain != nil {
		l.explainTable(level, t, p, ok, operand)
	}
	return ok, nil
}

// sampledOneIn: the table cache is told of one lookup in sampledOneIn. The count of a
// stripe picks it: the hash of a key would always pick the same keys.
const sampledOneIn = 16

// count counts the lookup, and samples it if the store has a limit of memory. Without one the
// count is not waited for: that took an eighth of the time of an absent key.
func (l *lookup) count() {
	l.stripe.Gets.Add(1)
	if l.d.tables.Memory != nil {
		l.sampled = l.stripe.Gets.Load()%sampledOneIn == 0
	}
}

// firstSampled returns which of many keys that were counted is the first to be sampled: -1 is none,
// and the others follow it every sampledOneIn.
func (d *DB) firstSampled(counters *counters.Stripe) int {
	if d.tables.Memory == nil {
		return -1
	}
	return int(-counters.Gets.Load() % sampledOneIn)
}

// tellCache tells the table cache what a table said, for the choice of what is kept in memory.
func (l *lookup) tellCache(t *version.Table, p *sstable.Probe) {
	l.d.tables.Sampled(&t.Entry, !p.KeyPresent, p.Filter == sstable.Unfiltered)
}

// find looks in a table for the newest version at or below at, and takes it as the answer if there is one.
func (l *lookup) find(r *sstable.Reader, at base.SeqNum, p *sstable.Probe) (trailer base.Trailer, ok, done bool,
	err error) {
	out, trailer, ok, err := r.Find(l.dst, l.key, l.hash, at, p)
	if err != nil || !ok {
		return 0, false, false, err
	}
	if p.Skipped {
		return trailer, true, l.answerSkipped(trailer, p), nil
	}
	value := out[len(l.dst):]
	if trailer.Kind().Separated() {
		done, err = l.answerHandle(value, trailer)
		return trailer, err == nil, done, err
	}
	l.dst = out // an operand stays where it is while older ones are appended
	return trailer, true, l.answer(value, trailer), nil
}

func (l *lookup) outOfBounds(level int, t *version.Table) {
	if l.stripe != nil {
		l.stripe.Levels[level].OutOfBounds.Add(1)
	}
	if l.explain != nil {
		l.explainRuledOut(level, t, explain.RuledOutByBounds)
	}
}

func (l *lookup) underTombstone(level int, t *version.Table) {
	if l.stripe != nil {
		l.stripe.Levels[level].UnderTombstone.Add(1)
	}
	if l.explain != nil {
		l.explainRuledOut(level, t, explain.RuledOutByRangeTombstone)
	}
}

// answerHandle is answer for an entry with a handle: a blob file of the same version, or one that the memtable
// holds, has the value. If the entry is visible and the lookup wants its value, it reads the value and answers
// with it. Lookups of less (its size, or whether it exists) end at the handle. So do those that a tombstone, an
// expiry or a newer version answers.
func (l *lookup) answerHandle(stored []byte, trailer base.Trailer) (done bool, err error) {
	h, expiry, err := values.HandleOf(l.key, stored, trailer.Kind())
	if err != nil {
		return false, err
	}
	if trailer.SeqNum() < l.cover || trailer.Kind().Expires() && expiry <= l.d.clock.now() {
		return l.answer(nil, base.MakeTrailer(trailer.SeqNum(), base.KindDelete)), nil
	}
	if !l.chain.begun && (l.stream != nil || !l.want || l.sizeOnly) {
		if l.stream != nil {
			*l.stream = h
		}
		l.found, l.expiry, l.skipped, l.size = true, expiry, true, int(h.Size)
		return true, nil
	}
	if l.explain != nil && l.explainBlob(h) {
		return l.answer(nil, base.MakeTrailer(trailer.SeqNum(), base.KindSet)), nil
	}
	var c *counters.Blobs
	if l.stripe != nil {
		c = &l.stripe.Blobs
	}
	dst, err := l.d.values.AppendCached(l.dst, l.version, l.key, h, c)
	if err != nil {
		return false, err
	}
	value := dst[len(l.dst):]
	l.dst = dst // as of an operand, it stays where it is
	if !l.chain.begun {
		l.expiry = expiry
	}
	return l.answer(value, base.MakeTrailer(trailer.SeqNum(), base.KindSet)), nil
}
