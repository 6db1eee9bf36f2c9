package redisfilter

import (
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/siftkv/siftkv/filterpolicy/blocked"
	"github.com/siftkv/siftkv/redisfilter/internal/layout"
	"github.com/siftkv/siftkv/redisfilter/internal/mirror"
)

// A mirrorTable has the copies of one generation. What it says is as old as confirmed.
type mirrorTable struct {
	cfg       *config
	content   *partitions
	known     []atomic.Uint32 // layers beside the first that this process knows of, by partition
	confirmed time.Time       // when it was asked who owns the slots, and that the generation is in use
	parts     []*mirrorPart   // nil: ask the Set
	doubted   []bool          // by partition: the copies are good for "maybe" only
	slots     []int           // by partition
	mirrors   []*mirror.Server
}

// ask returns what the copies say of a hash, lost if they do not know.
func (t *mirrorTable) ask(h uint64) layout.Answer {
	spot := blocked.Locate(h)
	number, within := spot.Split(t.content.count)
	part := t.parts[number]
	if part == nil {
		return layout.Lost
	}
	there := int(t.known[number].Load()) + 1
	sum, have := layout.Absent, part.copied()
	for layer := range have {
		shape := t.content.layers[layer]
		shard, line := shape.Place(within)
		view, fresh := part.entry(layer, shard).Load()
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
		if layer == 0 && t.content.grows() {
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
	if t.doubted[number] {
		return layout.Lost
	}
	return sum
}

// add sets the bits of a hash in the last layer that this process knows of, where an add puts them. If
// there is no copy of that layer, lookups ask Redis until it was fetched, and then it has them.
func (t *mirrorTable) add(h uint64) {
	spot := blocked.Locate(h)
	number, within := spot.Split(t.content.count)
	part := t.parts[number]
	last := int(t.known[number].Load())
	if part == nil || last >= part.copied() {
		return
	}
	shape := t.content.layers[last]
	shard, line := shape.Place(within)
	var bits [blocked.MaxProbes]uint16
	var offsets [blocked.MaxProbes]uint32
	positions := layout.BitPositions(bits[:0], spot, shape.Probes)
	for i, p := range positions {
		offsets[i] = uint32(8*layout.LineOffset(line) + layout.RedisBit(int(p)))
	}
	part.entry(last, shard).Or(offsets[:len(positions)]...)
}

// catchUp has copies made of the layers that those of the first layer tell of.
func (t *mirrorTable) catchUp() {
	for number, part := range t.parts {
		if part == nil {
			continue
		}
		there := int(t.known[number].Load()) + 1
		if part.copied() > 0 && t.content.grows() {
			view, _ := part.entry(0, 0).Load()
			told, _ := part.told(view)
			there = max(there, told)
		}
		if there > part.copied() {
			part.extend(there)
		}
	}
}

// A mirrorPart is the copies of one chain.
type mirrorPart struct {
	base  atomic.Pointer[mirror.Entry]      // layer 0, one shard; nil at first
	upper atomic.Pointer[[][]*mirror.Entry] // layers from 1 on, by shard; never shorter than before

	identity string // of the server that has the chain
	mirror   *mirror.Server
	prefix   string
	of       *Mirror
	shapes   []layout.Layer

	full atomic.Bool // there is no memory for more layers
	mu   sync.Mutex  // of those who change it
	gone bool        // it was dropped
}

var noLayers [][]*mirror.Entry

func newMirrorPart(
	r *Mirror, server *mirror.Server, identity, prefix string, shapes []layout.Layer,
) *mirrorPart {
	p := &mirrorPart{identity: identity, mirror: server, prefix: prefix, of: r, shapes: shapes}
	p.upper.Store(&noLayers)
	return p
}

// copied returns how many layers have copies, fetched or not.
func (p *mirrorPart) copied() int {
	if p.base.Load() == nil {
		return 0
	}
	return 1 + len(*p.upper.Load())
}

// entry returns the copy of a shard of a layer below copied.
func (p *mirrorPart) entry(layer, shard int) *mirror.Entry {
	if layer == 0 {
		return p.base.Load()
	}
	return (*p.upper.Load())[layer-1][shard]
}

// told returns how many layers the header of layer 0 tells of, and whether it is one.
func (p *mirrorPart) told(base mirror.View) (layers int, ok bool) {
	var header [layout.HeaderLen]byte
	if base.ReadAt(header[:], 0) != layout.HeaderLen || !p.shapes[0].ValidHeader(header[:]) {
		return 1, false
	}
	return layout.LayersOf(header[:], len(p.shapes)), true
}

// extend has copies made of so many layers, if there is memory for them.
func (p *mirrorPart) extend(layers int) {
	if p.full.Load() {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	var wanted []*mirror.Entry
	for layer := p.copied(); layer < layers && !p.gone; layer++ {
		shape := p.shapes[layer]
		size := int64(shape.Shards * shape.Len())
		if p.of.bytes.Add(size) > p.of.options.MaxBytes {
			p.of.bytes.Add(-size)
			p.full.Store(true)
			break
		}
		entries := make([]*mirror.Entry, shape.Shards)
		for shard := range entries {
			entries[shard] = p.mirror.Entry(layout.ShardKey(p.prefix, layer, shard), shape.Len())
		}
		if layer == 0 {
			p.base.Store(entries[0])
		} else {
			upper := append(slices.Clone(*p.upper.Load()), entries)
			p.upper.Store(&upper)
		}
		wanted = append(wanted, entries...)
	}
	// After they are stored: whoever added a key and did not find an entry was done before the fetch.
	p.mirror.Want(wanted...)
}

// drop gives the copies up.
func (p *mirrorPart) drop() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.gone = true
	for layer := range p.copied() {
		shape := p.shapes[layer]
		for shard := range shape.Shards {
			p.mirror.Forget(p.entry(layer, shard))
		}
		p.of.bytes.Add(-int64(shape.Shards * shape.Len()))
	}
}
