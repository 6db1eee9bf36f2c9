package kv

import (
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/internal/harness"
	"github.com/siftkv/siftkv/internal/manifest"
	"github.com/siftkv/siftkv/internal/scale"
	"github.com/siftkv/siftkv/internal/storetest"
	"github.com/siftkv/siftkv/internal/vfs"
	"github.com/siftkv/siftkv/internal/vfs/vfstest"
	"github.com/siftkv/siftkv/sstable"
)

// collected is a store of values of some hundred bytes that lie apart, in files of 4 KiB, and flushes and tables to
// match.
func collected(t *testing.T, kind CompactionStyle, change func(*Options)) *DB {
	t.Helper()
	o := tieredOptions(kind)
	o.SeparateFrom, o.harness.BlobSize, o.MemtableSize, o.TargetFileSize, o.BaseLevelSize = 100, 4<<10, 64<<10, 16<<10,
		16<<10
	o.Compression, o.harness.Backoff, o.MaxConcurrentCompactions = sstable.NoCompression, quickBackoff, threadsFor(kind)
	if change != nil {
		change(o)
	}
	return openDir(t, "db", o)
}

// overwrite sets n keys out of a number, each to a value of some hundred bytes.
func overwrite(t *testing.T, db *DB, m storetest.Model, rng *rand.Rand, n, keys int) {
	t.Helper()
	for range n {
		k := fmt.Sprintf("key%05d", rng.IntN(keys))
		v := strings.Repeat(fmt.Sprintf("%08x", rng.Uint32()), 20+rng.IntN(30))
		set(t, db, k, v)
		m[k] = v
	}
	require.NoError(t, db.Flush(t.Context()))
}

// waste returns what is over the limit of a store, and what its blob files have for each byte that is live.
func (d *DB) waste() (over, space float64) {
	d.mu.Lock()
	defer d.mu.Unlock()
	s := d.compactionInput(d.current).BlobSpace()
	return s.Over(), (s.Live + s.Garbage) / max(s.Live, 1)
}

// What is overwritten and deleted comes back without a call, and what is needed stays.
func TestGarbageOfBlobFilesIsCollected(t *testing.T) {
	t.Parallel()
	allKinds(t, func(t *testing.T, kind CompactionStyle) {
		db := collected(t, kind, nil)
		rng := rand.New(rand.NewPCG(1, uint64(kind)))
		m := storetest.Model{}
		var snap *Snapshot
		then := storetest.Model{}
		for round := range 60 {
			overwrite(t, db, m, rng, 60, 400)
			for range 10 {
				k := fmt.Sprintf("key%05d", rng.IntN(400))
				require.NoError(t, db.Delete([]byte(k), NoSync))
				delete(m, k)
			}
			db.settle()
			requireBlobs(t, db)
			over, _ := db.waste()
			require.LessOrEqual(t, over, 0.0, "nothing is due any more")
			if round == 30 {
				snap, then = db.NewSnapshot(), maps.Clone(m)
			}
		}
		require.Greater(t, db.counters.BlobGCs.Load(), uint64(5))
		requireContents(t, m, db)
		requireContents(t, then, snap)
		require.NoError(t, snap.Close())
		require.NoError(t, db.Close())
		require.NoError(t, db.Close())
	})
}

// Of many files one value each is left, in tables that lie between others: they are collected into few.
func TestOneValueOfEachFileIsCollected(t *testing.T) {
	t.Parallel()
	allKinds(t, func(t *testing.T, kind CompactionStyle) {
		db := collected(t, kind, nil)
		m := storetest.Model{}
		for i := range 3000 {
			k, v := fmt.Sprintf("key%05d", i), strings.Repeat(fmt.Sprint(i, " "), 60)
			set(t, db, k, v)
			m[k] = v
			if i%100 == 99 {
				require.NoError(t, db.Flush(t.Context()))
			}
		}
		db.settle()
		files := requireBlobs(t, db)
		require.Greater(t, files, 100)
		for i := range 3000 {
			if k := fmt.Sprintf("key%05d", i); i%20 > 0 {
				require.NoError(t, db.Delete([]byte(k), NoSync))
				delete(m, k)
			}
		}
		require.NoError(t, db.Flush(t.Context()))
		db.settle()
		require.Less(t, requireBlobs(t, db), files/5)
		over, space := db.waste()
		require.LessOrEqual(t, over, 0.0)
		require.Less(t, space, 1.9, "the limit is 1.5, and two files in so small a store")
		requireContents(t, m, db)
		require.NoError(t, db.Close())
	})
}

