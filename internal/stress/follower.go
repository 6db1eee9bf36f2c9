package stress

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"

	"github.com/siftkv/siftkv/kv"
)

// follow reads the store beside its writer, as another process would, until the round is
// over, and holds each view against the model.
func (r *round) follow(rng *rand.Rand) *Finding {
	var db *kv.DB
	defer func() {
		if db != nil {
			_ = db.Close()
		}
	}()
	for n := 0; !r.over() && !r.workersDone.Load(); n++ {
		r.watch.begin(followerGoroutine, "following")
		f := r.followOnce(&db, rng)
		r.watch.end(followerGoroutine)
		if f != nil || r.over() {
			return f
		}
		r.count("Refresh")
	}
	return nil
}

func (r *round) followOnce(db **kv.DB, rng *rand.Rand) *Finding {
	var err error
	if *db == nil {
		s := drawSetup(rng)
		s.harness.FS = r.disk.Mount(nil)
		s.opts.Harness(s.harness)
		s.opts.Clock = r.oracle.clock.time
		*db, err = kv.OpenReadOnly(storeDir, &s.opts)
	} else {
		err = (*db).Refresh(context.Background())
	}
	var c content
	if err == nil {
		// What is acknowledged from here on need not be in the view.
		clock := r.oracle.clock
		clock.hold.RLock()
		defer clock.hold.RUnlock()
		c, err = readAll(*db, "", rng.IntN(2) == 0)
	}
	switch {
	case err != nil && r.gone(), errors.Is(err, kv.ErrStale):
		return nil
	case err != nil:
		return found("follower", "a reader beside the writer: %v", err)
	}
	f := r.oracle.checkView("a reader beside the writer", c, nil)
	if f == nil && rng.IntN(8) == 0 {
		err := (*db).Close()
		*db = nil
		if err != nil && !r.gone() {
			return found("follower", "closing a reader beside the writer: %v", err)
		}
	}
	if f != nil {
		f.Text = fmt.Sprintf("%s (view %d)", f.Text, r.number)
	}
	return f
}
