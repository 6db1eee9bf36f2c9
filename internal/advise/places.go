package advise

import (
	"bytes"
	"slices"
)

// places are the positions of a trace's keys within their blocks, from 0 to below 1: one for each step of a path, or
// part of a scan. Only their order is known, so the keys of a block are assumed to be spread evenly over it.
type places struct {
	keys  [][]float32
	scans [][]float32 // where they begin
}

// placed returns the place of an element, or 0 if it is not known.
func placed(of [][]float32, i, n int) float64 {
	if n < len(of[i]) {
		return float64(of[i][n])
	}
	return 0
}

// findPlaces finds the places of all keys and scans of which there are bytes.
func findPlaces(t *Trace) *places {
	p := &places{keys: make([][]float32, len(t.Keys)), scans: make([][]float32, len(t.Scans))}
	var all []placing
	for i := range t.Keys {
		if k := &t.Keys[i]; k.Bytes != nil && !k.Pathless {
			p.keys[i] = make([]float32, len(k.Path))
			all = append(all, placing{k.Bytes, mix(k.Hash), k.Path, nil, p.keys[i]})
		}
	}
	for i := range t.Scans {
		s := &t.Scans[i]
		if low, _ := s.Bounds(); low != nil {
			p.scans[i] = make([]float32, len(s.Parts))
			all = append(all, placing{low, mix(uint64(i)), nil, s.Parts, p.scans[i]})
		}
	}
	slices.SortFunc(all, func(a, b placing) int { return bytes.Compare(a.key, b.key) })
	count, rank := map[blockID]int{}, map[blockID]int{}
	for i := range all {
		all[i].each(func(id blockID, _ *float32) { count[id]++ })
	}
	for i := range all {
		all[i].each(func(id blockID, at *float32) {
			*at = float32((float64(rank[id]) + unit(all[i].draw)) / float64(count[id]))
			rank[id]++
		})
	}
	return p
}

// A placing is a key, or the beginning of a scan, and its places.
type placing struct {
	key   []byte
	draw  uint64
	path  []Step
	parts []Part
	at    []float32
}

func (p *placing) each(f func(id blockID, at *float32)) {
	for n, s := range p.path {
		f(blockID{s.File, s.Block}, &p.at[n])
	}
	for n, s := range p.parts {
		f(blockID{s.File, s.First}, &p.at[n])
	}
}
