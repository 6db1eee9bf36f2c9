package stress

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"runtime"
	"strconv"
	"time"

	"github.com/siftkv/siftkv/internal/harness"
	"github.com/siftkv/siftkv/kv"
	"github.com/siftkv/siftkv/kv/metrics"
)

// calm ends all that goes wrong, for calls that are under way too.
func (r *round) calm() {
	r.plan.lift()
	r.session.Settle()
	if r.bucket != nil {
		r.bucket.flight.settle()
	}
}

// quietly looks at a store on which nobody works any more and where nothing goes wrong any
// more.
func (r *round) quietly() *Finding {
	if r.end == endClose || r.end == endCutInClose {
		return nil // what goes wrong goes on
	}
	r.calm()
	r.watch.begin(mainGoroutine, "looking at a quiet store")
	defer r.watch.end(mainGoroutine)
	if resumed, f := r.waitUntilResumed(); f != nil || !resumed {
		return f
	}
	if f := r.checkNow("when all was quiet"); f != nil {
		return f
	}
	if f := r.checkBlobs("when all was quiet"); f != nil {
		return f
	}
	if f := r.catchUp(); f != nil {
		return f
	}
	if f := r.lookForSpace(); f != nil {
		return f
	}
	if r.quiet && r.db.Metrics().QuarantinedTables == 0 {
		return r.lookForGarbage()
	}
	return nil
}

// patientAttempts is how often a store may try to resume on a disk that works.
const patientAttempts = 2000

// waitUntilResumed returns when the store takes writes.
func (r *round) waitUntilResumed() (resumed bool, f *Finding) {
	first := r.db.Metrics().ResumeAttempts
	for {
		m := r.db.Metrics()
		switch {
		case m.Failure == "" && !errors.Is(r.db.Sync(context.Background()), kv.ErrReadOnly):
			return true, nil // what failed last in the log has come out by the Sync
		case !r.setup.resumes() || r.bucket != nil && r.bucket.expect.Load():
			return false, nil
		case m.ResumeAttempts > first+patientAttempts:
			return false, found("does not resume", "after %d attempts on a disk that works: %s", m.ResumeAttempts-first,
				m.Failure)
		}
		time.Sleep(time.Millisecond)
	}
}

// checkNow holds what the store has against what was acknowledged, exactly.
func (r *round) checkNow(what string) *Finding {
	c, err := readAll(r.db, "", r.rng.IntN(2) == 0)
	if r.overtaken(err) {
		return nil
	}
	if err != nil {
		return found("unreadable", "%s: %v", what, err)
	}
	o := r.oracle
	want := content{}
	for _, k := range o.spaces {
		maps.Copy(want, k.now.at(o.clock.now()))
	}
	for n, value := range o.counters {
		for inc := range o.increments {
			if inc.counter == n {
				value = max(value, inc.value)
			}
		}
		if value > 0 {
			want[counterKey(n)] = strconv.FormatInt(value, 10)
		}
	}
	if diff := difference(want, c); diff != "" {
		return found("wrong content", "%s: %s", what, diff)
	}
	return nil
}

// lookForGarbage overwrites keys under a snapshot, compacts the store, closes the snapshot,
// and compacts again: then the store has one entry for each key, and nothing else.
func (r *round) lookForGarbage() *Finding {
	r.counts.garbageChecks++
	s := r.db.NewSnapshot()
	w := &worker{r: r, id: mainGoroutine, rng: rand.New(rand.NewPCG(r.rng.Uint64(), 7)), db: r.db,
		space: r.oracle.spaces[0]}
	for range 2 {
		if f := w.overwrite(); f != nil {
			return f
		}
	}
	// A log begins in the background: that its put failed may come out by the first write, not by a Sync before.
	if resumed, f := r.waitUntilResumed(); f != nil || !resumed {
		_ = s.Close()
		return f
	}
	for range 2 {
		if err := r.db.Compact(context.Background(), nil, nil); r.overtaken(err) {
			_ = s.Close()
			return nil
		} else if err != nil {
			return found("compact", "Compact fails on a disk that works: %v", err)
		}
		if err := s.Close(); err != nil {
			return found("compact", "closing a snapshot: %v", err)
		}
	}
	if f := r.checkNow("after Compact"); f != nil {
		return f
	}
	return r.countEntries()
}

// overwrite sets many keys.
func (w *worker) overwrite() *Finding {
	op := w.begin("Batch.Commit", levelNoSync)
	b := w.db.NewBatch()
	if err := w.fill(b, op, 0); err != nil {
		return found("undocumented error", "filling a batch: %v", err)
	}
	for n := range keysPerWorker {
		set := write{key: fmt.Sprintf("%sk%03d", w.space.prefix, n), value: w.value(op)}
		op.writes = append(op.writes, set)
		if err := b.Set([]byte(set.key), []byte(set.value)); err != nil {
			return found("undocumented error", "filling a batch: %v", err)
		}
	}
	return w.attempt(op, func() error { return b.Commit(writeOptions(op.level)) })
}

// countEntries compares the number of entries in tables with that of keys.
func (r *round) countEntries() *Finding {
	c, err := readAll(r.db, "", false)
	if r.overtaken(err) {
		return nil
	}
	if err != nil {
		return found("unreadable", "after Compact: %v", err)
	}
	if b := r.db.Metrics().Blobs; b.Garbage*19 > b.LiveBytes+uint64(b.Files) && stuckBlobs(r.db) == 0 {
		return found("garbage", "after Compact(nil, nil) and with no snapshot open blob files have %d bytes of "+
			"garbage, and %d that are live", b.Garbage, b.LiveBytes)
	}
	expired, unfolded := 0, 0
	for _, k := range r.oracle.spaces {
		expired += k.now.expired(r.oracle.clock.now())
		unfolded += k.now.unfolded()
	}
	var total metrics.Level
	for _, l := range r.db.Metrics().Levels {
		total.Entries += l.Entries
		total.Deletes += l.Deletes
		total.RangeDeletes += l.RangeDeletes
		total.Merges += l.Merges
	}
	if total.Entries > uint64(len(c)+expired+unfolded) || total.Entries < uint64(len(c)) ||
		total.Deletes+total.RangeDeletes > 0 || total.Merges > uint64(unfolded) {
		return found("garbage", "after Compact(nil, nil) and with no snapshot open, the store has %d entries of "+
			"%d keys (and %d that have expired), %d deletes, %d range deletes, %d operands (of %d keys that they "+
			"may belong to)",
			total.Entries, len(c), expired, total.Deletes, total.RangeDeletes, total.Merges, unfolded)
	}
	return nil
}

// rest waits for the store's own goroutines, so that a single worker's operations meet them
// in the same state each time. If they do not come to rest, because they fail again and
// again, it gives up for the rest of the round.
func (r *round) rest() {
	for still, n := 0, 0; still < 3 && !r.restless; n++ {
		m := r.db.Metrics()
		if still++; m.RunningCompactions > 0 || m.Memtables > 1 || m.Failure != "" && r.setup.resumes() {
			still = 0
		}
		r.restless = n > 200
		if runtime.Gosched(); still == 0 && n > 20 {
			time.Sleep(50 * time.Microsecond)
		}
	}
}

// stuckBlobs returns how many blob files of a store, a *kv.DB, blob GC leaves, as they or their tables are damaged. A
// closed store has none.
func stuckBlobs(db any) int {
	s, release, err := harness.FilesOf(db)
	if err != nil {
		return 0
	}
	defer release()
	return s.Stuck
}
