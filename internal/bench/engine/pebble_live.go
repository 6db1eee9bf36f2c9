package engine

import (
	"fmt"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/bloom"
)

// pebbleLive is a Pebble store under a mixed workload.
type pebbleLive struct {
	*Pebble
	options *pebble.WriteOptions
}

func openPebbleLive(dir string, s Settings) (Live, error) {
	store, err := OpenPebble(dir, s, bloom.FilterPolicy(10))
	if err != nil {
		return nil, err
	}
	live := &pebbleLive{store, pebble.NoSync}
	if s.Durability == Durable {
		live.options = pebble.Sync
	}
	return live, nil
}

// Set writes one key.
func (p *pebbleLive) Set(key, value []byte) error {
	if err := p.db.Set(key, value, p.options); err != nil {
		return fmt.Errorf("pebble: set: %w", err)
	}
	return nil
}

// Scan walks a new iterator.
func (p *pebbleLive) Scan(start []byte, limit int, visit func(key, value []byte)) error {
	it, err := p.db.NewIter(nil)
	if err != nil {
		return fmt.Errorf("pebble: new iterator: %w", err)
	}
	n := 0
	for ok := it.SeekGE(start); ok; ok = it.Next() {
		visit(it.Key(), it.Value())
		if n++; n == limit {
			break
		}
	}
	if err := it.Close(); err != nil {
		return fmt.Errorf("pebble: scan: %w", err)
	}
	return nil
}

// pebbleIteratorLive answers lookups through one iterator for each reader.
type pebbleIteratorLive struct{ Live }

func openPebbleIterator(dir string, s Settings) (Live, error) {
	live, err := openPebbleLive(dir, s)
	if err != nil {
		return nil, err
	}
	return pebbleIteratorLive{live}, nil
}

// NewReader opens an iterator, whatever access is asked for.
func (p pebbleIteratorLive) NewReader(_ Access, kind Kind) (Reader, error) {
	return p.Live.NewReader(Iterator, kind)
}
