package compare

import (
	"context"
	"encoding/binary"
	"fmt"
	"time"

	"github.com/siftkv/siftkv/cmd/kvbench/internal/engine"
	"github.com/siftkv/siftkv/cmd/kvbench/internal/keys"
	"github.com/siftkv/siftkv/cmd/kvbench/internal/measure"
)

// replaceChunk is the number of records that are replaced between two readings of the clock.
const replaceChunk = 64

// replace overwrites records that are drawn at random, any at any time, in batches: a number
// of them, or for a time. Each time a record gets another value, so that no older one is taken for it.
func (w *worker) replace(ctx context.Context, j *job) (*Sample, error) {
	u := w.keyspace
	if w.versions == nil {
		w.versions = make([]uint32, u.n)
	}
	w.replaced++ // another draw than that of the last call
	draw := keys.NewRandom(u.seed^replaceDraw, w.replaced)
	limit, done := time.Duration(j.Seconds*float64(time.Second)), 0
	s, err := w.timed(func() error {
		var key, value []byte
		for begun := time.Now(); j.Lookups > 0 && done < j.Lookups || j.Lookups == 0 && time.Since(begun) < limit; {
			n := replaceChunk
			if j.Lookups > 0 {
				n = min(n, j.Lookups-done)
			}
			for range n {
				record := min(int(draw.Float()*float64(u.n)), u.n-1)
				w.versions[record]++
				key = u.source.AppendPresent(key[:0], record)
				value = u.updated.Append(value[:0], w.version(key, record))
				if err := w.store.Put(key, value); err != nil {
					return err
				}
			}
			if done += n; ctx.Err() != nil {
				return ctx.Err()
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	w.checksum = 0
	var key []byte
	for i := range u.n {
		key = u.source.AppendPresent(key[:0], i)
		w.checksum += w.word(key, i)
	}
	return s.of(done), nil
}

// version returns a key with the number of times that its record was replaced: the updated value
// of that is the record's. It is valid until the next call with the room behind the key.
func (w *worker) version(key []byte, record int) []byte {
	return binary.LittleEndian.AppendUint32(key, w.versions[record])
}

// word returns the first word of a record's value as it is now.
func (w *worker) word(key []byte, record int) uint64 {
	if w.versions == nil || w.versions[record] == 0 {
		return w.keyspace.loaded.Word(key)
	}
	return w.keyspace.updated.Word(w.version(key, record))
}

// newest is keyspace.existing with the values that records were replaced by.
func (w *worker) newest(pass uint64) drawing {
	u := w.keyspace
	p := keys.NewPermutation(u.n, keys.Mix(u.seed^existingOrder))
	next := int(pass*passLength) % u.n
	var key []byte
	return func(c *chunk) {
		for range chunkKeys {
			record := p.At(next)
			key = u.source.AppendPresent(key[:0], record)
			c.keys = append(c.keys, key...)
			c.words = append(c.words, w.word(key, record))
			next = (next + 1) % u.n
		}
	}
}

// keyScans is a loop of scans of all keys, without values.
type keyScans struct {
	w     *worker
	store engine.KeyScanner
	sum   uint64 // of the keys' positions
}

func newKeyScans(w *worker) (*keyScans, error) {
	store, ok := w.store.(engine.KeyScanner)
	if !ok {
		return nil, fmt.Errorf("%s has no scans of keys", w.start.Engine)
	}
	k := &keyScans{w: w, store: store}
	var key []byte
	for i := range w.keyspace.n {
		key = w.keyspace.source.AppendPresent(key[:0], i)
		k.sum += position(key)
	}
	return k, nil
}

func (k *keyScans) close() error { return nil }

func (k *keyScans) draw() (int, error) { return k.w.keyspace.n, nil }

// do scans all keys. Their number, order and sum say that each is there, once.
func (k *keyScans) do() error {
	n, sum, previous, disorder := 0, uint64(0), uint64(0), false
	err := k.store.ScanKeys(nil, 0, func(key []byte) {
		p := position(key)
		disorder = disorder || n > 0 && p <= previous
		previous = p
		sum += p
		n++
	})
	if err != nil {
		return err
	}
	if n != k.w.keyspace.n || sum != k.sum || disorder {
		return &measure.WrongAnswer{Kind: engine.Existing, Key: []byte{},
			What: fmt.Sprintf("a scan of keys from here: %d of %d, in order: %t, right sum: %t", n, k.w.keyspace.n,
				!disorder, sum == k.sum)}
	}
	return nil
}