// What is collected makes room: a store that has settled has nothing to collect, however often it is asked, also when
// its garbage is all in files that cannot be collected.
func TestCollectionEnds(t *testing.T) {
	t.Parallel()
	scale.OneGoroutine(t, "a count of collections; TestGarbageOfBlobFilesIsCollected has the goroutines")
	allKinds(t, func(t *testing.T, kind CompactionStyle) {
		for space := range 3 {
			db := collected(t, kind, func(o *Options) { o.BlobSpace = []float64{1.1, 1.3, 2}[space] })
			rng := rand.New(rand.NewPCG(7, uint64(kind)))
			m := storetest.Model{}
			for range 20 {
				overwrite(t, db, m, rng, 1+rng.IntN(120), 200)
				db.settle()
				require.False(t, db.due())
				n := db.counters.BlobGCs.Load()
				for range 3 {
					db.scheduleCompactions()
					db.settle()
				}
				require.Equal(t, n, db.counters.BlobGCs.Load())
			}
			requireContents(t, m, db)
			require.NoError(t, db.Close())
		}
	})
}

// A blob file that is damaged is left alone, and heard of; the others are collected, and all other values are right.
func TestADamagedBlobFileDoesNotStopCollection(t *testing.T) {
	t.Parallel()
	allKinds(t, func(t *testing.T, kind CompactionStyle) {
		var heard atomic.Int64
		var blobs []string
		db := collected(t, kind, func(o *Options) {
			o.Events.Quarantined = func(err error) {
				requireDamage(t, err, blobs[0], -1)
				heard.Add(1)
			}
		})
		rng := rand.New(rand.NewPCG(3, uint64(kind)))
		m := storetest.Model{}
		for i := range 200 {
			k := fmt.Sprintf("key%05d", i)
			m[k] = strings.Repeat(k, 40)
			set(t, db, k, m[k])
		}
		require.NoError(t, db.Flush(t.Context()))
		db.settle()
		var victim *manifest.BlobFile
		for b := range db.installed().Blobs() {
			if victim == nil || b.Records >= victim.Records {
				victim = &b.BlobFile // nobody has opened it yet
			}
		}
		blobs = append(blobs, filepath.Join("db", victim.Name()))
		bad := readAll(t, db.fs, blobs[0])
		for at := 40; at < len(bad)-100; at += 40 {
			bad[at] ^= 4
		}
		require.NoError(t, vfs.ReplaceFile(db.fs, blobs[0], bad))
		for round := 0; round < 30 || heard.Load() == 0 && round < 200; round++ {
			for range 40 { // every third key keeps its value, also in the damaged file
				if n := rng.IntN(200); n%3 > 0 {
					k, v := fmt.Sprintf("key%05d", n), strings.Repeat(fmt.Sprint(n, " "), 70)
					set(t, db, k, v)
					m[k] = v
				}
			}
			require.NoError(t, db.Flush(t.Context()))
			db.settle()
			requireBlobs(t, db)
		}
		require.EqualValues(t, 1, heard.Load())
		require.Greater(t, db.counters.BlobGCs.Load(), uint64(5))
		over, _ := db.waste()
		require.LessOrEqual(t, over, 0.0)
		lost := 0
		for k, v := range m {
			got, err := db.Get([]byte(k))
			if err != nil {
				requireDamage(t, err, blobs[0], -1)
				lost++
				continue
			}
			require.Equal(t, v, string(got))
		}
		require.Positive(t, lost)
		require.Zero(t, db.Metrics().QuarantinedTables, "tables are whole")
		require.NoError(t, db.Close())
	})
}

// After Compact there is no garbage to speak of, whatever BlobSpace allows; of a range, where files have values of it
// alone.
func TestCompactLeavesNoGarbage(t *testing.T) {
	allKinds(t, func(t *testing.T, kind CompactionStyle) {
		db := collected(t, kind, func(o *Options) { o.BlobSpace = 1000 })
		rng := rand.New(rand.NewPCG(5, uint64(kind)))
		m := storetest.Model{}
		for range 10 {
			overwrite(t, db, m, rng, 60, 400)
		}
		require.NoError(t, db.Compact(t.Context(), []byte("key00100"), []byte("key00200")))
		requireBlobs(t, db)
		requireContents(t, m, db)
		require.NoError(t, db.Compact(t.Context(), nil, nil))
		_, space := db.waste()
		require.Less(t, space, 1.06)
		requireBlobs(t, db)
		requireContents(t, m, db)
		n := db.counters.BlobRelocated.Load()
		require.NoError(t, db.Compact(t.Context(), nil, nil))
		require.Equal(t, n, db.counters.BlobRelocated.Load(), "nothing is left to do")
		require.NoError(t, db.DeleteRange([]byte("key00100"), []byte("key00200"), nil))
		m.DeleteRange([]byte("key00100"), []byte("key00200"))
		require.NoError(t, db.Compact(t.Context(), []byte("key00090"), []byte("key00210")))
		_, space = db.waste()
		require.Less(t, space, 1.1)
		requireContents(t, m, db)
		require.NoError(t, db.Close())
	})
}

