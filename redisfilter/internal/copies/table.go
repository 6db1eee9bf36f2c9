package copies

import (
	"slices"
	"sync"
	"sync/atomic"

	"github.com/siftkv/siftkv/filterpolicy/blocked"
	"github.com/siftkv/siftkv/redisfilter/internal/layout"
)

// A Table has the copies of a set of chains of layers, by partition. Only its copies change.
type Table struct {
	Layers  []layout.Layer
	Known   []atomic.Uint32 // layers beside the first that this process knows of, by partition
	Parts   []*Part         // nil: ask Redis
	Doubted []bool          // by partition: the copies are good for "maybe" only
}

// Ask returns what the copies say of a hash, Lost if they do not know.
func (t *Table) Ask(h uint64) layout.Answer {
	spot := blocked.Locate(h)
	number, within := spot.Split(len(t.Parts))
	part := t.Parts[number]
	if part == nil {
		return layout.Lost
	}
	there := int(t.Known[number].Load()) + 1
	sum, have := layout.Absent, part.copied()
	for layer := range have {
		shape := t.Layers[layer]
		shard, line := shape.Place(within)
		view, fresh := part.Entry(layer, shard).Load()
		var room [blocked.LineLen]byte
		n := view.ReadAt(room[:], layout.LineOffset(line))
		switch layout.Ask(room[:n], spot, shape.Probes) {
		case layout.Present:
			return layout.Present
		case layout.Lost:
			sum = layout.Lost
		}
		if !fresh {
			sum = layout.Lost
		}
		if layer == 0 && len(t.Layers) > 1 {
			told, ok := part.told(view)
			if !ok {
				sum = layout.Lost
			}
			there = max(there, told)
		}
	}
	if there > have {
		part.extend(there)
		return layout.Lost
	}
	if t.Doubted[number] {
		return layout.Lost
	}
	return sum
}

// Add sets the bits of a hash in the last layer that this process knows of, where an add puts them. If there is no
// copy of that layer, lookups ask Redis until it was fetched, and then it has them.
func (t *Table) Add(h uint64) {
	spot := blocked.Locate(h)
	number, within := spot.Split(len(t.Parts))
	part := t.Parts[number]
	last := int(t.Known[number].Load())
	if part == nil || last >= part.copied() {
		return
	}
	shape := t.Layers[last]
	shard, line := shape.Place(within)
	var bits [blocked.MaxProbes]uint16
	var offsets [blocked.MaxProbes]uint32
	positions := layout.BitPositions(bits[:0], spot, shape.Probes)
	for i, p := range positions {
		offsets[i] = uint32(8*layout.LineOffset(line) + layout.RedisBit(int(p)))
	}
	part.Entry(last, shard).Or(offsets[:len(positions)]...)
}

// CatchUp has copies made of the layers that those of the first layer tell of.
func (t *Table) CatchUp() {
	for number, part := range t.Parts {
		if part == nil {
			continue
		}
		there := int(t.Known[number].Load()) + 1
		if part.copied() > 0 && len(t.Layers) > 1 {
			view, _ := part.Entry(0, 0).Load()
			told, _ := part.told(view)
			there = max(there, told)
		}
		if there > part.copied() {
			part.extend(there)
		}
	}
}

// A Part is the copies of one chain.
type Part struct {
	base  atomic.Pointer[Entry]      // layer 0, one shard; nil at first
	upper atomic.Pointer[[][]*Entry] // layers from 1 on, by shard; never shorter than before

	Identity string  // of the server that has the chain
	Server   *Server // its copies
	Prefix   string  // of the chain's keys
	budget   *Budget
	layers   []layout.Layer

	full atomic.Bool // there is no memory for more layers
	mu   sync.Mutex  // of those who change it
	gone bool        // it was dropped
}

var noLayers [][]*Entry

// NewPart returns the copies of the chain whose keys begin with prefix. There are none until the table catches up.
func NewPart(server *Server, identity, prefix string, layers []layout.Layer, budget *Budget) *Part {
	p := &Part{Identity: identity, Server: server, Prefix: prefix, budget: budget, layers: layers}
	p.upper.Store(&noLayers)
	return p
}

// A Budget bounds the bytes of copies.
type Budget struct {
	Max  int64
	used atomic.Int64
}

// Used returns the bytes that are in use.
func (b *Budget) Used() int64 { return b.used.Load() }

// copied returns how many layers have copies, fetched or not.
func (p *Part) copied() int {
	if p.base.Load() == nil {
		return 0
	}
	return 1 + len(*p.upper.Load())
}

// Entry returns the copy of a shard of a layer below copied.
func (p *Part) Entry(layer, shard int) *Entry {
	if layer == 0 {
		return p.base.Load()
	}
	return (*p.upper.Load())[layer-1][shard]
}

// told returns how many layers the header of layer 0 tells of, and whether it is one.
func (p *Part) told(base View) (layers int, ok bool) {
	var header [layout.HeaderLen]byte
	if base.ReadAt(header[:], 0) != layout.HeaderLen || !p.layers[0].ValidHeader(header[:]) {
		return 1, false
	}
	return layout.LayersOf(header[:], len(p.layers)), true
}

// extend has copies made of the first layers, if there is memory for them.
func (p *Part) extend(layers int) {
	if p.full.Load() {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	var wanted []*Entry
	for layer := p.copied(); layer < layers && !p.gone; layer++ {
		shape := p.layers[layer]
		size := int64(shape.Shards * shape.Len())
		if p.budget.used.Add(size) > p.budget.Max {
			p.budget.used.Add(-size)
			p.full.Store(true)
			break
		}
		entries := make([]*Entry, shape.Shards)
		for shard := range entries {
			entries[shard] = p.Server.Entry(layout.ShardKey(p.Prefix, layer, shard), shape.Len())
		}
		if layer == 0 {
			p.base.Store(entries[0])
		} else {
			upper := append(slices.Clone(*p.upper.Load()), entries)
			p.upper.Store(&upper)
		}
		wanted = append(wanted, entries...)
	}
	// After they are stored: an add that did not find an entry was done before the fetch.
	p.Server.Want(wanted...)
}

// Drop gives the copies up.
func (p *Part) Drop() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.gone = true
	for layer := range p.copied() {
		shape := p.layers[layer]
		for shard := range shape.Shards {
			p.Server.Forget(p.Entry(layer, shard))
		}
		p.budget.used.Add(-int64(shape.Shards * shape.Len()))
	}
}
