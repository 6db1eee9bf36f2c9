package redisfilter

import (
	"context"
	"time"

	"github.com/siftkv/siftkv/redisfilter/internal/conn"
)

// A lookup in a cuckoo set, a set of one size or a late layer reads no header, which would take as long as the rest
// of it. So it does not see whose shard it reads, and every process looks at all shards of its sets now and then.

const (
	lookEvery = time.Minute          // after the first one, whose moment conn.FirstLook gives
	lookPart  = 4 * time.Millisecond // at least, for each partition: a large set is looked at less often
)

// A stray is what was found in place of a shard.
type stray struct {
	generation string
	err        error // matches ErrForeign
}

// keepLooking calls look after a first pause, and again and again until ctx ends.
func (l *lineage) keepLooking(ctx context.Context, pause time.Duration) {
	for sleep(ctx, pause) == nil {
		l.look(ctx)
		pause = lookEvery
		if v := l.view.Load(); v.cfg != nil {
			pause = max(pause, time.Duration(v.cfg.Partitions)*lookPart)
		}
	}
}

// look reads something of each shard of the generation in use. If one of them is not the set's, it says no to nothing
// any more until another generation is in use.
func (l *lineage) look(ctx context.Context) {
	v, err := l.current()
	if err != nil || v.cfg.Generation == "" {
		return
	}
	g := v.cfg.Generation
	if err := check(ctx, v.content, g); err != nil && conn.IsForeign(err) {
		l.stray.Store(&stray{g, err})
		_ = l.missing(g)
	}
}

// strayIn returns why lookups in a generation cannot say no: what look found there.
func (l *lineage) strayIn(generation string) error {
	if s := l.stray.Load(); s != nil && s.generation == generation {
		return s.err
	}
	return nil
}
