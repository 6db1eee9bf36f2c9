package conformance

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"slices"
)

// A keyKind draws keys of one kind, and the bounds of ranges among them.
type keyKind struct {
	name string
	draw func(r *rand.Rand) []byte
}

// letters returns a function that draws strings of up to most of some bytes.
func letters(most int, from string) func(r *rand.Rand) []byte {
	return func(r *rand.Rand) []byte {
		key := make([]byte, r.IntN(most+1))
		for i := range key {
			key[i] = from[r.IntN(len(from))]
		}
		return key
	}
}

// behindRuns returns a function that sometimes puts a long run of a byte before what draw draws.
func behindRuns(b byte, most int, draw func(r *rand.Rand) []byte) func(r *rand.Rand) []byte {
	return func(r *rand.Rand) []byte {
		run := 0
		if r.IntN(2) == 0 {
			run = most - r.IntN(3)
		}
		return append(bytes.Repeat([]byte{b}, run), draw(r)...)
	}
}

var everyByte = func() string {
	all := make([]byte, 256)
	for i := range all {
		all[i] = byte(i)
	}
	return string(all)
}()

// keyKinds are keys that are hard to cut: prefixes of each other, of the lowest and highest
// bytes, alike for longer than a word, of one letter or all.
var keyKinds = []keyKind{
	{"random", func(r *rand.Rand) []byte { return drawn(r, 16) }},
	{"words", letters(9, "abcdefghijklmnopqrstuvwxyz")},
	{"one letter", letters(300, "a")},
	{"two letters", letters(14, "ab")},
	{"extremes", letters(6, "\x00\x01\xfe\xff")},
	{"zeros", letters(40, "\x00")},
	{"highest", letters(40, "\xff")},
	{"every byte", letters(3, everyByte)},
	{"alike", behindRuns('x', 70, letters(4, "xyz"))},
	{"alike at zero", behindRuns(0, 200, letters(4, "\x00\x7f"))},
	{"alike at the highest", behindRuns(0xff, 33, letters(4, "\xfe\xff"))},
	{"series", func(r *rand.Rand) []byte {
		return fmt.Appendf(nil, "user%06d|%013d", r.IntN(40), 1_700_000_000_000+60_000*int64(r.IntN(100)))
	}},
	{"of 64 KiB", behindRuns('k', 64<<10-4, letters(4, "kl"))},
}

// drawn returns random bytes.
func drawn(r *rand.Rand, n int) []byte {
	key := make([]byte, n)
	for i := range key {
		key[i] = byte(r.Uint32())
	}
	return key
}

// sorted draws n keys, equal ones among them.
func (k keyKind) sorted(r *rand.Rand, n int) [][]byte {
	list := make([][]byte, n)
	for i := range list {
		list[i] = k.draw(r)
	}
	slices.SortFunc(list, bytes.Compare)
	return list
}

// bound draws one end of a range: a key of the list, one beside it, another of the kind, one with a byte
// changed, or none.
func (k keyKind) bound(r *rand.Rand, list [][]byte) []byte {
	key := k.draw(r)
	if len(list) > 0 && r.IntN(2) == 0 {
		key = slices.Clone(list[r.IntN(len(list))])
	}
	switch r.IntN(8) {
	case 0:
		return nil
	case 1:
		return append(key, byte(r.Uint32()))
	case 2:
		return append(key, 0)
	case 3:
		return key[:r.IntN(len(key)+1)]
	case 4:
		if len(key) > 0 {
			key[r.IntN(len(key))] = byte(r.Uint32())
		}
	case 5:
		if len(key) > 0 {
			key[len(key)-1]++
		}
	}
	return key
}
