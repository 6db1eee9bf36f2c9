// Package multiget looks for many keys in the tables of a version at once, in fewer reads than a lookup for each key,
// and in the time of fewer.
//
// A search goes in rounds. In each, every key without an answer goes on from one sorted run to the next. Bounds,
// filters and indexes in memory say which tables may have it, and blocks in memory are searched. The key stops where a
// block must be read. Then all these blocks are read, each once for all keys that it may have. In each step all keys
// ask one kind of thing, filters or indexes or blocks, so that the processor waits for several cache misses at a time.
//
// Two things depend on what a read costs. A read of a local file takes microseconds. There a round is one run: no
// block is read twice, and no key reads more than a lookup of its own would. A read of a remote file is a request,
// which takes as long as thousands of filters, and is paid for. There a key goes on through all runs in one round, and
// stops at one table in its first round, at two in the next, then at four. So it costs fewer than two times the
// requests of a lookup, whatever the filters let pass, in as many rounds as the logarithm of those. With filters of
// ten bits that is one request in a hundred more. A key with several versions is answered by the newest table, in its
// first round. Only a false positive needs a second round. To ask two tables at once would make one round of two, and
// cost a request more for each key that was overwritten.
package multiget

import (
	"github.com/siftkv/siftkv/internal/base"
	"github.com/siftkv/siftkv/internal/counters"
	"github.com/siftkv/siftkv/internal/manifest"
	"github.com/siftkv/siftkv/internal/sstable"
	"github.com/siftkv/siftkv/internal/tablecache"
	"github.com/siftkv/siftkv/internal/version"
)

// A Key is a key that a Search looks for, and what became of it.
type Key struct {
	Key     []byte
	Hash    uint64      // filterpolicy.Hash(Key)
	Cover   base.SeqNum // the newest visible range tombstone over it; 0: none
	Err     error       // why it has no answer
	Owner   int32       // of the caller, for Answer
	Sampled bool        // the table cache is told what tables said
	Done    bool        // it has an answer

	run      int32 // of the version, the next to be considered
	position int32 // of table in its run
	level    int32
	reads    int32          // of the round, tables that must be read
	table    *version.Table // the newest that may have it
	reader   *sstable.Reader
	probes   *probe // of the round, the newest table first
}

// A probe is a table in which a key is looked for.
type probe struct {
	key    *Key
	next   *probe // of the key
	table  *version.Table
	reader *sstable.Reader
	level  int32
	filter sstable.FilterVerdict
	done   bool   // the block was searched, or there is none, or an error
	file   uint64 // the number of the run, and the position of table in it
	leaf   int    // of the index, that must be read first; -1: none
	number int    // of the block or leaf that is read now
	lookup sstable.Lookup
}

// A Search looks for keys in a version. Other Searches may do so at the same time.
type Search struct {
	Version *version.Version
	Tables  *tablecache.Cache
	At      base.SeqNum                         // later writes are not visible
	Levels  *[manifest.NumLevels]counters.Level // they count what tables said

	// Answer gets what a table has of a key. It reports whether that is the key's answer; after an operand it is not,
	// and Find asks older tables. Where reads are requests, goroutines call it for several keys side by side. The
	// value of found is valid until the next Find.
	Answer func(k *Key, r *sstable.Reader, found *sstable.Lookup) (done bool, err error)

	open       []*Key   // without an answer
	ahead      []*Key   // of them, those that go on before the round reads
	here       []*Key   // of them, those whose next table may have them
	probes     []*probe // of here, those that a filter has admitted
	unread     []*probe // of the round
	memory     []probe  // of the round
	lookups    []*sstable.Lookup
	blocks     []block
	leaves     leafPrefetch
	readers    []*blockReader // of the caller, and of other goroutines
	ruledOut   [manifest.NumLevels]ruledOut
	used       int // elements of slices that refer to something
	usedProbes int // the same of memory
}

