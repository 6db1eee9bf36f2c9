package kv

import (
	"math"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/internal/harness"
	"github.com/siftkv/siftkv/internal/vfs"
	"github.com/siftkv/siftkv/sstable"
)

func TestBadOptionsAreNamed(t *testing.T) {
	for name, o := range map[string]*Options{
		"MemoryLimit":              {MemoryLimit: 1 << 20},
		"is -1: want 4194304 to":   {MemoryLimit: -1},
		"MemoryLimit is 8388608":   {MemoryLimit: 8 << 20, MemtableSize: 4 << 20}, // and three of them
		"MemtableSize":             {MemtableSize: 1},
		"MaxMemtables":             {MaxMemtables: 1},
		"BlockSize":                {BlockSize: 10},
		"BlockSize is 3145728":     {BlockSize: 3 << 20, CacheSize: 1 << 30},
		"CacheSize is 65536":       {BlockSize: 32 << 10, CacheSize: 64 << 10},
		"CacheSize of 40008":       {BlockSize: 5001, CacheSize: 40_007},
		"IndexPartition":           {IndexPartition: 10},
		"Compression":              {Compression: 9},
		"TargetFileSize":           {TargetFileSize: 1 << 10},
		"BaseLevelSize":            {BaseLevelSize: 1 << 20, TargetFileSize: 2 << 20},
		"BlobSpace is 1.09: want":  {BlobSpace: 1.09},
		"BlobSpace is -1: want 1":  {BlobSpace: -1},
		"BlobSpace is 1001: want":  {BlobSpace: 1001},
		"BlobSpace is NaN: want 1": {BlobSpace: math.NaN()},
		"SpaceAmplification is 1:": {SpaceAmplification: 1},
		"SpaceAmplification is -1": {SpaceAmplification: -1},
		"SpaceAmplification is Na": {SpaceAmplification: math.NaN()},
		"SpaceAmplification is 3":  {SpaceAmplification: 3},
		"L0CompactionThreshold":    {L0CompactionThreshold: -1},
		"L0SlowdownThreshold":      {L0SlowdownThreshold: 2},
		"L0StopThreshold":          {L0StopThreshold: 5},
		"Compaction is 3":          {Compaction: 3},
		"RunsPerLevel":             {RunsPerLevel: 1},
		"RunsPerLevel is 65":       {RunsPerLevel: 65},
		"CompactionRate is 1000":   {CompactionRate: 1000},
		"CompactionRate is -1":     {CompactionRate: -1},
		"LevelCompression[6] is 7": {LevelCompression: [NumLevels]sstable.Compression{6: 7}},
		"MaxConcurrentCompactions": {MaxConcurrentCompactions: -4},
		"FileMode is 0400":         {FileMode: 0o400},
		"FileMode is 01600":        {FileMode: 0o1600},
		"PollInterval is -1s":      {PollInterval: -time.Second},
	} {
		mem := vfs.NewMem()
		o.harness.FS = mem
		_, err := Open("db", o)
		require.ErrorIs(t, err, ErrInvalidOptions, name)
		require.ErrorContains(t, err, name)
		_, err = mem.List("db")
		require.Error(t, err, "nothing was made")
	}
	require.NoError(t, openMem(t, &Options{CacheSize: -1, Compression: sstable.Zstd,
		MemoryLimit: 4 << 20}).Flush(t.Context()))
}

// The largest blocks that Open accepts for a cache are kept by it.
func TestBlocksThatAreAcceptedAreCached(t *testing.T) {
	t.Parallel()
	for _, o := range []Options{
		{BlockSize: 64, CacheSize: 512},
		{BlockSize: 5001, CacheSize: 40_008},
		{BlockSize: 32 << 10, CacheSize: 256 << 10},
		{BlockSize: 1 << 20, CacheSize: 8 << 20},
		{BlockSize: 1 << 20, CacheSize: 40 << 20},
		{BlockSize: 3 << 20, CacheSize: -1}, // none was asked for
	} {
		db := openMem(t, &o)
		entry := make([]byte, o.BlockSize/2)
		for i := range 6 {
			require.NoError(t, db.Set(settledKey(i), entry, Async))
		}
		require.NoError(t, db.Flush(t.Context()))
		for range 5 {
			_, err := db.Get(settledKey(0))
			require.NoError(t, err)
		}
		hits := db.Metrics().Levels[0].Lookup.BlocksFromCache
		if o.CacheSize < 0 {
			require.Zero(t, hits)
			continue
		}
		require.EqualValues(t, 4, hits, "%d of %d bytes", o.BlockSize, o.CacheSize)
	}
	disk := vfs.NewMem()
	db, err := Open("db", &Options{harness: harness.Harness{FS: disk}})
	require.NoError(t, err)
	require.NoError(t, db.Close())
	db, err = Open("db", &Options{harness: harness.Harness{FS: disk}, ReadOnly: true, BlockSize: 3 << 20})
	require.NoError(t, err, "nothing is written")
	require.NoError(t, db.Close())
}

func TestAMemoryLimitBoundsTheThreadsThatCompact(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(16))
	for _, c := range []struct {
		limit int64
		style CompactionStyle
		want  int
	}{
		{0, Leveled, 8}, {16 << 20, Leveled, 1}, {16 << 20, Tiered, 2}, {64 << 20, Leveled, 4}, {1 << 30, Leveled, 8},
	} {
		o, err := (&Options{MemoryLimit: c.limit, Compaction: c.style}).withDefaults()
		require.NoError(t, err)
		require.Equal(t, c.want, o.MaxConcurrentCompactions, "%d MiB, %v", c.limit>>20, c.style)
	}
	o, err := (&Options{MemoryLimit: 16 << 20, MaxConcurrentCompactions: 6}).withDefaults()
	require.NoError(t, err)
	require.Equal(t, 6, o.MaxConcurrentCompactions)
}
