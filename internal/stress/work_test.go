package stress

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"

	"github.com/siftkv/siftkv/kv"
	"github.com/siftkv/siftkv/kv/objects"
)

// work lets workers work, and closes the store after them, or beside them.
func (r *round) work() *Finding {
	r.plan.set(r.planned...)
	var workers, others sync.WaitGroup
	findings := make(chan *Finding, len(r.oracle.spaces)+2)
	for n, space := range r.oracle.spaces {
		w := &worker{r: r, id: n, rng: rand.New(rand.NewPCG(r.rng.Uint64(), 5)), db: r.db, space: space}
		workers.Go(func() { r.report(findings, w.run(r.mix.steps)) })
	}
	if r.want["follower"] && !r.quietAfterEach && r.rng.IntN(3) == 0 {
		rng := rand.New(rand.NewPCG(r.rng.Uint64(), 6))
		others.Go(func() { r.report(findings, r.follow(rng)) })
	}
	done := make(chan struct{})
	if r.closeAt > 0 {
		others.Go(func() {
			select {
			case <-done:
			case <-r.closeNow:
				r.report(findings, r.close())
			}
		})
	}
	workers.Wait()
	r.workersDone.Store(true)
	close(done)
	others.Wait()
	select {
	case f := <-findings:
		return f
	default:
	}
	defer r.detach()
	if r.closing.Load() {
		return nil
	}
	if r.isFenced() {
		if f := r.bucket.afterFence(r); f != nil {
			return f
		}
	} else if !r.gone() {
		if f := r.quietly(); f != nil {
			return f
		}
	}
	return r.close()
}

func (r *round) report(findings chan<- *Finding, f *Finding) {
	if f != nil {
		r.stopped.Store(true)
		findings <- f
	}
}

// operationEnded counts an operation of a worker, and says when it is time to close the
// store beside them.
func (r *round) operationEnded() {
	if r.operations.Add(1) == r.closeAt {
		close(r.closeNow)
	}
}

// close ends the store as the round says.
func (r *round) close() *Finding {
	r.lastEnd = r.end.String()
	switch {
	case r.end == endKill && !r.gone():
		r.disk.Kill()
	case r.end == endCut && !r.gone():
		r.disk.Cut()
	case r.end == endCloseWell:
		r.calm()
	case r.end == endCutInClose:
		r.plan.set(append(r.plan.rulesNow(), cutRule(r.rng, 30))...)
	}
	if r.wasGone = r.gone(); r.closeAt > 0 {
		r.lastEnd += " beside workers"
	}
	r.plan.close()
	r.closing.Store(true)
	r.watch.begin(mainGoroutine, "Close")
	err := r.db.Close()
	r.watch.end(mainGoroutine)
	r.closed.Store(true)
	r.counts.ended(r.end)
	if r.closeAt > 0 && onlyLeft(err) {
		err = nil
	}
	r.closeResult = err
	switch {
	case r.isFenced() && !errors.Is(err, objects.ErrFenced):
		return found("fence", "Close of a store that was taken over: %v", err)
	case r.overtaken(err):
	case r.wasGone || err == nil: // of a store that is gone, what Close says is no promise
	case !documented(err):
		return found("undocumented error", "Close: %v", err)
	case r.end == endCloseWell && !errors.Is(err, ErrGone):
		return found("close", "Close fails on a disk that works: %v", err)
	}
	return nil
}

// onlyLeft reports whether Close has nothing to complain of but what workers had open.
func onlyLeft(err error) bool {
	if several, ok := err.(interface{ Unwrap() []error }); ok {
		for _, e := range several.Unwrap() {
			if !onlyLeft(e) {
				return false
			}
		}
		return true
	}
	return err == nil || isLeft(err)
}

func isLeft(err error) bool {
	return errors.Is(err, kv.ErrIteratorsOpen) || errors.Is(err, kv.ErrSnapshotsOpen) ||
		errors.Is(err, kv.ErrTransactionsOpen) || errors.Is(err, kv.ErrReadersOpen)
}

// settleEnd says what the next opening may find. The workers are done.
func (r *round) settleEnd() *Finding {
	defer r.session.Unmount()
	defer r.plain.Unmount()
	r.closedWell = r.closeResult == nil && !r.wasGone
	switch {
	case r.wasGone:
	case r.closedWell:
		r.oracle.durable(r.oracle.tick())
		r.lastEnd += " that succeeded"
		if names := r.session.OpenFiles(); len(names) > 0 && !r.gone() {
			return found("leak", "after Close that succeeded these files are open: %v", names)
		}
	default:
		r.counts.failedCloses++
		r.lastEnd += fmt.Sprintf(" that failed (%v)", r.closeResult)
	}
	if r.after && !r.gone() {
		r.disk.Cut()
		r.lastEnd += ", then a power cut"
	}
	r.killed = r.disk.Counts().Cuts == r.cuts
	return nil
}
