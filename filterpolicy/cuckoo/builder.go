package cuckoo

import (
	"github.com/siftkv/siftkv/filterpolicy/internal/frame"
	"github.com/siftkv/siftkv/filterpolicy/internal/hash64"
)

// Bounds of a build. A table at its safe load takes about one displacement per key
// in all, and seldom a hundred for one key.
const (
	maxAttempts = 10
	maxKicks    = 500 // displacements for one key
	kicksPerKey = 16  // displacements in all
)

// A Builder collects hashes and turns them into a filter. It is for one goroutine
// at a time, and holds eight bytes per key until Finish.
type Builder struct {
	hashes hash64.List
	policy Policy
}

// AddHash adds a key's hash. A hash equal to the one before it is free; any other
// duplicate costs time in Finish but no space in the filter.
func (b *Builder) AddHash(h uint64) { b.hashes.Add(h) }

// Finish appends the filter to dst and empties the builder for the next file. The filter of no keys
// says no to everything. Finish declines when no attempt succeeds, which takes hashes made to that
// end, or when the filter would not fit the address space; dst is then returned as it was.
func (b *Builder) Finish(dst []byte) (data []byte, ok bool) {
	defer b.hashes.Reset()
	d := frame.Description{Keys: uint64(b.hashes.Len()), Params: uint32(b.policy.bits) | uint32(b.policy.slots)<<8}
	sorting := b.policy.sorting()
	if sorting != nil {
		d.Params |= semisortParam << 16
	}
	start := len(dst)
	if d.Keys != 0 {
		t, ok := b.build()
		if !ok {
			return dst, false
		}
		if sorting != nil {
			dst = sorting.appendCells(dst, t)
		} else {
			dst = append(dst, t.cells...)
		}
		d.Units, d.Seed = t.buckets, t.seed
	}
	return d.Seal(dst, start, frame.Cuckoo), true
}

// build makes the table. Each attempt has a seed of its own; every second one has some more buckets than those before.
//
// If a table is much emptier than it should be, its hashes had many duplicates, or its seed could not distinguish some.
// It is made once more at the size that its fingerprints tell; if that is too small, they were no duplicates.
func (b *Builder) build() (t *table, ok bool) {
	all := uint64(b.hashes.Len())
	keys := all
	for attempt := range uint64(maxAttempts) {
		buckets, ok := b.policy.bucketsFor(keys)
		if !ok {
			return nil, false
		}
		t := newTable(b.policy, buckets+attempt/2*(buckets/64&^1+2), hash64.Seed(&b.hashes, int(attempt)))
		stored, ok := t.fill(&b.hashes)
		if !ok {
			keys = all
			continue
		}
		keys = b.policy.distinct(all, stored, t.buckets)
		slack := buckets / 8
		if right, _ := b.policy.bucketsFor(keys); buckets-slack <= right && right <= buckets+slack+2 {
			return t, true
		}
	}
	return nil, false
}

// fill adds every hash to the empty table and returns how many fingerprints it
// took. False means that a key found no place within the bounds.
func (t *table) fill(hashes *hash64.List) (stored uint64, ok bool) {
	budget := kicksPerKey*hashes.Len() + maxKicks
	random := uint64(0)
	for chunk := range hashes.Chunks() {
		for _, h := range chunk {
			fingerprint, i := t.locate(h)
			j := t.other(fingerprint, i)
			if t.has(i, fingerprint) || t.has(j, fingerprint) {
				continue
			}
			stored++
			if t.put(i, fingerprint) || t.put(j, fingerprint) {
				continue
			}
			random += hash64.Golden
			kicks := t.displace(fingerprint, j, random)
			if budget -= kicks; kicks == 0 || budget < 0 {
				return stored, false
			}
		}
	}
	return stored, true
}

// displace puts the fingerprint in place of another, that one in place of a third in its other
// bucket, and so on until one finds an empty slot. It returns the number of displacements, 0 if
// they came to no end; a fingerprint is then without a place and the table is of no use.
func (t *table) displace(fingerprint, bucket, random uint64) (kicks int) {
	for kick := range maxKicks {
		random = hash64.Mix(random + hash64.Golden)
		fingerprint = t.swap(bucket, hash64.Reduce(random, t.slots), fingerprint)
		bucket = t.other(fingerprint, bucket)
		if t.put(bucket, fingerprint) {
			return kick + 1
		}
	}
	return 0
}
