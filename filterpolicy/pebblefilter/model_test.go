package pebblefilter_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/filterpolicy/pebblefilter"
	"github.com/siftkv/siftkv/internal/scale"
)

// A machine runs random operations on a store and on a map, and reopens the store
// with other filters as it goes.
type machine struct {
	t      *testing.T
	random *rand.Rand
	fs     vfs.FS
	db     *pebble.DB
	model  map[string]string
}

const modelKeys = 400

func (m *machine) key() []byte { return fmt.Appendf(nil, "k%04d", m.random.IntN(modelKeys)) }

func (m *machine) reopen() {
	if m.db != nil {
		closed(m.t, m.db)
	}
	all := []string{"none", "bloom:1", "bloom:10", "blocked:2", "blocked:10", "blocked:16", "cuckoo:4,2", "cuckoo:12",
		"cuckoo:12,8"}
	policy := parse(m.t, all[m.random.IntN(len(all))])
	m.db = open(m.t, m.fs, pebblefilter.New(policy), func(o *pebble.Options) {
		o.DisableAutomaticCompactions = false
		o.MemTableSize = 16 << 10
		o.L0CompactionThreshold = 1
		o.LBaseMaxBytes = 8 << 10
	})
}

func (m *machine) step() {
	t, db := m.t, m.db
	switch op := m.random.IntN(1000); {
	case op < 500:
		k := string(m.key())
		v, closer, err := db.Get([]byte(k))
		if want, ok := m.model[k]; ok {
			require.NoError(t, err, k)
			require.Equal(t, want, string(v), k)
			require.NoError(t, closer.Close())
		} else {
			require.ErrorIs(t, err, pebble.ErrNotFound, k)
		}
	case op < 800:
		k, v := m.key(), bytes.Repeat([]byte{byte(op)}, m.random.IntN(200))
		require.NoError(t, db.Set(k, v, pebble.NoSync))
		m.model[string(k)] = string(v)
	case op < 950:
		k := m.key()
		require.NoError(t, db.Delete(k, pebble.NoSync))
		delete(m.model, string(k))
	case op < 990:
		require.NoError(t, db.Flush())
	case op < 995:
		require.NoError(t, db.Compact(t.Context(), []byte("k"), []byte("l"), false))
	default:
		m.reopen()
	}
}

// seekAll compares every key with the model, by an iterator that asks the filters
// of all levels.
func (m *machine) seekAll() {
	it, err := m.db.NewIter(&pebble.IterOptions{UseL6Filters: true})
	require.NoError(m.t, err)
	for i := range modelKeys {
		k := fmt.Sprintf("k%04d", i)
		want, ok := m.model[k]
		require.Equal(m.t, ok, it.SeekPrefixGE([]byte(k)), k)
		if ok {
			require.Equal(m.t, want, string(it.Value()), k)
		}
	}
	require.NoError(m.t, it.Close())
}

func TestStoreAgreesWithModel(t *testing.T) {
	for seed := range uint64(scale.Count(3, 8)) {
		m := &machine{t: t, random: rand.New(rand.NewPCG(1, seed)), fs: vfs.NewMem(), model: map[string]string{}}
		m.reopen()
		for i := range 3000 {
			m.step()
			if i%500 == 499 {
				m.seekAll()
			}
		}
		closed(t, m.db)
	}
}
