package kv

import (
	"math/rand/v2"
	"path/filepath"
	"reflect"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/internal/vfs"
)

// What was written is what the events say, from the beginning and for an interval.
func TestWriteAmplification(t *testing.T) {
	t.Parallel()
	var written atomic.Int64
	o := tieredOptions(Leveled)
	o.Events.Flushed = func(i FlushInfo) { written.Add(i.Bytes) }
	o.Events.Compacted = func(i CompactionInfo) {
		if !i.Moved {
			written.Add(i.OutputBytes)
		}
	}
	db := openDir(t, "db", o)
	require.Zero(t, db.Metrics().WriteAmplification(), "nothing was written")
	rng := rand.New(rand.NewPCG(1, 1))
	before := db.Metrics()
	for range 3 {
		written.Store(0)
		fill(t, db, model{}, rng, 40, 1_000_000)
		db.settle()
		m := db.Metrics()
		d := m.Sub(before)
		// A batch of 39 bytes of key and value has a header and lengths.
		require.InDelta(t, 40*40*(9+30+12+3), d.WriteBytes, 40*40*2)
		require.InEpsilon(t, float64(written.Load())/float64(d.WriteBytes), d.WriteAmplification(), 1e-9)
		require.Greater(t, d.WriteAmplification(), 1.5, "flushed, and compacted")
		before = m
	}
	require.NoError(t, db.Close())
}

// A file that is ingested is written once.
func TestWriteAmplificationOfIngestedFiles(t *testing.T) {
	db := openDir(t, t.TempDir(), nil)
	file := ingestFile(t, vfs.OS, filepath.Join(t.TempDir(), "file"), nil, "a=1", "b=2", "c=3")
	require.NoError(t, db.Ingest(t.Context(), []string{file}, nil))
	require.InDelta(t, 1, db.Metrics().WriteAmplification(), 0)
	require.NoError(t, db.Close())
}

// A lookup asks for a block of the only file that has its key, and for none if a memtable
// answers it or the filter rules it out.
func TestReadAmplification(t *testing.T) {
	db := settledStore(t, 5000, nil)
	start := db.Metrics()
	for i := range 5000 {
		_, err := db.Get(settledKey(i))
		require.NoError(t, err)
	}
	present := db.Metrics()
	require.InDelta(t, 1, present.Sub(start).ReadAmplification(), 0)
	set(t, db, "key/new", "1")
	for range 5000 {
		_, err := db.Get([]byte("key/new"))
		require.NoError(t, err)
	}
	m := db.Metrics()
	require.Zero(t, m.Sub(present).ReadAmplification())
	require.InDelta(t, 0.5, m.Sub(start).ReadAmplification(), 0)
	require.Zero(t, m.Sub(m).ReadAmplification(), "no lookup")
	for i := range 5000 {
		_, err := db.Get(append(settledKey(i), 'x'))
		require.ErrorIs(t, err, ErrNotFound)
	}
	d := db.Metrics().Sub(m)
	require.InDelta(t, float64(d.Lookup().BlocksFromCache)/5000, d.ReadAmplification(), 1e-9)
	require.Less(t, d.ReadAmplification(), 0.05)
	require.NoError(t, db.Close())
}

// Every counter and time of Metrics has its difference, and every figure of the moment stays: by
// its type, so that none is left out.
func TestDifferenceOfMetrics(t *testing.T) {
	var m, prev Metrics
	each := func(m *Metrics, f func(name string, v reflect.Value)) {
		v := reflect.ValueOf(m).Elem()
		for i := range v.NumField() {
			f(v.Type().Field(i).Name, v.Field(i))
		}
	}
	value := func(n int64) func(string, reflect.Value) {
		return func(name string, v reflect.Value) {
			switch v.Interface().(type) {
			case uint64:
				v.SetUint(uint64(n + int64(len(name))))
			case int, int64, time.Duration:
				v.SetInt(n + int64(len(name)))
			}
		}
	}
	each(&m, value(1000))
	each(&prev, value(300))
	m.Levels[3].Lookup.Hits, prev.Levels[3].Lookup.Hits = 12, 5
	m.Levels[3].Files, prev.Levels[3].Files = 12, 5
	m.Latency.Flush, prev.Latency.Flush = timesOf(1, 2), timesOf(1)
	counted := 0
	each(m.Sub(&prev), func(name string, v reflect.Value) {
		switch v.Interface().(type) {
		case uint64:
			require.EqualValues(t, 700, v.Uint(), name)
			counted++
		case time.Duration:
			require.EqualValues(t, 700, v.Int(), name)
			require.True(t, strings.HasSuffix(name, "Time"))
			counted++
		case int, int64:
			require.EqualValues(t, 1000+len(name), v.Int(), name)
		}
	})
	require.Greater(t, counted, 30)
	d := m.Sub(&prev)
	require.EqualValues(t, 7, d.Levels[3].Lookup.Hits)
	require.Equal(t, 12, d.Levels[3].Files)
	require.Equal(t, timesOf(2).Sum, d.Latency.Flush.Sum)
	require.EqualValues(t, 12, m.Levels[3].Lookup.Hits, "m stays as it was")
}
