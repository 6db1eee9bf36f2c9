package ribbon

import (
	"encoding/binary"
	"math/bits"
	"slices"

	"github.com/siftkv/siftkv/filterpolicy/internal/hash64"
)

// A system is the equations of a layer in echelon form: the row of slot i, if any, has its lowest coefficient at i.
type system struct {
	rows    []uint64 // 0: none
	results []uint32
	added   []pivot // by the current bucket
}

// A pivot is a slot and the start, within its bucket, of the key that took it.
type pivot struct {
	slot  uint64
	start uint64
}

// reset makes s the empty system of that many blocks.
func (s *system) reset(blocks uint64) {
	n := blocks * blockLen
	if uint64(cap(s.rows)) < n {
		s.rows, s.results = make([]uint64, n), make([]uint32, n)
	}
	s.rows, s.results = s.rows[:n], s.results[:n]
	clear(s.rows) // the results of no row are not read
}

// add adds a key's equation, by Gaussian elimination on the fly. False means that it contradicts the others.
func (s *system) add(z, start uint64) bool {
	row, results := row(z)
	slot, result := start, uint32(results)
	for {
		if s.rows[slot] == 0 {
			s.rows[slot], s.results[slot] = row, result
			s.added = append(s.added, pivot{slot, start % bucketLen})
			return true
		}
		row ^= s.rows[slot]
		result ^= s.results[slot]
		if row == 0 {
			return result == 0
		}
		zeros := bits.TrailingZeros64(row)
		row >>= zeros
		slot += uint64(zeros)
	}
}

// fill adds keys, which are in ascending order, bucket by bucket. Within a bucket the highest start comes first, as its
// lower slots are crowded by the bucket before; the first contradiction sets the threshold, and keys below it are
// bumped. The rows that they had taken are emptied, which is sound since no later row has used them.
//
// The bumped keys are moved to the front of keys and returned.
func (s *system) fill(l *layer, keys []uint64) (bumped []uint64) {
	bumped, starts := keys[:0], l.starts()
	for begin := 0; begin < len(keys); {
		bucket := hash64.Reduce(keys[begin], starts) / bucketLen
		end := begin + 1
		for end < len(keys) && hash64.Reduce(keys[end], starts)/bucketLen == bucket {
			end++
		}
		threshold := s.fillBucket(l, keys[begin:end])
		if len(l.thresholds) != 0 {
			l.thresholds[bucket/4] |= byte(threshold << (bucket % 4 * 2))
		}
		for _, z := range keys[begin:end] {
			if hash64.Reduce(z, starts)%bucketLen >= limitOf(threshold) {
				break
			}
			bumped = append(bumped, z)
		}
		begin = end
	}
	return bumped
}

// fillBucket adds the keys of a bucket: all of them, or those at and above a threshold, which it returns.
func (s *system) fillBucket(l *layer, keys []uint64) (threshold uint64) {
	s.added = s.added[:0]
	starts := l.starts()
	for _, z := range slices.Backward(keys) {
		start := hash64.Reduce(z, starts)
		if s.add(z, start) {
			continue
		}
		for limitOf(threshold) <= start%bucketLen {
			threshold++
		}
		for _, p := range s.added {
			if p.start < limitOf(threshold) {
				s.rows[p.slot] = 0
			}
		}
		return threshold
	}
	return 0
}

// solve writes the solution to the layer's words, from the last slot to the
// first. Slots without a row are free, and zero.
func (s *system) solve(l *layer) {
	var columns [maxColumns]uint64 // bit j of each is the slot that is 1+j after the current one
	for block := l.blocks; block > 0; {
		block--
		at, n := l.locate(block)
		window := columns[:n]
		for slot := (block + 1) * blockLen; slot > block*blockLen; {
			slot--
			row, result := s.rows[slot], uint64(s.results[slot])
			if row == 0 {
				result = 0
			}
			for c, x := range window {
				sum := uint64(bits.OnesCount64(row>>1&x)) ^ result>>c
				window[c] = x<<1 | sum&1
			}
		}
		for c, x := range window {
			binary.LittleEndian.PutUint64(l.words[at+uint64(c)*wordLen:], x)
		}
	}
}
