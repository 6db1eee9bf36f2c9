package advise

import (
	"cmp"
	"math"
	"slices"
	"sync"
)

// A Model is a store with a trace, prepared for predictions. Any number of goroutines may use one.
type Model struct {
	store  *Store
	trace  *Trace
	prices Prices
	oneIn  int
	most   int // touches that a replay should have
	warm   int // lookups before those that are counted

	once      sync.Once
	places    *places
	blockSize int64 // of data blocks, where it is not the files' own
	moreIndex int64 // additional bytes of indexes for it

	share  float64   // of all blocks that are replayed
	likes  int       // keys that a key of the trace stands for in replays: oneIn, or fewer
	thin   int       // one scan in thin is replayed
	sizes  []float64 // of these in the cache
	stored []float64 // and in the files
	keys   [][]touch
	scans  []scanTouches
	order  []int32   // lookups, and scans as -1 - their number, by time
	stats  []keyStat // by key
}

// A touch is a block that a lookup of a key may read.
type touch struct {
	draw    uint64 // decides whether a filter lets the key pass
	file    int32
	block   int32 // number of the model's
	again   int32 // see Step.Again
	present bool
}

type scanTouches []touch

type keyStat struct {
	counted int
	all     int
}

// Limits of the work of a prediction.
const (
	maxTouches = 2 << 20 // that one replay should have
	minBlocks  = 4 << 10 // that a sample has: of fewer, a popular one more or less decides
	warmUp     = 4       // one lookup in warmUp comes before those that are counted

	// A replay has at most mostKept times the touches that it should have, and chooses them from at most mostDrawn.
	// That holds for any number of keys that a trace stands for, and any length of its scans.
	mostKept  = 16
	mostDrawn = 1 << 27
)

// New prepares a model. The store and the trace must not change any more. The first quarter of
// the trace fills the cache and is not counted.
func New(s *Store, t *Trace, p Prices) *Model { return newModel(s, t, p, maxTouches) }

// newModel is New, with a replay of about most touches.
func newModel(s *Store, t *Trace, p Prices, most int) *Model {
	m := &Model{store: s, trace: t, prices: p.with(s.Filter), oneIn: max(1, t.OneIn), warm: len(t.Lookups) / warmUp,
		most: most, stats: make([]keyStat, len(t.Keys)), keys: make([][]touch, len(t.Keys)), share: 1}
	steps, paths := 0, 0
	for i, l := range t.Lookups {
		st := &m.stats[l.Key]
		if st.all++; i >= m.warm {
			st.counted++
		}
		n := m.pathLen(&t.Keys[l.Key])
		if steps += n; st.all == 1 {
			paths += n
		}
	}
	m.limit(steps, paths, most)
	n := numbering{m: m, blocks: map[blockID]int32{}}
	for i := range t.Keys {
		if m.stats[i].all > 0 {
			m.keys[i] = n.touches(&t.Keys[i])
		}
	}
	m.scans = make([]scanTouches, len(t.Scans))
	for i := 0; i < len(t.Scans); i += m.thin {
		m.scans[i] = n.scan(&t.Scans[i], uint64(i))
	}
	m.merge()
	return m
}

// limit chooses how much is replayed. steps is the number of steps of all lookups of the trace, and paths that of their
// distinct keys. A replay should have no more touches than "most".
func (m *Model) limit(steps, paths, most int) {
	scanned := 0
	for i := range m.trace.Scans {
		for _, p := range m.trace.Scans[i].Parts {
			scanned += int(p.Blocks)
		}
	}
	if all := float64(steps)*float64(m.oneIn) + float64(scanned); all > float64(most) {
		m.share = min(1, max(float64(most)/all, minBlocks/float64(m.store.blocks())))
	}
	times := func(kept, drawn int) float64 {
		return min(mostKept*float64(most)/max(1, float64(kept)*m.share), mostDrawn/max(1, float64(drawn)))
	}
	m.likes = max(1, int(min(float64(m.oneIn), times(steps, paths))))
	m.thin = max(1, int(math.Ceil(1/times(scanned, scanned))))
}

// pathLen returns how many files a lookup of a key may reach.
func (m *Model) pathLen(k *Key) int {
	if k.Pathless {
		return m.store.Runs
	}
	return len(k.Path)
}

