package kv

import (
	"slices"

	"github.com/siftkv/siftkv/internal/base"
	"github.com/siftkv/siftkv/internal/sstable"
	"github.com/siftkv/siftkv/internal/version"
)

// Where a read is a request to another machine, it takes as long as thousands of filters, and it is paid for. So a
// lookup of many keys goes through the files in rounds. In each, filters and indexes that are in memory say which
// files, of all levels, each key without an answer has to be looked for in. Then all blocks are fetched side by side.
//
// A key asks one file in its first round, the newest whose filter says maybe, then two, then four. So it costs fewer
// than two times the requests of a Get, whatever the filters let pass, in as many rounds as the logarithm of those.
// With filters of ten bits it is one request in a hundred more. A key with several versions is answered by the newest
// file, in its first round. Only a false positive needs a second round. To ask two files at once would make one round
// of two, and cost a request more for each key that was overwritten.
//
// A block in the cache costs nothing, and is searched when a key reaches it.

// A farKey is a key on its way.
type farKey struct {
	*multiKey
	run   int        // of the version, the next to be considered
	quota int        // files to ask in the next round
	files []*farFile // of the present round, the newest first
	few   [2]*farFile
}

// A farFile is a file in which a key is looked for.
type farFile struct {
	level  int
	table  *version.Table
	reader *sstable.Reader
	filter sstable.FilterVerdict
	look   sstable.Lookup
	leaf   int   // of the index, that has to be read first; -1: none
	seen   bool  // the block was looked into, or there is none
	err    error // of opening it
}

// farTables is tables where reads are requests.
func (m *multiGet) farTables() {
	m.farKeys = m.farKeys[:0]
	for _, k := range m.open {
		m.farKeys = append(m.farKeys, farKey{multiKey: k, quota: 1})
	}
	for keys := m.farKeys; len(keys) > 0; {
		m.farRound = m.farRound[:0]
		for i := range keys {
			k := &keys[i]
			k.files = k.few[:0]
			m.plan(k)
			k.quota *= 2
			m.farRound = append(m.farRound, k.files...)
		}
		readFar(m.farRound)
		keys = m.settleFar(keys)
	}
}

// plan finds the files that k asks in its next round. Those whose block is in memory are asked at once. Files after
// one that has the key are left for a later round.
func (m *multiGet) plan(k *farKey) {
	runs := m.s.version.Runs
	for asked := 0; asked < k.quota && k.run < len(runs); k.run++ {
		r := runs[k.run]
		_, t := r.Find(k.key)
		if t == nil {
			t = r.Last()
		}
		switch {
		case !t.Contains(k.key):
			k.outOfBounds(r.Level, t)
			continue
		case t.LargestSeq < k.cover:
			k.underTombstone(r.Level, t)
			continue
		}
		f := m.farFile()
		f.level, f.table, f.leaf = r.Level, t, -1
		if f.reader, f.err = t.Open(&m.d.tables); f.err != nil {
			k.files = append(k.files, f)
			return
		}
		if f.filter = f.reader.AskFilter(k.key, k.hash); f.filter.RulesOut() {
			p := sstable.Probe{Filter: f.filter}
			m.stripe.Levels[r.Level].Count(&p, false)
			if k.sampled {
				k.tellCache(t, &p)
			}
			continue
		}
		f.look = sstable.Lookup{Key: k.key, Hash: k.hash, At: k.at}
		k.files = append(k.files, f)
		if m.inMemory(f); !f.seen {
			asked++
		} else if f.look.Found {
			k.run++
			return
		}
	}
}

// farFile returns a new one. They are allocated 64 at a time, for keys that need no request.
func (m *multiGet) farFile() *farFile {
	if len(m.farFiles) == cap(m.farFiles) {
		m.farFiles = make([]farFile, 0, 64)
	}
	m.farFiles = append(m.farFiles, farFile{})
	return &m.farFiles[len(m.farFiles)-1]
}

// inMemory asks the index and the block as far as that takes no request.
func (m *multiGet) inMemory(f *farFile) {
	if leaf, cold := f.reader.ColdLeaf(f.look.Key); cold {
		f.leaf = leaf
		return
	}
	if _, ok := f.reader.Locate(&f.look, f.filter, nil); !ok {
		f.seen = true
		return
	}
	if f.reader.InMemory(&f.look) {
		m.wants = append(m.wants[:0], &f.look)
		b := m.reader(0)
		b.buffer = f.reader.FindInBlock(b.buffer, m.wants)
		f.seen = true
	}
}

// readFar asks what is not in memory: parts of indexes side by side, and then blocks, each once for all
// keys that it may have.
func readFar(round []*farFile) {
	if !slices.ContainsFunc(round, func(f *farFile) bool { return f.err == nil && !f.seen }) {
		return
	}
	group(round, func(f *farFile) (farPlace, bool) { return farPlace{f.reader, f.leaf}, f.leaf >= 0 },
		func(files []*farFile) {
			for i, ok := range files[0].reader.LocateTogether(lookups(files), files[0].filter) {
				files[i].seen = !ok
			}
		})
	group(round, func(f *farFile) (farPlace, bool) {
		return farPlace{f.reader, f.look.Block()}, f.err == nil && !f.seen
	}, func(files []*farFile) {
		files[0].reader.FindInBlock(nil, lookups(files))
	})
}

// A farPlace is a block of a file, or a part of its index.
type farPlace struct {
	reader *sstable.Reader
	number int
}

// group calls read for all files of each place, side by side for all places. Files for which place
// reports false are left out.
func group(round []*farFile, place func(f *farFile) (p farPlace, ok bool), read func(files []*farFile)) {
	var groups [][]*farFile
	numbers := map[farPlace]int{}
	for _, f := range round {
		p, ok := place(f)
		if !ok {
			continue
		}
		n, known := numbers[p]
		if !known {
			n = len(groups)
			numbers[p], groups = n, append(groups, nil)
		}
		groups[n] = append(groups[n], f)
	}
	sideBySide(len(groups), func(i int) { read(groups[i]) })
}

func lookups(files []*farFile) []*sstable.Lookup {
	l := make([]*sstable.Lookup, len(files))
	for i, f := range files {
		l[i] = &f.look
	}
	return l
}

// settleFar makes what was found the keys' answers, and returns the keys that go on. Keys with operands may
// have more of them in the same file, which are read side by side too.
func (m *multiGet) settleFar(keys []farKey) []farKey {
	var operands []*farKey
	for i := range keys {
		if k := &keys[i]; k.hasOperand() {
			operands = append(operands, k)
		} else {
			k.settleFiles()
		}
	}
	sideBySide(len(operands), func(i int) { operands[i].settleFiles() })
	left := keys[:0]
	for _, k := range keys {
		if !k.done && k.err == nil && k.run < len(m.s.version.Runs) {
			left = append(left, k)
		}
	}
	return left
}

func (k *farKey) hasOperand() bool {
	for _, f := range k.files {
		if f.look.Found && f.look.Trailer.Kind() == base.KindMerge {
			return true
		}
	}
	return false
}

// settleFiles takes what the files have, the newest first, until that answers the key. Other files
// are only counted, and their errors ignored.
func (k *farKey) settleFiles() {
	for _, f := range k.files {
		switch {
		case !k.done && k.err == nil:
			k.want, k.table, k.reader = &f.look, f.table, f.reader
			if k.err = f.err; k.err == nil {
				k.settle(f.level)
			}
		case f.err == nil && f.look.Err == nil:
			k.stripe.Levels[f.level].Count(&f.look.Probe, false)
			if k.sampled {
				k.tellCache(f.table, &f.look.Probe)
			}
		}
	}
}