// Compact leaves a blob file alone that is damaged, and succeeds.
func TestCompactLeavesADamagedBlobFileAlone(t *testing.T) {
	db := collected(t, Leveled, func(o *Options) { o.BlobSpace = 1000 })
	rng := rand.New(rand.NewPCG(6, 6))
	m := storetest.Model{}
	overwrite(t, db, m, rng, 600, 400)
	db.settle() // no compaction takes the file away meanwhile
	for b := range db.installed().Blobs() {
		name := filepath.Join("db", b.Name())
		bad := readAll(t, db.fs, name)
		for at := 40; at < len(bad)-100; at += 40 {
			bad[at] ^= 4
		}
		require.NoError(t, vfs.ReplaceFile(db.fs, name, bad))
		break
	}
	overwrite(t, db, m, rng, 600, 400)
	require.NoError(t, db.Compact(t.Context(), nil, nil))
	db.settle()
	db.mu.Lock()
	require.Len(t, db.compactions.GC.Excluded, 1)
	db.mu.Unlock()
	_, space := db.waste()
	require.Less(t, space, 1.06)
	require.NoError(t, db.Close())
}

// New tables keep clear of those of their run that are not rewritten, also where tables of the level above have keys
// between those.
func TestCollectedTablesKeepClearOfOthers(t *testing.T) {
	t.Parallel()
	for seed := range uint64(scale.Count(scale.Fewer(2, 1), 6)) {
		db := collected(t, Leveled, func(o *Options) {
			o.TargetFileSize, o.BaseLevelSize = 16<<10, 16<<10
			o.BlobSpace = 1.1
			o.SeparateFrom = 200
		})
		rng := rand.New(rand.NewPCG(8, seed))
		m := storetest.Model{}
		above := 0
		for range 150 {
			for at, n := rng.IntN(20_000), 0; n < 60; n++ { // neighbours, here and there, most of them inline
				at += rng.IntN(20)
				k := fmt.Sprintf("key%05d", at%20_000)
				v := strings.Repeat(fmt.Sprintf("%04x", rng.Uint32()%65536), 1+rng.IntN(80))
				set(t, db, k, v)
				m[k] = v
			}
			require.NoError(t, db.Flush(t.Context()))
			db.settle()
			requireRecount(t, db)
			if db.installed().Levels[lastLevel-1].Len() > 0 {
				above++
			}
		}
		require.Greater(t, above, 20)
		require.Greater(t, db.counters.BlobGCs.Load(), uint64(10))
		require.Zero(t, db.counters.FailedCompactions.Load())
		requireContents(t, m, db)
		require.NoError(t, db.Close())
	}
}

// On a disk without room for a batch the emptiest file goes first: nothing fails for good, no write is refused, and
// what is there is right. With room again all is as before.
func TestCollectionOnAFullDisk(t *testing.T) {
	t.Parallel()
	f := &vfstest.FaultFS{FS: vfs.NewMem()}
	db := collected(t, Leveled, func(o *Options) { o.harness.FS = f })
	rng := rand.New(rand.NewPCG(9, 9))
	m := storetest.Model{}
	overwrite(t, db, m, rng, 900, 300)
	db.settle()
	failed := uint64(0)
	for round := range 40 {
		db.holdCompactions(true)
		overwrite(t, db, m, rng, 100, 300)
		f.Set(vfstest.Quota(rng.IntN(60 << 10))) // for less than the batch, or the tables
		db.holdCompactions(false)
		storetest.Until(func() bool { // a try has ended
			db.mu.Lock()
			defer db.mu.Unlock()
			return db.compactions.Running == 0
		})
		requireRecount(t, db)
		f.Set(nil)
		db.untilResumed()
		db.holdCompactions(false) // as after its back-off
		db.settle()
		requireBlobs(t, db)
		over, _ := db.waste()
		require.LessOrEqual(t, over, 0.0, "round %d", round)
		failed = db.counters.FailedCompactions.Load()
	}
	require.Positive(t, failed)
	require.Greater(t, db.counters.BlobGCs.Load(), uint64(10))
	requireContents(t, m, db)
	require.NoError(t, db.Close())
	db, err := Open("db", &Options{harness: harness.Harness{FS: f}, ReadOnly: true})
	require.NoError(t, err)
	require.NoError(t, db.verify(io.Discard))
	require.NoError(t, db.Close())
}

// Writers do not wait for what cannot be had: all garbage is in files that cannot be read.
func TestWritersDoNotWaitForWhatCannotBeHad(t *testing.T) {
	t.Parallel()
	scale.OneGoroutine(t, "a count of bytes; TestGarbageOfBlobFilesIsCollected has the goroutines")
	db := collected(t, Leveled, func(o *Options) { o.BlobSpace = 1.1 })
	rng := rand.New(rand.NewPCG(10, 10))
	m := storetest.Model{}
	overwrite(t, db, m, rng, 300, 300)
	db.settle()
	db.mu.Lock()
	db.compactions.GC.Excluded = map[uint64]bool{}
	for num := range uint64(10_000) { // every file that there will be
		db.compactions.GC.Excluded[num] = true
	}
	db.mu.Unlock()
	for range 20 {
		overwrite(t, db, m, rng, 400, 300)
	}
	_, space := db.waste()
	require.Less(t, space, 1.1, "what is set aside does not count")
	b := db.Metrics().Blobs
	require.Greater(t, float64(b.LiveBytes+b.Garbage), 1.5*float64(b.LiveBytes), "which is over the limit")
	requireContents(t, m, db)
	require.NoError(t, db.Close())
}
