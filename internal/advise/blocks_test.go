package advise

import (
	"encoding/binary"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/internal/scale"
)

// sized gives a bed's files blocks that say their size, and its keys their bytes.
func (b *bed) sized(t *Trace) {
	b.store.BlockSize = 4 << 10
	for i := range b.store.Files {
		f := &b.store.Files[i]
		f.BlockSize, f.Decoded, f.IndexBytes = 4<<10, 4<<10, int64(20*f.Blocks)
	}
	for i := range t.Keys {
		t.Keys[i].Bytes = binary.BigEndian.AppendUint64(nil, mix(uint64(i)))
	}
}

// Popular keys that lie far from each other take less of a cache in small blocks, and the index takes more memory.
func TestSmallBlocksForPopularKeysThatLieApart(t *testing.T) {
	scale.OneGoroutine(t, "one goroutine counts; kv/advice has readers and writers beside")
	b := newBed(40_000, "bloom:10")
	tr := b.trace(60_000, 1.1)
	b.sized(tr)
	b.store.Cache = 1 << 20
	m := New(&b.store, tr, UsualPrices())
	now := m.Predict(Setting{}, b.store.Cache)[0]
	small := m.Predict(Setting{BlockSize: 1 << 10}, b.store.Cache)[0]
	large := m.Predict(Setting{BlockSize: 16 << 10}, b.store.Cache)[0]
	require.Less(t, small.Reads(), 0.8*now.Reads())
	require.Greater(t, large.Reads(), 1.1*now.Reads())
	require.InDelta(t, now.All.Blocks, small.All.Blocks, 1e-9, "which files are read is the same")
	index := b.store.indexBytes()
	require.Equal(t, now.Memory+3*index, small.Memory)
	require.InDelta(t, float64(now.Memory)-0.75*float64(index), float64(large.Memory), 0.01*float64(index))
	require.Contains(t, small.OptionsText(&b.store), "BlockSize = 1024\n")
	require.Contains(t, small.Name(), "blocks of 1 KiB")

	a, err := m.Advise(t.Context(), Config{Filters: []string{"bloom:10"}})
	require.NoError(t, err)
	require.Equal(t, int64(1<<10), a.Best.BlockSize)
	require.LessOrEqual(t, a.Best.Memory, a.Memory+a.Memory/1000)
	for _, p := range a.All {
		require.LessOrEqual(t, leastBlocks*p.BlockSize, p.Cache, "a store refuses a cache of so few blocks")
	}
}

// Blocks of a size that files do not have stay within what files hold, and keys and scans within the blocks.
func TestBlocksAreCutWithinTheirFile(t *testing.T) {
	b := newBed(4_000, "bloom:10")
	tr := b.trace(4_000, 1.1)
	b.sized(tr)
	for i := range uint64(300) {
		file := bedYoung + int32(i%bedFiles)
		first := int32(mix(i) % (b.store.Files[file].Blocks - 3))
		tr.Scans = append(tr.Scans, Scan{Entries: int(i % 90), Bounded: i%3 == 0,
			Start: binary.BigEndian.AppendUint64(nil, mix(i)),
			Parts: []Part{{File: file, First: first, Blocks: int32(1 + i%3), Empty: i%5 == 0}}})
	}
	before := slices.Clone(b.store.Files)
	m := New(&b.store, tr, UsualPrices())
	for _, size := range []int64{1, 100, 1 << 10, 3000, 4 << 10, 10_000, 64 << 10, 1 << 30} {
		r := m.withBlocks(size)
		for i := range r.trace.Keys {
			for _, s := range r.trace.Keys[i].Path {
				require.Less(t, s.Block, int32(r.store.Files[s.File].Blocks), "%d", size)
				require.GreaterOrEqual(t, s.Block, int32(0))
			}
		}
		for i := range r.trace.Scans {
			p := r.trace.Scans[i].Parts[0]
			require.Positive(t, p.Blocks)
			require.GreaterOrEqual(t, p.First, int32(0))
			require.LessOrEqual(t, p.First+p.Blocks, int32(r.store.Files[p.File].Blocks), "%d", size)
		}
		for i := range r.store.Files {
			require.LessOrEqual(t, r.store.Files[i].Blocks, r.store.Files[i].Keys, "an entry is in one block")
		}
	}
	require.Equal(t, before, b.store.Files, "the store is as it was")
	require.Equal(t, m.Predict(Setting{}, 100<<10), m.Predict(Setting{}, 100<<10))
}
