package compare

import (
	"encoding/binary"
	"time"

	"github.com/siftkv/siftkv/cmd/kvbench/internal/keys"
)

// A keyspace is every key there is, what is to be found under it, and the orders in
// which it is asked for. It is immutable.
//
// Records are numbered: those below n are loaded, in this order; those from n on are
// written later and taken from the second half of the absent keys. The first half
// stays absent for good.
type keyspace struct {
	source  *keys.Generated
	n       int
	keySize int
	loaded  keys.Values
	updated keys.Values // what an update writes
	seed    uint64
}

func newKeyspace(s *startTask) (*keyspace, error) {
	source, err := keys.NewGenerated(s.Keys, s.KeySize, s.Seed)
	if err != nil {
		return nil, err
	}
	u := &keyspace{source: source, n: s.Keys, keySize: s.KeySize, seed: s.Seed}
	if u.loaded, err = keys.NewValues(s.ValueSize, s.Seed); err != nil {
		return nil, err
	}
	u.updated, err = keys.NewValues(s.ValueSize, s.Seed+1)
	if s.Random {
		u.loaded, u.updated = u.loaded.Random(), u.updated.Random()
	}
	return u, err
}

// Absent returns how many keys stay absent.
func (u *keyspace) Absent() int { return u.n / 2 }

// spare returns how many records can be written after the load.
func (u *keyspace) spare() int { return u.source.Absent() - u.Absent() }

func (u *keyspace) AppendKey(dst []byte, record int) []byte {
	if record < u.n {
		return u.source.AppendPresent(dst, record)
	}
	return u.source.AppendAbsent(dst, u.Absent()+record-u.n)
}

// AppendValue appends the value of a key as loaded, or as updated.
func (u *keyspace) AppendValue(dst, key []byte, updated bool) []byte {
	if updated {
		return u.updated.Append(dst, key)
	}
	return u.loaded.Append(dst, key)
}

// Right reports whether a value belongs to a key, in either form.
func (u *keyspace) Right(key, value []byte) bool {
	return u.loaded.HasWord(value, u.loaded.Word(key)) ||
		len(value) == u.updated.Size() && u.updated.HasWord(value, u.updated.Word(key))
}

// hasWord reports whether a value is as loaded, by its first word.
func (u *keyspace) hasWord(_, value []byte, word uint64) bool { return u.loaded.HasWord(value, word) }

// chunkKeys is the number of keys drawn at a time, off the clock: enough that two
// readings of it cost nothing, few enough to leave the processor's caches to the
// store.
const chunkKeys = 4096

// A chunk is a run of keys with the words of their values.
type chunk struct {
	size  int // bytes of a key
	keys  []byte
	words []uint64
}

func newChunk(u *keyspace) *chunk {
	return &chunk{size: u.keySize, keys: make([]byte, 0, chunkKeys*u.keySize), words: make([]uint64, 0, chunkKeys)}
}

func (c *chunk) reset()           { c.keys, c.words = c.keys[:0], c.words[:0] }
func (c *chunk) len() int         { return len(c.words) }
func (c *chunk) key(i int) []byte { return c.keys[i*c.size : (i+1)*c.size : (i+1)*c.size] }

func (c *chunk) last() []byte { return c.keys[len(c.keys)-c.size:] }

// A drawing fills chunks, each with other keys than the last.
type drawing func(c *chunk)

// Seeds of the orders of lookups are the run's seed XOR one of these.
const (
	existingOrder = 0x65786973
	absentOrder   = 0x61627365
	zipfOrder     = 0x7a697066
	scanOrder     = 0x7363616e
	zipfDraw      = 0x64726177
	warmupOrder   = 0x7761726d
	mixDraw       = 0x6d697864
	writeOrder    = 0x77726974
	heavyOrder    = 0x68656176
	replaceDraw   = 0x7265706c
)

// passes keeps the keys of repetitions apart: a pass begins this far into the
// random order of all keys.
const passLength = 1 << 22

// cycle draws numbers below n in the random order of a seed, each once before one comes again.
func (u *keyspace) cycle(n int, order, pass uint64, add func(c *chunk, number int)) drawing {
	p := keys.NewPermutation(n, keys.Mix(u.seed^order))
	next := int(pass*passLength) % n
	return func(c *chunk) {
		for range chunkKeys {
			add(c, p.At(next))
			if next++; next == n {
				next = 0
			}
		}
	}
}

func (u *keyspace) existing(order, pass uint64) drawing {
	return u.cycle(u.n, order, pass, u.addLoaded)
}

func (u *keyspace) addLoaded(c *chunk, record int) {
	c.keys = u.source.AppendPresent(c.keys, record)
	c.words = append(c.words, u.loaded.Word(c.last()))
}

// absentKeys draws keys between the loaded ones.
func (u *keyspace) absentKeys(pass uint64) drawing {
	return u.cycle(u.Absent(), absentOrder, pass, func(c *chunk, number int) {
		c.keys, c.words = u.source.AppendAbsent(c.keys, number), append(c.words, 0)
	})
}

// zipfian draws loaded keys, some much more often than others. Which ones are
// popular has nothing to do with key order nor with the order of loading.
func (u *keyspace) zipfian(z *keys.Zipf, pass uint64) drawing {
	p := keys.NewPermutation(u.n, keys.Mix(u.seed^zipfOrder))
	r := keys.NewRandom(u.seed^zipfDraw, pass)
	return func(c *chunk) {
		for range chunkKeys {
			u.addLoaded(c, p.At(z.Draw(r.Float())))
		}
	}
}

// inOrder draws every step-th loaded key in key order, and nothing at the end.
func (u *keyspace) inOrder(step int) drawing {
	next := 0
	return func(c *chunk) {
		for ; next < u.n && c.len() < chunkKeys; next += step {
			c.keys = u.source.AppendInOrder(c.keys, next)
			c.words = append(c.words, u.loaded.Word(c.last()))
		}
	}
}

// position returns the part of a key that sorts it among all keys.
func position(key []byte) uint64 { return binary.BigEndian.Uint64(key) }

// line is the number of words of a cache line.
const line = 8

// A run of chaseSteps loads is timed, chaseRuns times: short enough for some run to
// have the processor to itself.
const (
	chaseSteps = 1 << 14
	chaseRuns  = 64
)

// DependentLoad returns the time of a load whose address comes from the load before,
// over that many bytes of memory in random order, one load per cache line: the least
// of several runs.
func DependentLoad(bytes int64) time.Duration {
	lines := max(2, int(bytes/(8*line)))
	memory := make([]uint64, lines*line)
	order := keys.NewPermutation(lines, 1)
	for i := range lines { // one cycle through all lines
		memory[order.At(i)*line] = uint64(order.At((i+1)%lines)) * line
	}
	at := uint64(0)
	for range min(lines, 1<<20) { // brings in pages and what caches can hold
		at = memory[at]
	}
	best := time.Duration(1 << 62)
	for range chaseRuns {
		start := time.Now()
		for range chaseSteps {
			at = memory[at]
		}
		best = min(best, time.Since(start))
	}
	if at == 0 { // looks at the result, so that the loop is not removed
		best++
	}
	return best / chaseSteps
}