// merge orders lookups and scans by time.
func (m *Model) merge() {
	m.order = make([]int32, 0, len(m.trace.Lookups)+len(m.trace.Scans))
	for i := range m.trace.Lookups {
		m.order = append(m.order, int32(i))
	}
	for i := range m.trace.Scans {
		m.order = append(m.order, -1-int32(i))
	}
	if len(m.trace.Scans) > 0 {
		slices.SortStableFunc(m.order, func(a, b int32) int { return cmp.Compare(m.at(a), m.at(b)) })
	}
}

// at returns the moment of an element of order.
func (m *Model) at(i int32) int64 {
	if i < 0 {
		return int64(m.trace.Scans[-1-i].At)
	}
	return int64(m.trace.Lookups[i].At)
}

type blockID struct{ file, block int32 }

// A numbering gives the blocks that are replayed numbers, and draws those that are not known.
type numbering struct {
	m      *Model
	blocks map[blockID]int32
	runs   [][]int32 // files of each run; made when it is needed
}

// Kinds of draws.
const (
	drawBlock = 0x626c6f63
	drawPath  = 0x70617468
	drawCoin  = 0x636f696e
	drawScan  = 0x7363616e
)

// mix spreads the bits of a number (the finalizer of SplitMix64).
func mix(x uint64) uint64 {
	x += 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

// unit returns a number from 0 to below 1.
func unit(x uint64) float64 { return float64(x>>11) / (1 << 53) }

// number returns the number of a block, and false if the sample of blocks does not have it.
func (n *numbering) number(id blockID) (int32, bool) {
	if n.m.share < 1 && unit(mix(uint64(uint32(id.file))<<32|uint64(uint32(id.block)))) >= n.m.share {
		return 0, false
	}
	number, ok := n.blocks[id]
	if !ok {
		number = int32(len(n.blocks))
		n.blocks[id] = number
		f := &n.m.store.Files[id.file]
		n.m.sizes, n.m.stored = append(n.m.sizes, f.cached()), append(n.m.stored, f.stored())
	}
	return number, true
}

// touches returns the blocks of a key, and those of the keys that it stands for. If only one key in
// some was recorded, the others are assumed to be looked up like it, and to be in random blocks.
func (n *numbering) touches(k *Key) []touch {
	var all []touch
	for i := range n.m.likes {
		path := k.Path
		like := mix(k.Hash ^ uint64(i))
		if k.Pathless {
			path = n.madeUp(k, like)
		}
		for _, s := range path {
			block := s.Block
			if i > 0 || k.Pathless {
				block = int32(mix(like^uint64(s.File)^drawBlock) % max(1, n.m.store.Files[s.File].Blocks))
			}
			if number, ok := n.number(blockID{s.File, block}); ok {
				if i == 0 && s.Decoded > 0 {
					n.m.sizes[number], n.m.stored[number] = float64(s.Decoded), float64(s.Stored)
				}
				all = append(all, touch{mix(like ^ uint64(s.File)<<8 ^ drawCoin), s.File, number, s.Again, s.Present})
			}
		}
	}
	return all
}

// madeUp returns a path for a key that has none: the run that has it is drawn by how many keys
// runs have, and so is the file of each run.
func (n *numbering) madeUp(k *Key, like uint64) []Step {
	s := n.m.store
	if n.runs == nil {
		n.runs = make([][]int32, s.Runs)
		for i := range s.Files {
			n.runs[s.Files[i].Run] = append(n.runs[s.Files[i].Run], int32(i))
		}
	}
	var path []Step
	left := unit(mix(like^drawPath)) * float64(s.Keys())
	for run, files := range n.runs {
		keys := uint64(0)
		for _, f := range files {
			keys += s.Files[f].Keys
		}
		at, chosen := uint64(unit(mix(like^drawPath^uint64(run+1)))*float64(keys)), int32(-1)
		for _, f := range files {
			if chosen = f; at < s.Files[f].Keys {
				break
			}
			at -= s.Files[f].Keys
		}
		if chosen < 0 {
			continue
		}
		left -= float64(keys)
		here := k.Found && (left < 0 || run == len(n.runs)-1)
		path = append(path, Step{File: chosen, Present: here})
		if here {
			break
		}
	}
	return path
}

// scan returns the blocks of a scan that the sample has. Those that a range filter may save are
// marked as absent.
func (n *numbering) scan(s *Scan, number uint64) scanTouches {
	var all scanTouches
	for _, p := range s.Parts {
		draw := mix(mix(number^drawScan) ^ uint64(p.File))
		for i := range p.Blocks {
			if block, ok := n.number(blockID{p.File, p.First + i}); ok {
				all = append(all, touch{draw, p.File, block, 0, !p.Empty || !s.Bounded})
			}
		}
	}
	return all
}
