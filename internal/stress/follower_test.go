package stress

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"

	"github.com/siftkv/siftkv/internal/harness"
	"github.com/siftkv/siftkv/kv"
)

// A view is a reader beside the writer, as another process would have it; or none yet.
type view struct{ db *kv.DB }

func (v *view) close() {
	if v.db != nil {
		_ = v.db.Close()
	}
}

// follow reads the store beside its workers, until they are done.
func (r *round) follow(rng *rand.Rand) *Finding {
	v := &view{}
	defer v.close()
	for !r.over() && !r.workersDone.Load() {
		r.watch.begin(followerGoroutine, "Refresh")
		f := r.refresh(v, rng)
		r.watch.end(followerGoroutine)
		if f != nil {
			return f
		}
		r.count("Refresh")
		time.Sleep(100 * time.Microsecond) // a reader that does nothing else takes a processor from the workers
	}
	return nil
}

// refresh brings the worker's own reader beside the writer up to date.
func (w *worker) refresh() *Finding { return w.r.refresh(&w.view, w.rng) }

// refresh opens a reader beside the writer, or brings it up to date, and holds what it sees
// against the model.
func (r *round) refresh(v *view, rng *rand.Rand) *Finding {
	var err error
	if v.db == nil {
		s := drawSetup(rng)
		s.harness.FS = r.disk.Mount(nil)
		if r.bucket != nil {
			r.bucket.use(&s, r.bucket.store, 0)
		}
		*harness.Of(&s.opts) = s.harness
		s.opts.Clock = r.oracle.clock.time
		v.db, err = kv.OpenReadOnly(storeDir, &s.opts)
	} else {
		err = v.db.Refresh(context.Background())
	}
	var c content
	if err == nil {
		// What is acknowledged from here on need not be in the view.
		clock := r.oracle.clock
		clock.hold.RLock()
		defer clock.hold.RUnlock()
		c, err = readAll(v.db, "", rng.IntN(2) == 0)
	}
	switch {
	case err != nil && r.gone(), errors.Is(err, kv.ErrStale):
		return nil
	case err != nil:
		return found("follower", "a reader beside the writer: %v", err)
	}
	f := r.oracle.checkView("a reader beside the writer", c, nil)
	if f == nil && rng.IntN(8) == 0 {
		err := v.db.Close()
		v.db = nil
		if err != nil && !r.gone() {
			return found("follower", "closing a reader beside the writer: %v", err)
		}
	}
	return f
}
