package objects

import (
	"encoding/binary"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/internal/compaction"
	"github.com/siftkv/siftkv/internal/scale"
	"github.com/siftkv/siftkv/kv"
	"github.com/siftkv/siftkv/kv/objects"
	"github.com/siftkv/siftkv/objstore"
	"github.com/siftkv/siftkv/objstore/objstoretest"
)

// A slowLine is a client of an object store in which each request takes 20 ms.
type slowLine struct {
	*objstoretest.Faults
	counters objstore.Counters
}

func newSlowLine(s objstore.Store) *slowLine {
	l := &slowLine{}
	l.Faults = objstoretest.NewFaults(objstore.WithCounters(s, &l.counters), 1)
	l.Inject(func(objstoretest.Call) objstoretest.Fault { return objstoretest.Fault{Delay: 20 * time.Millisecond} })
	return l
}

func (l *slowLine) gets() int64 { return l.counters.Snapshot()[objstore.Get].Requests }

// addCounters writes a small batch of counters.
func addCounters(t *testing.T, db *kv.DB, i int) {
	t.Helper()
	b := db.NewBatch()
	for j := range uint64(50) {
		require.NoError(t, b.Set(binary.BigEndian.AppendUint64(nil, j), binary.BigEndian.AppendUint64(nil, uint64(i))))
	}
	require.NoError(t, b.Commit(kv.Sync))
}

// Each synced write is an entry of the log, and each entry a request when the store is opened. However small the writes
// are, 1,000 entries are read at most.
func TestALongLogOfSmallWritesIsFlushed(t *testing.T) {
	t.Parallel()
	writes := scale.Count(2_400, 150_000)
	synctest.Test(t, func(t *testing.T) {
		mem := objstore.NewMem()
		writer := newSlowLine(mem)
		db := openObjects(t, writer, &kv.Options{})
		for i := range writes {
			addCounters(t, db, i)
		}
		m := db.Metrics()
		require.InDelta(t, writes/500, m.Flushes, float64(writes)/5000+1)
		opens := func(open func(s objstore.Store) *kv.DB) *kv.DB {
			line, start := newSlowLine(mem), time.Now()
			db := open(line)
			took, files := time.Since(start), int64(0)
			for _, l := range db.Metrics().Levels {
				files += int64(l.Files)
			}
			require.LessOrEqual(t, line.gets(), 1000+files)
			require.LessOrEqual(t, took, 2*time.Second)
			v, err := db.Get(make([]byte, 8))
			require.NoError(t, err)
			require.EqualValues(t, writes-1, binary.BigEndian.Uint64(v))
			t.Logf("opened in %v with %d GET", took, line.gets())
			return db
		}
		view := opens(func(s objstore.Store) *kv.DB {
			view, err := kv.OpenReadOnly("", &kv.Options{Objects: &objects.Config{Store: s}})
			require.NoError(t, err)
			return view
		})
		require.NoError(t, view.Close())
		writer.Cut()
		next := opens(func(s objstore.Store) *kv.DB { return openObjects(t, s, &kv.Options{}) })
		require.NoError(t, next.Close())
		require.Error(t, db.Close(), "it was cut off")
	})
}

// A memtable at rest is flushed if its log has many entries, once, and an idle store sends no requests.
func TestALongLogOfAStoreAtRestIsFlushed(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		line := newSlowLine(objstore.NewMem())
		db := openObjects(t, line, &kv.Options{})
		rest := func(writes int) (flushes uint64) {
			before := db.Metrics().Flushes
			for i := range writes {
				addCounters(t, db, i)
			}
			time.Sleep(time.Hour) // which the collector needs too
			synctest.Wait()
			calls := line.Calls()
			time.Sleep(time.Hour)
			synctest.Wait()
			require.Equal(t, calls, line.Calls())
			return db.Metrics().Flushes - before
		}
		require.Zero(t, rest(20), "two requests would save less")
		require.EqualValues(t, 1, rest(compaction.ManyAtRest))
		require.Zero(t, rest(20))
		require.NoError(t, db.Close())
	})
}
