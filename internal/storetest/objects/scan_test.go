package objects

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/internal/harness"
	"github.com/siftkv/siftkv/internal/objectdir"
	inner "github.com/siftkv/siftkv/internal/sstable"
	"github.com/siftkv/siftkv/internal/storetest"
	"github.com/siftkv/siftkv/kv"
	"github.com/siftkv/siftkv/objstore/objstoretest"
	"github.com/siftkv/siftkv/sstable"
)

// An iterator that is positioned fetches what all files have there side by side, in all ways.
func TestIteratorsOfAnObjectStoreFetchSideBySide(t *testing.T) {
	t.Parallel()
	for _, partition := range []int{0, 64} {
		synctest.Test(t, func(t *testing.T) {
			s, o := newRemoteStore(), remoteOptions()
			o.IndexPartition = partition
			db, _ := s.fill(t, o, remoteYoung)
			most := 1
			if partition > 0 {
				most = 2 // leaves first
			}
			for name, move := range map[string]func(it *kv.Iterator) bool{
				"First": (*kv.Iterator).First, "Last": (*kv.Iterator).Last,
				"SeekGE": func(it *kv.Iterator) bool { return it.SeekGE([]byte{0x80}) },
				"SeekLT": func(it *kv.Iterator) bool { return it.SeekLT([]byte{0x80}) },
			} {
				it, err := db.NewIter(nil)
				require.NoError(t, err)
				gets, trips := s.costs(func() { require.True(t, move(it), name) })
				require.LessOrEqual(t, trips, most+2, "%s, with what is beyond the end of a block or two", name)
				require.LessOrEqual(t, gets, (remoteYoung+1)*most+4, name)
				require.GreaterOrEqual(t, gets, remoteYoung+1, name)
				require.NoError(t, it.Close())
			}
			require.NoError(t, db.Close())
		})
	}
}

// scanAll goes through a store, forward or backward, and returns how many entries there were.
func scanAll(t *testing.T, db *kv.DB, o *kv.IterOptions, backward bool) (n int) {
	it, err := db.NewIter(o)
	require.NoError(t, err)
	move, next := it.First, it.Next
	if backward {
		move, next = it.Last, it.Prev
	}
	for ok := move(); ok; ok = next() {
		n++
	}
	require.NoError(t, it.Error())
	require.NoError(t, it.Close())
	return n
}

// Scans fetch parts ahead, of several files of a run and of all runs, both ways, and no part twice.
func TestScansOfAnObjectStoreFetchAhead(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ young, gets, trips int }{{0, 42, 8}, {remoteYoung, 75, 13}} {
		synctest.Test(t, func(t *testing.T) {
			s, o := newRemoteStore(), remoteOptions()
			db, _ := s.fill(t, o, c.young)
			parts := partsOf(t, db)
			for _, backward := range []bool{false, true} {
				gets, trips := s.costs(func() { require.Equal(t, remoteKeys, scanAll(t, db, nil, backward)) })
				require.LessOrEqual(t, gets, c.gets)
				require.LessOrEqual(t, trips, c.trips, "backward %t", backward)
			}
			synctest.Wait() // parts are given back a moment after they have come
			require.Zero(t, parts.Used())
			require.NoError(t, db.Close())
		})
	}
}

// partsOf returns the budget of the parts that the iterators of a store have.
func partsOf(t *testing.T, db *kv.DB) *inner.Budget {
	files, release, err := harness.FilesOf(db)
	require.NoError(t, err)
	release()
	return &files.Tables.Parts
}

// wideStore returns a store of one run of a few files, each of many parts.
func wideStore(t *testing.T, s *remoteStore, part int) (db *kv.DB, size int64) {
	o := remoteOptions()
	o.TargetFileSize, o.BaseLevelSize, o.Compression = 2<<20, 2<<20, sstable.NoCompression
	harness.Of(o).TuneObjects = func(p *objectdir.Params) { p.PartSize = part }
	db = openObjects(t, s, o)
	for i := range remoteKeys {
		require.NoError(t, db.Set(storetest.ScatteredKey(nil, i), make([]byte, 200), kv.Async))
	}
	require.NoError(t, db.Compact(t.Context(), nil, nil))
	for _, l := range db.Metrics().Levels {
		size += l.Bytes
	}
	return db, size
}

// A scan that goes on has four parts under way, and one that ends early has fetched no more than those in vain.
func TestAScanThatIsClosedEarlyHasFetchedFewParts(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const part = 64 << 10
		s := newRemoteStore()
		db, size := wideStore(t, s, part)
		parts := partsOf(t, db)
		require.Greater(t, size, int64(80*part))
		_, trips := s.costs(func() { require.Equal(t, remoteKeys, scanAll(t, db, nil, false)) })
		require.LessOrEqual(t, trips, int(size/part/partsAhead)+8)
		for n := 1; n < remoteKeys; n *= 2 {
			before, read := s.bytes.Load(), int64(0)
			gets, _ := s.costs(func() {
				it, err := db.NewIter(nil)
				require.NoError(t, err)
				for i, ok := 0, it.First(); ok && i < n; i, ok = i+1, it.Next() {
					read += int64(len(it.Key()) + len(it.Value()))
				}
				require.LessOrEqual(t, parts.Used(), int64((partsAhead+1)*part))
				require.NoError(t, it.Close())
				synctest.Wait()
			})
			time.Sleep(time.Second) // what was under way, and counts until it has come
			synctest.Wait()         // parts are given back a moment after that
			fetched := s.bytes.Load() - before
			require.LessOrEqual(t, fetched, min(10*read, read+read/8+(partsAhead+1)*part)+12<<10, "%d entries", n)
			require.LessOrEqual(t, gets, 1+2+int(read+read/8)/part+partsAhead+2, "%d entries", n)
		}
		require.Zero(t, parts.Used())
		require.NoError(t, db.Close())
	})
}

