package compare

import (
	"encoding/binary"
	"fmt"

	"github.com/siftkv/siftkv/cmd/kvbench/internal/engine"
	"github.com/siftkv/siftkv/cmd/kvbench/internal/keys"
	"github.com/siftkv/siftkv/cmd/kvbench/internal/measure"
)

// scans is a loop of scans of some length from random keys on.
type scans struct {
	w     *worker
	limit int // 0: everything
	order keys.Permutation
	at    int
	chunk *chunk
	wants []int // entries that they have

	// What a scan has seen.
	entries  int
	sum      uint64
	previous uint64
	disorder bool
}

// scanChunk is the number of scans between two readings of the clock.
const scanChunk = 64

func newScans(w *worker, limit int, pass uint64) *scans {
	u := w.keyspace
	order := keys.NewPermutation(u.n, keys.Mix(u.seed^scanOrder))
	return &scans{w: w, limit: limit, order: order, at: int(pass * passLength), chunk: newChunk(u)}
}

func (s *scans) close() error { return nil }

// visit is called for every entry. The sum of words, the order and the number of
// entries together say that each entry is there, once, with its own value.
func (s *scans) visit(key, value []byte) {
	p := position(key)
	s.disorder = s.disorder || p <= s.previous && s.entries > 0 || len(value) != s.w.start.ValueSize
	s.previous = p
	s.sum += binary.LittleEndian.Uint64(value)
	s.entries++
}

// do does a chunk of scans, or one of everything.
func (s *scans) do() error {
	visit := s.visit
	for i := range s.chunk.len() {
		s.entries, s.sum, s.previous, s.disorder = 0, 0, 0, false
		if err := s.w.store.Scan(s.chunk.key(i), s.limit, visit); err != nil {
			return err
		}
		if want := s.wants[i]; s.disorder || s.entries != want || s.sum != s.chunk.words[i] {
			return &measure.WrongAnswer{
				Kind: engine.Existing, Key: append([]byte(nil), s.chunk.key(i)...),
				What: fmt.Sprintf("a scan from here: %d entries of %d, in order: %t, right sum: %t", s.entries, want,
					!s.disorder, s.sum == s.chunk.words[i]),
			}
		}
	}
	return nil
}

// draw chooses where scans of keys that are left begin and adds up the words of what they should find. It
// counts scans, or the entries of one of everything.
func (s *scans) draw() (int, error) {
	u, c := s.w.keyspace, s.chunk
	c.reset()
	s.wants = s.wants[:0]
	if s.limit == 0 {
		s.wants = append(s.wants, u.n)
		c.keys = u.source.AppendInOrder(c.keys, 0)
		c.words = append(c.words, s.w.checksum)
		return u.n, nil
	}
	var key []byte
	for range scanChunk {
		rank := s.order.At(s.at % u.n)
		s.at++
		c.keys = u.source.AppendInOrder(c.keys, rank)
		want, sum := 0, uint64(0)
		for ; want < s.limit && rank < u.n; rank++ {
			if s.w.hole.has(rank) {
				continue
			}
			key = u.source.AppendInOrder(key[:0], rank)
			sum += u.loaded.Word(key)
			want++
		}
		s.wants, c.words = append(s.wants, want), append(c.words, sum)
	}
	return c.len(), nil
}
