package engine

import (
	"fmt"

	"github.com/siftkv/siftkv/filterpolicy"
	"github.com/siftkv/siftkv/kv"
)

// siftkvLive is a SiftKV store under a mixed workload.
type siftkvLive struct {
	*SiftKV
	options *kv.WriteOptions
}

func openSiftKVLive(dir string, s Settings) (Live, error) {
	policy, err := filterpolicy.Parse("blocked:10")
	if err != nil {
		return nil, fmt.Errorf("siftkv: %w", err)
	}
	store, err := OpenSiftKV(dir, s, policy)
	if err != nil {
		return nil, err
	}
	live := &siftkvLive{store, kv.Async}
	switch s.Durability {
	case WithOS:
		live.options = kv.NoSync
	case Durable:
		live.options = kv.Sync
	}
	return live, nil
}

// Set writes one key.
func (s *siftkvLive) Set(key, value []byte) error {
	if err := s.db.Set(key, value, s.options); err != nil {
		return fmt.Errorf("siftkv: set: %w", err)
	}
	return nil
}

// Memory reads the metrics.
func (s *siftkvLive) Memory() Memory {
	m := s.db.Metrics()
	return Memory{Filters: m.FilterMemory, Indexes: m.IndexMemory, Cache: m.CacheBytes, Memtables: m.MemtableBytes}
}

// Scan walks a new iterator.
func (s *siftkvLive) Scan(start []byte, limit int, visit func(key, value []byte)) error {
	it, err := s.db.NewIter(nil)
	if err != nil {
		return fmt.Errorf("siftkv: new iterator: %w", err)
	}
	n := 0
	for ok := it.SeekGE(start); ok; ok = it.Next() {
		visit(it.Key(), it.Value())
		if n++; n == limit {
			break
		}
	}
	if err := it.Error(); err != nil {
		_ = it.Close()
		return fmt.Errorf("siftkv: scan: %w", err)
	}
	return it.Close()
}
