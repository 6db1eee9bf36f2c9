package compare

import (
	"context"

	"github.com/siftkv/siftkv/internal/bench/engine"
)

// A Lone is one store in a process of its own, for experiments that have one at a
// time.
type Lone struct{ child *child }

// A LoneSpec says which store that is.
type LoneSpec struct {
	Engine    string
	Dir       string
	Keys      int
	KeySize   int // bytes
	ValueSize int // bytes
	Seed      uint64
	Worker    []string // as in Config
}

// StartLone starts the process. It is killed when ctx ends, and ends by itself when
// this process does; else Stop ends it, or Kill.
func StartLone(ctx context.Context, s LoneSpec) (*Lone, error) {
	c, err := startChild(ctx, s.Engine, s.Worker)
	if err != nil {
		return nil, err
	}
	l := &Lone{c}
	_, err = c.do(ctx, task{Do: "start", Start: &startTask{
		Engine: s.Engine, Dir: []byte(s.Dir), Keys: s.Keys, KeySize: s.KeySize, ValueSize: s.ValueSize, Seed: s.Seed,
	}})
	if err != nil {
		l.Kill()
		return nil, err
	}
	return l, nil
}

// Open opens the store, and closes it before if it was open.
func (l *Lone) Open(ctx context.Context, s engine.Settings) (*Sample, error) {
	return l.child.do(ctx, task{Do: "open", Open: &openTask{Settings: s}})
}

// Load writes all keys and settles the store.
func (l *Lone) Load(ctx context.Context) (loaded, settled *Sample, err error) {
	if loaded, err = l.child.do(ctx, task{Do: "load"}); err != nil {
		return nil, nil, err
	}
	settled, err = l.child.do(ctx, task{Do: "settle"})
	return loaded, settled, err
}

// Lookups looks keys up for a time: "existing", "absent" or "zipfian" ones. Passes
// of different numbers ask for different keys.
func (l *Lone) Lookups(ctx context.Context, kind string, seconds float64, pass int) (*Sample, error) {
	return l.child.do(ctx, task{Do: "job", Job: &job{Kind: kind, Seconds: seconds, Pass: uint64(pass)}})
}

// Sizes measures the process and the files of the store.
func (l *Lone) Sizes(ctx context.Context) (*Sample, error) {
	return l.child.do(ctx, task{Do: "sizes"})
}

// Pinned is Sizes after a collection of garbage that gives free memory back, with
// what the store itself says about its memory.
func (l *Lone) Pinned(ctx context.Context) (*Sample, error) {
	return l.child.do(ctx, task{Do: "pinned"})
}

// Stop closes the store and ends the process.
func (l *Lone) Stop(ctx context.Context) error { return l.child.stop(ctx) }

// Kill ends the process at once, if it is still there.
func (l *Lone) Kill() { l.child.kill() }
