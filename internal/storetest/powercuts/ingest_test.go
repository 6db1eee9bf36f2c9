package powercuts

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"strconv"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/internal/harness"
	"github.com/siftkv/siftkv/internal/scale"
	"github.com/siftkv/siftkv/internal/storetest"
	"github.com/siftkv/siftkv/internal/storetest/stores"
	"github.com/siftkv/siftkv/internal/vfs/crashfs"
	"github.com/siftkv/siftkv/kv"
)

// ingest takes in files as one write of a history. It returns the error of Ingest,
// or of writing the files.
func (r *cutRun) ingest() error {
	n := len(r.states)
	m := maps.Clone(r.states[n-1])
	m["count"] = strconv.Itoa(n)
	var paths []string
	for i, part := range []string{"count", "key/0", "key/1"} {
		path := fmt.Sprintf("ingest-%d-%d", n, i)
		keys := []string{part}
		for j := range r.rng.IntN(20) * min(i, 1) {
			keys = append(keys, fmt.Sprintf("%s%02d", part, 3*j))
		}
		fsys := harness.Of(r.opts).FS
		if c, ok := fsys.(*crashfs.FS); ok {
			fsys = crashfs.New(c.Disk, storetest.Nothing) // writing the files is not under test
		}
		if i == 0 {
			storetest.IngestFile(r.t, fsys, path, nil, "count="+m["count"])
		} else {
			storetest.WriteIngestFile(r.t, r.rng, fsys, path, stores.RandomOptions(r.rng).Filter, m, keys)
		}
		paths = append(paths, path)
	}
	r.states = append(r.states, m)
	r.begun.Store(int64(n))
	return r.db.Ingest(r.t.Context(), paths, &kv.IngestOptions{Link: r.rng.IntN(2) == 0})
}

// TestPowerCutDuringIngest cuts the power while files are taken in, between writes
// without a sync: what is left is a prefix of the history, with all of an ingest's
// files or none.
func TestPowerCutDuringIngest(t *testing.T) {
	t.Parallel()
	cuts := 0
	for seed := uint64(0); cuts < scale.Count(48, 120); seed++ {
		r := &cutRun{t: t, seed: seed, rng: rand.New(rand.NewPCG(seed, 608)), states: []storetest.Model{{}}}
		mem := crashfs.NewDisk()
		clock := rand.New(rand.NewPCG(seed, 609))
		calls := 0
		fs := crashfs.New(mem, func() error {
			calls++
			if len(r.cuts) < 12 && clock.IntN(15) == 0 {
				c := cut{call: calls, synced: int(r.synced.Load())}
				c.disk = mem.Cut(clock)
				c.begun = int(r.begun.Load())
				r.cuts = append(r.cuts, c)
			}
			return nil
		})
		r.open(fs)
		for range 8 {
			for range r.rng.IntN(6) {
				require.NoError(t, r.write())
			}
			require.NoError(t, r.ingest())
			r.durable()
		}
		require.NoError(t, r.db.Close())
		for _, c := range r.cuts {
			r.check(c)
		}
		cuts += len(r.cuts)
	}
	t.Logf("%d power cuts, each followed by one during recovery", cuts)
}

// TestIngestWhenTheDiskFails lets every call of an ingest that changes the disk fail
// in turn: all of the files are there afterwards, or none.
func TestIngestWhenTheDiskFails(t *testing.T) {
	failed := 0
	for failAt := 1; ; failAt++ {
		r := &cutRun{t: t, seed: uint64(failAt), rng: rand.New(rand.NewPCG(3, 610)), states: []storetest.Model{{}}}
		mem := crashfs.NewDisk()
		var calls atomic.Int64
		calls.Store(-1 << 30)
		fs := crashfs.New(mem, func() error {
			if calls.Add(1) == int64(failAt) {
				return storetest.ErrDisk
			}
			return nil
		})
		r.open(fs)
		require.NoError(t, r.write())
		calls.Store(0)
		err := r.ingest()
		reached := calls.Swap(-1 << 30)
		if err == nil {
			r.durable()
		} else {
			failed++
			require.ErrorIs(t, err, storetest.ErrDisk)
		}
		_ = r.db.Close()
		r.recovered(cut{disk: mem, call: failAt, synced: int(r.synced.Load()), begun: int(r.begun.Load())},
			storetest.Nothing)
		if reached < int64(failAt) {
			require.NoError(t, err)
			break
		}
	}
	require.Greater(t, failed, 10)
	t.Logf("%d failures", failed)
}