// ruledOut counts keys that a table of a level cannot have.
type ruledOut struct{ byBounds, byTombstone, byFilter, byMemory uint64 }

// Find looks for the keys, each of which gets an answer or an error, or is in no table. It uses the slice as scratch.
func (s *Search) Find(keys []*Key) {
	for _, r := range s.readers {
		r.buffer = r.buffer[:0]
	}
	s.open, s.used = keys, max(s.used, len(keys))
	if s.memory = s.memory[:0]; cap(s.memory) < len(keys) {
		s.memory, s.usedProbes = make([]probe, 0, len(keys)), 0
	}
	runs, maxReads := len(s.Version.Runs), 1
	for round := 1; round <= runs && len(s.open) > 0; round++ {
		if s.Tables.Far {
			s.advance(runs, maxReads)
			s.request()
			maxReads *= 2
		} else {
			s.advance(round, 1)
			s.read()
		}
		s.settle()
	}
	s.count()
}

// advance takes the open keys on to the tables that the round reads: for each at most maxReads, in runs before end.
func (s *Search) advance(end, maxReads int) {
	s.unread, s.memory = s.unread[:0], s.memory[:0]
	for ahead := s.open; len(ahead) > 0; ahead = s.ahead {
		s.here = s.here[:0]
		for _, k := range ahead {
			if s.toNextTable(k, end) {
				s.here = append(s.here, k)
			}
		}
		s.ahead = s.ahead[:0]
		if s.askFilters(end); len(s.probes) == 0 {
			continue
		}
		s.locate()
		s.searchCached()
		for _, p := range s.probes {
			k := p.key
			if !p.done {
				s.unread = append(s.unread, p)
				k.reads++
			} else if p.lookup.Found || p.lookup.Err != nil {
				continue
			}
			if int(k.run) < end && int(k.reads) < maxReads {
				s.ahead = append(s.ahead, k)
			}
		}
	}
	s.used, s.usedProbes = max(s.used, len(s.unread)), max(s.usedProbes, len(s.memory))
}

// toNextTable takes k on to the next table that may have it by bounds and range tombstones. It reports false if there
// is none in runs before end, or if the table cannot be opened.
func (s *Search) toNextTable(k *Key, end int) bool {
	for int(k.run) < end {
		r := s.Version.Runs[k.run]
		i, t := r.Find(k.Key)
		if t == nil {
			t = r.Last()
		}
		k.run++
		switch {
		case !t.Contains(k.Key):
			s.ruledOut[r.Level].byBounds++
			continue
		case t.LargestSeq < k.Cover:
			s.ruledOut[r.Level].byTombstone++
			continue
		}
		k.level, k.position, k.table = int32(r.Level), int32(i), t
		var err error
		if k.reader, err = t.Open(s.Tables); err != nil {
			p := s.newProbe(k)
			p.done, p.lookup.Found, p.lookup.Err = true, false, err
			return false
		}
		return true
	}
	return false
}

// askFilters makes probes of the keys of s.here that filters admit. The others go on.
func (s *Search) askFilters(end int) {
	s.probes = s.probes[:0]
	for _, k := range s.here {
		verdict := k.reader.AskFilter(k.Key, k.Hash)
		if !verdict.RulesOut() {
			p := s.newProbe(k)
			p.filter = verdict
			s.probes = append(s.probes, p)
			continue
		}
		if verdict == sstable.Remembered {
			s.ruledOut[k.level].byMemory++
		} else {
			s.ruledOut[k.level].byFilter++
		}
		if k.Sampled {
			s.tellCache(k.table, &sstable.Probe{Filter: verdict})
		}
		if int(k.run) < end {
			s.ahead = append(s.ahead, k)
		}
	}
}

