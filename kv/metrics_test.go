package kv

import (
	"math/rand/v2"
	"path/filepath"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/internal/storetest"
	"github.com/siftkv/siftkv/internal/vfs"
	"github.com/siftkv/siftkv/kv/metrics"
)

// TestRunMetricsAddUp holds the figures of all runs against those of their levels.
func TestRunMetricsAddUp(t *testing.T) {
	t.Parallel()
	allKinds(t, func(t *testing.T, kind CompactionStyle) {
		db := openDir(t, "db", tieredOptions(kind))
		rng := rand.New(rand.NewPCG(1, 1))
		several := false
		for range 12 {
			fill(t, db, storetest.Model{}, rng, 3, 1_000_000)
			settleStore(t, db)
			m := db.Metrics()
			var levels [NumLevels]metrics.Level
			for i, r := range m.Runs {
				if i > 0 {
					require.GreaterOrEqual(t, r.Level, m.Runs[i-1].Level, "young levels are asked first")
				}
				l := &levels[r.Level]
				l.Runs++
				l.Files += r.Files
				l.Bytes += r.Bytes
				l.Entries += r.Entries
				l.FilterBytes += r.FilterBytes
				several = several || r.Level > 0 && l.Runs > 1
			}
			for n, l := range m.Levels {
				require.Equal(t, metrics.Level{Files: l.Files, Runs: l.Runs, Bytes: l.Bytes, Entries: l.Entries,
					FilterBytes: l.FilterBytes}, levels[n])
			}
		}
		require.Equal(t, kind != Leveled, several)
		require.NoError(t, db.Close())
	})
}

// TestMetricsOfPresentKeys counts what lookups of keys that are there cost.
func TestMetricsOfPresentKeys(t *testing.T) {
	db := settledStore(t, 5000, nil)
	before := db.Metrics()
	for i := range 5000 {
		_, err := db.Get(settledKey(i))
		require.NoError(t, err)
	}
	m := db.Metrics().Sub(before)
	c := m.Lookup()
	require.EqualValues(t, 5000, c.Hits)
	require.EqualValues(t, 5000, c.FilterTruePositives)
	require.EqualValues(t, 5000, c.BlocksFromCache)
	require.Zero(t, c.BlocksFromDisk+c.BytesFromDisk+c.FilterFalsePositives+m.MemtableHits)
	require.EqualValues(t, 5000, m.Levels[lastLevel].Entries)
	checkIdentities(t, m)
	require.EqualValues(t, 5000, before.Writes)
	require.Zero(t, m.Writes)
	set(t, db, "key/new", "1")
	_, err := db.Get([]byte("key/new"))
	require.NoError(t, err)
	require.EqualValues(t, 1, db.Metrics().Sub(before).MemtableHits)
}

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
		fill(t, db, storetest.Model{}, rng, 40, 1_000_000)
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
