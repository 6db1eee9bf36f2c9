package engine

import (
	"bytes"
	"fmt"
	"slices"
)

// batched is the part of a store that gathers what Put is given.
type batched struct {
	perKey int // keys per batch
	n      int // in the batch
	add    func(key, value []byte) error
	write  func() error // writes what was added, and empties the batch
}

func (b *batched) Put(key, value []byte) error {
	if err := b.add(key, value); err != nil {
		return err
	}
	if b.n++; b.n < b.perKey {
		return nil
	}
	return b.commit()
}

// commit writes the batch.
func (b *batched) commit() error {
	b.n = 0
	return b.write()
}

// failed says what failed, if something did.
func failed(what string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s: %w", what, err)
}

// A pairs collects the keys and values of a batch in one buffer.
type pairs struct {
	bytes []byte
	ends  []int // key i ends at ends[2i], its value at ends[2i+1]
}

func (p *pairs) add(key, value []byte) error {
	p.bytes = append(p.bytes, key...)
	p.ends = append(p.ends, len(p.bytes))
	p.bytes = append(p.bytes, value...)
	p.ends = append(p.ends, len(p.bytes))
	return nil
}

func (p *pairs) len() int { return len(p.ends) / 2 }

func (p *pairs) at(i int) (key, value []byte) {
	start := 0
	if i > 0 {
		start = p.ends[2*i-1]
	}
	return p.bytes[start:p.ends[2*i]:p.ends[2*i]], p.bytes[p.ends[2*i]:p.ends[2*i+1]:p.ends[2*i+1]]
}

// sorted returns the numbers of the pairs in key order.
func (p *pairs) sorted(order []int) []int {
	order = order[:0]
	for i := range p.len() {
		order = append(order, i)
	}
	slices.SortFunc(order, func(a, b int) int {
		ka, _ := p.at(a)
		kb, _ := p.at(b)
		return bytes.Compare(ka, kb)
	})
	return order
}

func (p *pairs) reset() { p.bytes, p.ends = p.bytes[:0], p.ends[:0] }