// newProbe adds a probe for the present table of k.
func (s *Search) newProbe(k *Key) *probe {
	n := len(s.memory)
	if n == cap(s.memory) { // the keys still refer to what there is
		s.memory, s.usedProbes, n = make([]probe, 0, 2*n), 0, 0
	}
	s.memory = s.memory[:n+1]
	p := &s.memory[n]
	last := &k.probes
	for *last != nil {
		last = &(*last).next
	}
	*last = p
	p.key, p.next, p.table, p.reader, p.level = k, nil, k.table, k.reader, k.level
	p.file, p.leaf, p.done = uint64(k.run)<<32|uint64(k.position), -1, false
	p.lookup.Key, p.lookup.Hash, p.lookup.At = k.Key, k.Hash, s.At
	return p
}

// locate asks the indexes which block may have the key of each probe. Parts of indexes whose reads would be requests
// are left to request.
func (s *Search) locate() {
	if !s.Tables.Far {
		s.leaves.begin(s.probes)
	}
	for _, p := range s.probes {
		if s.Tables.Far {
			if leaf, cold := p.reader.ColdLeaf(p.key.Key); cold {
				p.leaf = leaf
				continue
			}
		}
		_, ok := p.reader.Locate(&p.lookup, p.filter, s.leaves.next())
		p.done = !ok
	}
	s.leaves.end()
}

// searchCached searches the blocks that are in memory, before reading others pushes them out.
func (s *Search) searchCached() {
	inMemory := 0
	for _, p := range s.probes { // all words are on their way before the first is waited for
		if !p.done && p.leaf < 0 && p.reader.InMemory(&p.lookup) {
			inMemory++
		}
	}
	if inMemory == 0 {
		return
	}
	s.lookups = s.lookups[:0]
	for _, p := range s.probes {
		if p.done || p.leaf >= 0 || !p.reader.Pin(&p.lookup) {
			continue
		}
		p.done = true
		if s.lookups = append(s.lookups, &p.lookup); len(s.lookups) == sstable.MaxPinned {
			s.searchPinned()
		}
	}
	s.searchPinned()
}

func (s *Search) searchPinned() {
	r := s.reader(0)
	r.buffer = sstable.FindPinned(r.buffer, s.lookups)
	s.lookups = s.lookups[:0]
}

// tellCache tells the table cache what a table said, for the choice of what is kept in memory.
func (s *Search) tellCache(t *version.Table, p *sstable.Probe) {
	s.Tables.Sampled(&t.Entry, !p.KeyPresent, p.Filter == sstable.Unfiltered)
}

// count counts the tables that were ruled out.
func (s *Search) count() {
	for level := range s.ruledOut {
		if n := &s.ruledOut[level]; *n != (ruledOut{}) {
			c := &s.Levels[level]
			c.OutOfBounds.Add(n.byBounds)
			c.UnderTombstone.Add(n.byTombstone)
			c.Negatives.Add(n.byFilter)
			c.Remembered.Add(n.byMemory)
			*n = ruledOut{}
		}
	}
}

// Release makes s refer to nothing of the store any more. It keeps its memory for another search.
func (s *Search) Release() {
	s.memory = cleared(s.memory, max(s.usedProbes, len(s.memory))) // more if a filter has panicked
	s.open, s.ahead, s.here = nil, cleared(s.ahead, s.used), cleared(s.here, s.used)
	s.probes, s.unread = cleared(s.probes, s.used), cleared(s.unread, max(s.used, len(s.unread)))
	s.lookups, s.blocks = cleared(s.lookups, s.used), cleared(s.blocks, s.used)
	s.used, s.usedProbes, s.ruledOut = 0, 0, [manifest.NumLevels]ruledOut{}
	s.leaves.end()
	for _, r := range s.readers {
		r.own = nil
		if cap(r.buffer) > maxRetained {
			r.buffer = nil
		}
	}
	s.Version, s.Tables, s.Levels = nil, nil, nil
}

// maxRetained bounds the memory for values that a goroutine's buffer keeps.
const maxRetained = 64 << 10

// cleared returns s, empty, after up to n elements of its memory were used.
func cleared[T any](s []T, n int) []T {
	clear(s[:min(n, cap(s))])
	return s[:0]
}
