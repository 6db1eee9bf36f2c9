package redisfilter_test

import (
	"context"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/redisfilter"
	"github.com/siftkv/siftkv/redisfilter/internal/redistest"
)

// A cuckooRows is the database of a test: rows, and a source that reads them.
type cuckooRows struct {
	mu   sync.Mutex
	rows map[string]bool
}

func newCuckooRows(keys [][]byte) *cuckooRows {
	d := &cuckooRows{rows: map[string]bool{}}
	for _, key := range keys {
		d.rows[string(key)] = true
	}
	return d
}

func (d *cuckooRows) source(_ context.Context, _ time.Time, add func(keys ...[]byte) error) error {
	return add(d.keys()...)
}

func (d *cuckooRows) keys() (keys [][]byte) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for row := range d.rows {
		keys = append(keys, []byte(row))
	}
	return keys
}

// commit inserts a row unless its transaction has timed out, and says whether it did.
func (d *cuckooRows) commit(key []byte, deadline time.Time) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if time.Now().After(deadline) {
		return false
	}
	d.rows[string(key)] = true
	return true
}

func (d *cuckooRows) delete(key []byte) {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.rows, string(key))
}

// ready waits until a set says no.
func ready(t *testing.T, k *redisfilter.Cuckoo) { require.NoError(t, k.Ready(t.Context())) }

// denies waits until a set says a certain no to all of some keys.
func denies(t *testing.T, k *redisfilter.Cuckoo, keys [][]byte) {
	t.Helper()
	redistest.Await(t, "no to keys that were not added", func() bool {
		maybe, err := k.MContains(t.Context(), keys)
		return err == nil && !slices.Contains(maybe, true)
	})
}
