package stress

import (
	"cmp"
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/siftkv/siftkv/internal/storetest"
)

// drawSeparation draws which values are separated, in small blob files.
func (s *setup) drawSeparation(rng *rand.Rand) {
	o := &s.opts
	o.SeparateFrom = []int{-1, 1, 30, 4096}[rng.IntN(4)]
	o.BlobSpace = []float64{0, 1.1, 1.3, 2}[rng.IntN(4)]
	o.SeparateAtCommit = rng.IntN(2) == 0 && o.SeparateFrom > 0
	s.harness.BlobSize = []int64{1 << 10, 8 << 10, 64 << 10}[rng.IntN(3)]
	s.harness.MinStreamed = []int64{0, 1, 1000}[rng.IntN(3)]
}

// separation describes which values are separated.
func (s *setup) separation() string {
	if s.opts.SeparateFrom <= 0 {
		return "no separated values"
	}
	text := fmt.Sprintf("values of at least %d bytes separated", s.opts.SeparateFrom)
	if s.opts.SeparateAtCommit {
		text += " at commit"
	}
	return text + fmt.Sprintf(" in files of %d, space %v", s.harness.BlobSize, s.opts.BlobSpace)
}

// checkBlobs compares what the store says of blob files with what its tables refer to.
func (r *round) checkBlobs(what string) *Finding {
	if err := storetest.RecountBlobs(r.db); err != nil {
		return found("blob files", "%s: %v", what, err)
	}
	return nil
}

// lookForSpace waits until a quiet store has done what there is to do, and compares what its blob files take with
// what it needs at the most: all values that readers see, and those that have expired. The store knows how many values
// are hidden, and how long values are on average: some more may be hidden of which it does not know, and of values
// whose lengths are far apart much more.
func (r *round) lookForSpace() *Finding {
	if !r.rests() {
		return nil
	}
	r.counts.spaceChecks++
	needed := 0
	for _, k := range r.oracle.spaces {
		for key, c := range k.now {
			needed += len(key) + len(c.base) + 40
		}
	}
	space := r.db.Metrics().Blobs
	o := &r.setup.opts
	most := max((cmp.Or(o.BlobSpace, 1.5)-1)*float64(needed), float64(2*r.setup.harness.BlobSize))
	limit := float64(needed) + 1.4*most + 64<<10
	if r.want["huge"] {
		limit = 2*(float64(needed)+most) + 512<<10
	}
	if taken := float64(space.LiveBytes + space.Garbage); taken > limit {
		return found("space", "a store at rest needs %d bytes of values at most, and may waste %.0f; its blob "+
			"files have %.0f, %d of them garbage and %d above the last level: %+v", needed, most, taken,
			space.Garbage, space.HiddenBytes, space)
	}
	return nil
}

// rests flushes the store and reports whether it comes to rest, with nothing that failed.
func (r *round) rests() bool {
	before := r.db.Metrics()
	if before.FailedCompactions > 0 || before.QuarantinedTables > 0 || stuckBlobs(r.db) > 0 ||
		r.db.Flush(context.Background()) != nil {
		return false
	}
	for still, n := 0, 0; still < 20; n++ {
		m := r.db.Metrics()
		if m.FailedCompactions > before.FailedCompactions || m.Failure != "" || n > 5000 {
			return false
		}
		if still++; m.RunningCompactions > 0 || m.Memtables > 1 {
			still = 0
		}
		time.Sleep(time.Millisecond)
	}
	return true
}
