package cutkeys

import (
	"encoding/binary"
	"math/bits"
	"slices"
)

type writer struct {
	data    []byte
	marks   int // where in data they are: room for all
	groups  int
	streams int // where they begin

	lengths []int // of the group's keys: bits in common with the key before
	tails   bitWriter
	counts  [spread]uint8
	sorted  []int
	overrun bool // the streams, or a key, are too long
}

// add adds a key of which the bits up to end are kept, in common with the key before it the first ones.
func (w *writer) add(key *path, before, end int) {
	if len(w.lengths) == groupLen {
		w.flush(before)
	}
	begin := before + 1
	if len(w.lengths) == 0 {
		first := key.from(0)
		if end < wordBits {
			first &^= ^uint64(0) >> end
		}
		binary.LittleEndian.PutUint64(w.data[w.marks:], first)
		w.marks += wordLen
		begin = wordBits
	}
	w.lengths = append(w.lengths, before)
	for ; begin < end; begin += tailStep {
		w.tails.write(key.from(begin), uint(min(tailStep, end-begin)))
	}
}

// tailStep is how many bits of a tail are written, and read, at a time.
const tailStep = 56

func (w *writer) close() { w.flush(0) }

// flush writes a group. Its last key has after bits in common with the key after it.
func (w *writer) flush(after int) {
	w.lengths = append(w.lengths, after)
	begin := len(w.data) - w.streams
	base := w.base()
	for i, l := range w.lengths {
		w.lengths[i] = numbered(l - base)
		w.overrun = w.overrun || uint64(w.lengths[i]) >= 1<<escapeBits
	}
	rice := bestRice(w.lengths)
	w.data = appendLengths(w.data, w.lengths, rice)
	size := len(w.data) - w.streams - begin
	w.data = w.tails.appendTo(w.data)
	w.lengths = w.lengths[:0]
	w.overrun = w.overrun || len(w.data)-w.streams > maxStreams
	g := newGroup(uint64(begin), uint64(base), uint64(rice), uint64(size))
	binary.LittleEndian.PutUint64(w.data[w.groups:], uint64(g))
	w.groups += wordLen
}

// spread is the usual distance from the least of a group's lengths to their median.
const spread = 64

// base returns the median of the group's lengths, the least of the two if there are two.
func (w *writer) base() int {
	least := w.lengths[0]
	for _, l := range w.lengths {
		least = min(least, l)
	}
	w.counts = [spread]uint8{}
	for _, l := range w.lengths {
		w.counts[min(l-least, spread-1)]++
	}
	seen := 0
	for at, n := range w.counts[:spread-1] {
		if seen += int(n); seen*2 >= len(w.lengths) {
			return min(maxBase, least+at)
		}
	}
	w.sorted = append(w.sorted[:0], w.lengths...)
	slices.Sort(w.sorted)
	return min(maxBase, w.sorted[(len(w.sorted)-1)/2])
}

// numbered gives integers numbers from 0 up: 0, -1, 1, -2, ...
func numbered(x int) int { return x<<1 ^ x>>(bits.UintSize-1) }

// bestRice returns the bits of a remainder with which the code of some numbers is shortest.
func bestRice(numbers []int) uint {
	sum := 0
	for _, z := range numbers {
		sum += min(z, escapeZeros<<maxRice)
	}
	rice := uint(bits.Len(uint(sum / (2 * len(numbers)))))
	rice = min(rice, maxRice)
	best := codeLen(numbers, rice)
	for rice > 0 {
		less := codeLen(numbers, rice-1)
		if less > best {
			break
		}
		rice, best = rice-1, less
	}
	return rice
}

// codeLen returns the bits of numbers in a code with some bits of remainder.
func codeLen(numbers []int, rice uint) int {
	n := len(numbers) * int(1+rice)
	for _, z := range numbers {
		if zeros := z >> rice; zeros < escapeZeros {
			n += zeros
		} else {
			n += escapeZeros + escapeBits - 1
		}
	}
	return n
}

// appendLengths appends numbered lengths in a Rice code with some bits of remainder.
func appendLengths(dst []byte, numbers []int, rice uint) []byte {
	word, n := uint64(0), uint(0)
	put := func(x uint64, count uint) {
		word |= x << n
		for n += count; n >= 8; n -= 8 {
			dst = append(dst, byte(word))
			word >>= 8
		}
	}
	for _, z := range numbers {
		put(uint64(z)&(1<<rice-1), rice)
		if zeros := uint(z) >> rice; zeros < escapeZeros {
			put(1<<zeros, zeros+1)
			continue
		}
		put(0, escapeZeros)
		put(uint64(z)>>rice, escapeBits)
	}
	if n > 0 {
		dst = append(dst, byte(word))
	}
	return dst
}

// A bitWriter appends bits to bytes, from the highest bit of each down.
type bitWriter struct {
	bytes []byte
	word  uint64 // of bits that are not yet a byte, from the highest down
	n     uint   // their number, below 8
}

// write appends the n highest bits of x, at most tailStep.
func (w *bitWriter) write(x uint64, n uint) {
	w.word |= x &^ (^uint64(0) >> n) >> w.n
	for w.n += n; w.n >= 8; w.n -= 8 {
		w.bytes = append(w.bytes, byte(w.word>>56))
		w.word <<= 8
	}
}

// appendTo appends the bytes to dst, the last one filled with zeros, and empties the writer.
func (w *bitWriter) appendTo(dst []byte) []byte {
	if w.n > 0 {
		w.bytes = append(w.bytes, byte(w.word>>56))
	}
	dst = append(dst, w.bytes...)
	*w = bitWriter{bytes: w.bytes[:0]}
	return dst
}
