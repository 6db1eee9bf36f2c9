package redisfilter

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"

	"github.com/siftkv/siftkv/redisfilter/internal/config"
	"github.com/siftkv/siftkv/redisfilter/internal/cuckootable"
)

// A cuckoo set grows by its next load, whose generation is made for more keys than the one in use. The configuration
// says for how many: the most that any program asked for, or that the set was found to need.

// An overfullError is that of a load whose source has more keys than its generation has room for.
type overfullError struct{ keys int }

func (e overfullError) Error() string {
	return fmt.Sprintf("%v: a load found %d keys", ErrFull, e.keys)
}

// Unwrap returns what the error matches.
func (overfullError) Unwrap() error { return ErrFull }

// grown returns nil if the load that failed for want of room may be tried again, with more.
func (l *lineage) grown(ctx context.Context, failed error) error {
	cfg := l.view.Load().cfg
	keys := max(cfg.Asked.Keys, cfg.Wanted)
	if over, ok := errors.AsType[overfullError](failed); ok {
		keys = max(keys, over.keys)
	}
	if cfg.Asked.Kind != config.KindCuckoo || keys > mostGrown {
		return failed
	}
	return l.agree(ctx, keys+keys/4+1)
}

// mostGrown is how many keys a set may have that is made larger.
const mostGrown = min(cuckootable.MaxKeys, math.MaxInt) / 2

// refusedFull has the set loaded again with more room, if it has a source, unless that is under way.
func (l *lineage) refusedFull(ctx context.Context) {
	cfg := l.view.Load().cfg
	if cfg.Outgrown() || cfg.Asked.Keys > mostGrown {
		return
	}
	err := l.agree(ctx, 2*cfg.Asked.Keys)
	l.options.Logger.Warn("a set is full, and is made larger by its next load", "set", l.name,
		"keys", 2*cfg.Asked.Keys, "error", err)
	l.repairSoon()
}

// agree returns when the configuration has a Grace as long as that of l, and room for at least the given keys of a
// cuckoo set. Its error says why the set cannot be used. A process that loads the set waits for the Grace of all that
// add to it.
func (l *lineage) agree(ctx context.Context, keys int) error {
	for {
		v := l.view.Load()
		if err := cmp.Or(v.err, v.usable()); err != nil {
			return err
		}
		next := *v.cfg
		if v.cfg.Asked.Kind == config.KindCuckoo && keys > max(next.Asked.Keys, next.Wanted) {
			next.Wanted = keys
		}
		next.Grace = max(next.Grace, l.options.Grace)
		if next.Grace == v.cfg.Grace && next.Wanted == v.cfg.Wanted {
			return nil
		}
		if _, err := l.stored().Swap(ctx, v.cfg, &next); err != nil {
			return err
		}
		l.refresh(ctx)
	}
}
