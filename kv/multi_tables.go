package kv

import (
	"cmp"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/siftkv/siftkv/internal/sstable"
	"github.com/siftkv/siftkv/internal/version"
)

// minReaderWork is the share of work for which a goroutine is started: until an idle
// processor has begun with it, some ten microseconds pass (60 in a virtual machine).
const minReaderWork = 50 * time.Microsecond

// A blockWants is a block that has to be read, and what is wanted of it.
type blockWants struct {
	reader *sstable.Reader
	wants  []*sstable.Lookup
}

// A keyInFile is a key and where in a sorted run it is: the position of the file, then
// the number of the block.
type keyInFile struct {
	at  uint64
	key *multiKey
}

// tables looks in the tables for all open keys: in each of level 0, and in each sorted
// run below as if it were one.
func (m *multiGet) tables() {
	for i, t := range m.s.version.Levels[0].Tables {
		m.here = m.here[:0]
		m.each(func(k *multiKey) { m.consider(k, 0, i, t) })
		m.look(0)
	}
	for _, r := range m.s.version.Runs {
		m.here = m.here[:0]
		m.each(func(k *multiKey) {
			if i := r.Find(k.key); i < len(r.Tables) {
				m.consider(k, r.Level, i, r.Tables[i])
			}
		})
		m.look(r.Level)
	}
}

// consider adds k to the keys to look for if t, the table in a position of its run, may
// have it as far as bounds and range tombstones tell.
func (m *multiGet) consider(k *multiKey, level, position int, t *version.Table) {
	if !t.Contains(k.key) {
		k.outOfBounds(level, t)
		return
	}
	if t.LargestSeq < k.cover {
		k.underTombstone(level, t)
		return
	}
	k.file = position
	if k.reader, k.err = t.Open(&m.d.tables); k.err == nil {
		m.here = append(m.here, k)
	}
}

// look asks filters, indexes and blocks for the keys of m.here, each in one round.
func (m *multiGet) look(level int) {
	admitted := m.here[:0]
	for _, k := range m.here {
		if k.reader.MayContain(&k.want) {
			admitted = append(admitted, k)
		}
	}
	if denied := len(m.here) - len(admitted); denied > 0 {
		m.stripe.levels[level].negatives.Add(uint64(denied))
	}
	if m.here = admitted; len(admitted) == 0 {
		return
	}
	m.located = m.located[:0]
	for _, k := range m.here {
		if block, ok := k.reader.Locate(&k.want); ok {
			m.located = append(m.located, keyInFile{uint64(k.file)<<32 | uint64(block), k})
		}
	}
	slices.SortFunc(m.located, func(a, b keyInFile) int { return cmp.Compare(a.at, b.at) })
	m.blocks()
	for _, k := range m.here {
		k.settle(level)
	}
	m.each(func(*multiKey) {})
}

// blocks looks into the blocks of the located keys, in the order of the files. Those in
// memory come first: reading others may push them out.
func (m *multiGet) blocks() {
	if len(m.buffers) == 0 {
		m.buffers = append(m.buffers, nil)
	}
	m.wants, m.unread = m.wants[:0], m.unread[:0]
	for _, l := range m.located {
		m.wants = append(m.wants, &l.key.want)
	}
	for from := 0; from < len(m.located); {
		l, to := m.located[from], from+1
		for to < len(m.located) && m.located[to].at == l.at {
			to++
		}
		b := blockWants{l.key.reader, m.wants[from:to:to]}
		if from = to; b.reader.InMemory(b.wants[0]) {
			b.find(&m.buffers[0])
		} else {
			m.unread = append(m.unread, b)
		}
	}
	m.read()
}

// find looks for what is wanted of the block, and appends values to a buffer.
func (b *blockWants) find(buffer *[]byte) { *buffer = b.reader.FindInBlock(*buffer, b.wants) }

// read reads the blocks that are not in memory, in several goroutines if that pays.
func (m *multiGet) read() {
	if len(m.unread) == 0 {
		return
	}
	began := time.Now()
	m.unread[0].find(&m.buffers[0])
	m.unread = m.unread[1:]
	readers := readersFor(len(m.unread), time.Since(began))
	for len(m.buffers) < readers {
		m.buffers = append(m.buffers, nil)
	}
	var next atomic.Int64
	work := func(buffer *[]byte) {
		for i := next.Add(1) - 1; i < int64(len(m.unread)); i = next.Add(1) - 1 {
			m.unread[i].find(buffer)
		}
	}
	var others sync.WaitGroup
	for n := 1; n < readers; n++ {
		others.Go(func() { work(&m.buffers[n]) })
	}
	work(&m.buffers[0])
	others.Wait()
}

// readersFor returns how many goroutines should read n blocks, if one takes as long as
// given. More than there are processors did not pay, for blocks in the system's memory or on a disk.
func readersFor(n int, each time.Duration) int {
	return max(1, min(runtime.GOMAXPROCS(0), n, int(time.Duration(n)*each/minReaderWork)))
}

// settle makes what was found in a table of a level the key's answer, if it is one.
func (k *multiKey) settle(level int) {
	w := &k.want
	if w.Err != nil {
		k.err = w.Err
		return
	}
	answered := false
	if w.Found {
		answered = k.answer(w.Value, w.Trailer)
		if !answered { // an operand
			answered, k.err = k.olderInTable(k.reader, w.Trailer, &w.Probe)
		}
	}
	if k.done = answered; k.err == nil {
		k.stripe.levels[level].count(&w.Probe, answered)
	}
}
