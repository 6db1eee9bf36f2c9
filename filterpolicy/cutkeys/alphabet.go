package cutkeys

import (
	"math/bits"
)

// An alphabet gives each byte a code of 1 to 16 bits that none other begins with, and the codes are in the order of the
// bytes. Then so are keys written in them. The lowest code, zeros only, is that of a key's end; so a key's code goes on
// with zeros for ever. The highest stands for bytes above all that occur. Other bytes that do not occur have the code
// of the next one that does; what comes behind them does not matter: no key is between.
//
// On disk: a bit for each byte, 1 if it occurs; then the length of each code less 1, in four bits, the lower half of a
// byte first. The codes are the end's, those of the bytes that occur, and the highest one. The codes follow from that,
// as each begins where the one before it ends and all fill the interval from 0 to 1.
type alphabet [256]letter

// A letter is a code in the 16 highest bits, from the highest down, and its length in the lowest 5.
type letter uint32

const (
	maxLetter  = 16
	unknown    = letter(1 << 5) // flag: the byte does not occur, and ends what can be distinguished
	bitmapLen  = 256 / 8
	maxSymbols = 256 + 2
)

// code returns the bits from the highest of a word down; zeros follow.
func (l letter) code() uint64 { return uint64(l>>16) << 48 }
func (l letter) len() uint    { return uint(l & 31) }

// A census counts the symbols where keys part: 0 is the end of a key, others are bytes plus 1.
type census [maxSymbols]uint64

// occurs marks a byte that has not been counted, so that it has a code.
func (c *census) occurs(b byte) { c[int(b)+1] |= countOne >> 1 }

// countOne is one occurrence; half of it is a byte that occurs but was never counted.
const countOne = 2

// symbols returns the symbols that get codes, in order.
func (c *census) symbols() []int {
	list := make([]int, 1, maxSymbols)
	for s := 1; s < maxSymbols-1; s++ {
		if c[s] != 0 {
			list = append(list, s)
		}
	}
	return append(list, maxSymbols-1)
}

// lengths returns the bits of each symbol's code. Codes split the symbols into halves that occur about equally often,
// as their order permits, and halves again. A rare symbol counts as 2^-rarest of all, which bounds the longest code.
func (c *census) lengths(symbols []int) []byte {
	total := uint64(0)
	for _, s := range symbols {
		total += c[s]
	}
	for rarest := 12; ; rarest-- {
		least := max(1, total>>rarest)
		sums := make([]uint64, len(symbols)+1)
		for i, s := range symbols {
			sums[i+1] = sums[i] + max(c[s], least)
		}
		lengths := make([]byte, len(symbols))
		if halve(sums, lengths, 0) <= maxLetter {
			return lengths
		}
	}
}

// halve sets the lengths of the codes of some symbols, which begin with depth bits in common, from
// the sums before and behind each. It returns the longest.
func halve(sums []uint64, lengths []byte, depth byte) (longest byte) {
	if len(lengths) == 1 {
		lengths[0] = depth
		return depth
	}
	middle := sums[0] + (sums[len(lengths)]-sums[0])/2
	at := 1
	for at < len(lengths)-1 && sums[at+1] <= middle {
		at++
	}
	if at < len(lengths)-1 && sums[at+1]-middle < middle-min(middle, sums[at]) {
		at++
	}
	return max(halve(sums[:at+1], lengths[:at], depth+1), halve(sums[at:], lengths[at:], depth+1))
}

func appendAlphabet(dst []byte, symbols []int, lengths []byte) []byte {
	var occurs [bitmapLen]byte
	for _, s := range symbols[1 : len(symbols)-1] {
		occurs[(s-1)/8] |= 1 << ((s - 1) % 8)
	}
	dst = append(dst, occurs[:]...)
	for i := 0; i < len(lengths); i += 2 {
		pair := lengths[i] - 1
		if i+1 < len(lengths) {
			pair |= (lengths[i+1] - 1) << 4
		}
		dst = append(dst, pair)
	}
	return dst
}

// load makes a the alphabet of data, or says false to what is none.
func (a *alphabet) load(data []byte) bool {
	if len(data) < bitmapLen {
		return false
	}
	occurs, halves := data[:bitmapLen], data[bitmapLen:]
	n := 2
	for _, b := range occurs {
		n += bits.OnesCount8(b)
	}
	if len(halves) != (n+1)/2 {
		return false
	}
	next, i := uint32(0), 0 // where in the interval the next code begins, in 2^-maxLetter; its number
	take := func() (l letter, ok bool) {
		length := uint32(halves[i/2]>>(i%2*4)&15) + 1
		size := uint32(1) << (maxLetter - length)
		l, ok = letter(next<<16|length), next%size == 0 && next+size <= 1<<maxLetter
		next, i = next+size, i+1
		return l, ok
	}
	if _, ok := take(); !ok {
		return false
	}
	missing := 0 // the first byte that has no code yet
	for b := range 256 {
		if occurs[b/8]>>(b%8)&1 == 0 {
			continue
		}
		l, ok := take()
		if !ok {
			return false
		}
		for ; missing < b; missing++ {
			a[missing] = l | unknown
		}
		a[b] = l
		missing++
	}
	l, ok := take()
	for ; missing < 256; missing++ {
		a[missing] = l | unknown
	}
	return ok && next == 1<<maxLetter
}