const partsAhead = 4 // of package internal/sstable

// What is outside of the bounds of a scan is not fetched.
func TestABoundedScanFetchesNothingBehindItsBounds(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const part = 64 << 10
		s := newRemoteStore()
		db, size := wideStore(t, s, part)
		bounds := &kv.IterOptions{LowerBound: []byte{0x20}, UpperBound: []byte{0x80}}
		for _, backward := range []bool{false, true} {
			before, n := s.bytes.Load(), 0
			s.costs(func() { n = scanAll(t, db, bounds, backward) })
			require.InDelta(t, remoteKeys*3/8, n, 1000)
			require.Less(t, s.bytes.Load()-before, size*3/8+size/20, "backward %t", backward)
		}
		require.NoError(t, db.Close())
	})
}

// However many iterators there are, their parts stay within the budget, but for the smallest of each.
func TestPartsOfManyIteratorsAreBounded(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const part, scans = 64 << 10, 20
		s := newRemoteStore()
		db, _ := wideStore(t, s, part)
		parts := partsOf(t, db)
		parts.Limit = 10 * part
		most := int64(0)
		var all sync.WaitGroup
		s.costs(func() {
			for range scans {
				all.Go(func() {
					it, err := db.NewIter(nil)
					require.NoError(t, err)
					n := 0
					for ok := it.First(); ok; ok = it.Next() {
						n++
					}
					require.NoError(t, it.Error())
					require.Equal(t, remoteKeys, n)
					require.NoError(t, it.Close())
				})
			}
			stop := make(chan struct{})
			go func() {
				all.Wait()
				close(stop)
			}()
			for {
				select {
				case <-stop:
					return
				case <-time.After(time.Second / 3):
					most = max(most, parts.Used())
				}
			}
		})
		require.LessOrEqual(t, most, int64(10*part+scans*part/16))
		require.Greater(t, most, int64(8*part), "what there is room for is used")
		synctest.Wait() // parts are given back a moment after they have come
		require.Zero(t, parts.Used())
		require.NoError(t, db.Close())
	})
}

// A part that cannot be fetched is the error of the scan that comes to it, once it does, and of no other.
func TestAPartThatCannotBeFetched(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const part = 64 << 10
		s := newRemoteStore()
		db, _ := wideStore(t, s, part)
		parts := partsOf(t, db)
		run := runsOf(t, db)[0]
		bad := run.At(1)
		fail := func(c objstoretest.Call) error {
			if strings.Contains(c.Key, fmt.Sprintf("%06d-", bad.Num)) {
				return errRemoteFile
			}
			return nil
		}
		// What is next to the file, on its two sides. Going backward, an entry is delivered when the one before is
		// known.
		ends := make([][]byte, 2)
		it, err := db.NewIter(nil)
		require.NoError(t, err)
		require.True(t, it.SeekLT(bad.Smallest))
		ends[0] = slices.Clone(it.Key())
		require.True(t, it.SeekGE(append(slices.Clone(bad.Largest), 0)) && it.Next())
		ends[1] = slices.Clone(it.Key())
		require.NoError(t, it.Close())
		s.fail.Store(&fail)
		for n, backward := range []bool{false, true} {
			s.costs(func() {
				it, err := db.NewIter(nil)
				require.NoError(t, err)
				other, err := db.NewIter(&kv.IterOptions{LowerBound: ends[1]})
				require.NoError(t, err)
				move, next := it.First, it.Next
				if backward {
					move, next = it.Last, it.Prev
				}
				require.True(t, other.First())
				var last []byte
				for ok := move(); ok; ok = next() {
					last = append(last[:0], it.Key()...)
					if other.Valid() {
						other.Next()
					}
				}
				require.ErrorIs(t, it.Error(), errRemoteFile)
				require.Equal(t, ends[n], last, "all before it was delivered")
				require.NoError(t, other.Error())
				require.NoError(t, other.Close())
				require.ErrorIs(t, it.Close(), errRemoteFile)
			})
		}
		s.fail.Store(nil)
		s.costs(func() { require.Equal(t, remoteKeys, scanAll(t, db, nil, false)) })
		synctest.Wait() // parts are given back a moment after they have come
		require.Zero(t, parts.Used())
		require.NoError(t, db.Close())
	})
}

// A store that is closed while parts are under way ends what fetches them.
func TestCloseWhilePartsAreFetched(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newRemoteStore()
		db, _ := wideStore(t, s, 64<<10)
		parts := partsOf(t, db)
		s.near.Store(false)
		var reader sync.WaitGroup
		reader.Go(func() {
			it, err := db.NewIter(nil)
			require.NoError(t, err)
			n := 0
			for ok := it.First(); ok; ok = it.Next() {
				n++
			}
			require.Error(t, it.Error())
			require.Positive(t, n)
			_ = it.Close()
		})
		time.Sleep(5*time.Second + time.Second/2)
		require.Positive(t, parts.Used())
		s.near.Store(true) // for what Close sends
		_ = db.Close()
		reader.Wait()
		synctest.Wait() // parts are given back a moment after they have come
		require.Zero(t, parts.Used())
	})
}
