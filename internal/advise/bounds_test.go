package advise

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// touchesOf returns how many blocks a model keeps.
func touchesOf(m *Model) (sum int) {
	for _, all := range m.keys {
		sum += len(all)
	}
	for _, all := range m.scans {
		sum += len(all)
	}
	return sum
}

// Scans of everything take no more memory than lookups: of many blocks a sample is replayed.
func TestScansOfManyBlocksAreSampled(t *testing.T) {
	store := Store{Runs: 1, Cache: 1 << 20, Filter: "none",
		Files: []File{{Keys: 1 << 20, Blocks: 64 << 10, Bytes: 64 << 20}}}
	trace := Trace{}
	for i := range 100 {
		trace.Scans = append(trace.Scans, Scan{At: time.Duration(i), Parts: []Part{{Blocks: 64 << 10}}})
	}
	m := newModel(&store, &trace, UsualPrices(), 100_000)
	require.Less(t, touchesOf(m), 100*minBlocks*3/2)
	p := m.Predict(Setting{}, 1<<20)[0]
	require.Equal(t, 64.0*1024, p.Scans.Blocks)
	require.InEpsilon(t, 64*1024, p.Scans.Reads, 0.1, "a cache of a sixty-fourth has none when they are asked for")

	m = newModel(&store, &trace, UsualPrices(), 1000)
	require.Less(t, touchesOf(m), mostKept*1000*3/2, "not all of them are replayed")
	require.InEpsilon(t, 64*1024, m.Predict(Setting{}, 1<<20)[0].Scans.Reads, 0.1)
}

// A trace of one key in very many says little, but takes no more time or memory for that.
func TestKeysStandForSoManyOnly(t *testing.T) {
	store := Store{Runs: 1, Cache: 100 << 10, Filter: "none",
		Files: []File{{Keys: 1 << 20, Blocks: 1000, Bytes: 1 << 20}}}
	trace := Trace{OneIn: 1<<32 - 1}
	for i := range 1000 {
		trace.Keys = append(trace.Keys, Key{Hash: mix(uint64(i)), Found: true, Path: []Step{{Present: true}}})
		trace.Lookups = append(trace.Lookups, Lookup{Key: int32(i), At: time.Duration(i)})
	}
	m := newModel(&store, &trace, UsualPrices(), 100_000)
	require.LessOrEqual(t, touchesOf(m), mostKept*100_000)
	p := m.Predict(Setting{}, 100<<10)[0]
	require.Equal(t, 1.0, p.All.Blocks)
	require.InEpsilon(t, 0.9, p.All.Reads, 0.05)
}
