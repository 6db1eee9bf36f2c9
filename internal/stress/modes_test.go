package stress

import (
	"errors"

	"github.com/siftkv/siftkv/internal/harness"
	"github.com/siftkv/siftkv/kv"
)

// tryModes opens what an opening found in the other recovery modes. Those that are stricter
// than PointInTime may refuse a store that was not closed, and have what it has if they do
// not; SkipCorrupt opens everything.
func (r *round) tryModes(want content) *Finding {
	defer func() { r.others = nil }()
	r.counts.modes++
	for _, mode := range []kv.RecoveryMode{kv.TolerateTornTail, kv.Absolute, kv.SkipCorrupt} {
		s := r.setup
		s.harness.FS = r.others.Mount(nil)
		s.opts.Clock, s.opts.ReadOnly, s.opts.RecoveryMode = r.oracle.clock.time, true, mode
		*harness.Of(&s.opts) = s.harness
		db, err := kv.Open(storeDir, &s.opts)
		if err != nil {
			if mode != kv.SkipCorrupt && errors.Is(err, kv.ErrCorruption) || errors.Is(err, kv.ErrNotExist) {
				continue
			}
			return found("recovery mode", "in mode %v after %s: %v", mode, r.lastEnd, err)
		}
		got, err := readAll(db, "", false)
		if err = errors.Join(err, db.Close()); err != nil {
			return found("recovery mode", "in mode %v after %s: %v", mode, r.lastEnd, err)
		}
		if diff := difference(want, got); diff != "" && (mode != kv.SkipCorrupt || r.db.Metrics().RecoveryDrops == 0) {
			return found("recovery mode", "in mode %v after %s: %s", mode, r.lastEnd, diff)
		}
	}
	return nil
}
