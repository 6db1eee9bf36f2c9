package peel

const (
	// batch keys are located at once: one call for all of them, and loads that do not wait for each other.
	batch = 256

	// stretch cells are searched for keys that are alone before those are peeled with all that follows from it. The
	// places of a fuse filter's key are near each other, so that all this happens in the CPU's second cache.
	stretch = 4096
)

// A graph has cells for nodes and keys for edges, each between the key's places.
type graph struct {
	arity   int
	degrees []uint8  // keys at a cell that are not yet peeled
	sums    []uint64 // their exclusive-or; at a peeled key's own cell, the key
	order   []uint32 // own cells of peeled keys, then cells that had a single key
	zs      [batch]uint64
	own     [batch]uint32
	places  [batch]Places
}

// clear makes a graph of that many cells and no keys.
func (g *graph) clear(cells, arity int) {
	g.arity = arity
	g.degrees, g.sums, g.order = resized(g.degrees, cells), resized(g.sums, cells), resized(g.order, cells+1)
	clear(g.degrees)
	clear(g.sums)
}

// add adds keys. False means more keys at one cell than can be counted.
func (g *graph) add(l Layout, keys []uint64) bool {
	full := false
	for len(keys) != 0 {
		part := keys[:min(batch, len(keys))]
		l.Locate(part, g.places[:])
		for i, z := range part {
			for _, cell := range g.places[i][:g.arity] {
				g.sums[cell] ^= z
				g.degrees[cell]++
				full = full || g.degrees[cell] == 0
			}
		}
		keys = keys[len(part):]
	}
	return !full
}

// peel takes away keys that are alone at a cell until none is, and returns how many
// they were. The cell is then the key's own.
func (g *graph) peel(l Layout) (peeled int) {
	for start := 0; start < len(g.degrees); start += stretch {
		n := peeled
		for i, d := range g.degrees[start:min(start+stretch, len(g.degrees))] {
			g.order[n] = uint32(start + i)
			n += one(d)
		}
		for next := peeled; next < n; {
			part := g.order[next:min(next+batch, n)]
			next += len(part)
			peeled, n = g.strip(l, part, peeled, n)
		}
	}
	return peeled
}

// strip peels the keys that are alone at the given cells. Peeled keys and the n entries of order
// grow; the former never outrun the cells that have been taken from order.
func (g *graph) strip(l Layout, cells []uint32, peeled, n int) (int, int) {
	alone := 0
	for _, cell := range cells {
		g.own[alone], g.zs[alone] = cell, g.sums[cell]
		alone += one(g.degrees[cell])
	}
	l.Locate(g.zs[:alone], g.places[:])
	for i, cell := range g.own[:alone] {
		if g.degrees[cell] != 1 {
			continue // its key was alone at two cells, and is gone
		}
		z := g.zs[i]
		for _, at := range g.places[i][:g.arity] {
			g.sums[at] ^= z
			g.degrees[at]--
			g.order[n] = at // a cell is left with one key once, if ever
			n += one(g.degrees[at])
		}
		g.sums[cell] = z
		g.order[peeled] = cell
		peeled++
	}
	return peeled, n
}

// one returns 1 for a degree of 1 and 0 for any other, without a branch.
func one(degree uint8) int { return int((uint32(degree^1) - 1) >> 31) }

// assign sets the cells of the peeled keys, the last one's first: when a key's own
// cell is set, its others have their final value.
func (g *graph) assign(l Layout, array []byte, bits uint64, peeled int) {
	for peeled > 0 {
		own := g.order[max(0, peeled-batch):peeled]
		peeled -= len(own)
		for i, cell := range own {
			g.zs[i] = g.sums[cell]
		}
		l.Locate(g.zs[:len(own)], g.places[:])
		set(array, bits, g.arity, g.zs[:len(own)], own, g.places[:])
	}
}
