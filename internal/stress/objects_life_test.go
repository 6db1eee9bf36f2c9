package stress

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"time"

	"github.com/siftkv/siftkv/kv"
	"github.com/siftkv/siftkv/kv/objects"
	"github.com/siftkv/siftkv/objstore"
)

// An objectsLife is a store in an object store, from its creation on: a directory that several processes share
// (objstore.OpenDir). Each takes it over from the one before, which was killed, has closed it, or is still at work,
// perhaps cut off from the object store until its successor is there. What each acknowledges is told to this process,
// which holds it against what the next one finds.
type objectsLife struct {
	*life
	ctx     context.Context
	dir     string
	workers int
	grace   time.Duration

	before *process // it is still at work
	cut    bool     // and to be cut off
	reader *process // beside the writers
	views  []content
}

// An objectsEnding says how a process ends.
type objectsEnding uint8

const (
	objectsKilled objectsEnding = iota
	objectsClosed
	objectsTakenOver
	objectsCutOff
)

func (e objectsEnding) String() string {
	return []string{"kill -9", "Close", "another process that takes over",
		"another process that takes over during a partition"}[e]
}

func (s *run) liveInObjects(seed uint64) error {
	dir, err := os.MkdirTemp("", "siftkv-stress-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	want := maps.Clone(s.want)
	l := &objectsLife{life: newLife(seed, s.Workers, s.report.counts, want, s.Patience), ctx: s.ctx, dir: dir,
		workers: s.Workers}
	l.grace = []time.Duration{-1, time.Millisecond, 50 * time.Millisecond, time.Minute}[l.rng.IntN(4)]
	defer l.stop()
	s.report.counts.objectLives++
	for n := 0; n < roundsOfLife && !s.enough(); n++ {
		f := l.round(n, s.log)
		s.report.counts.rounds++
		if n == roundsOfLife-1 && f == nil {
			f = l.last()
		}
		if f != nil && s.ctx.Err() == nil {
			return s.found(f, seed, n, fmt.Sprintf("round %d in an object store, after %s", n, l.lastEnd))
		}
	}
	return nil
}

// stop ends all processes.
func (l *objectsLife) stop() {
	for _, p := range []*process{l.before, l.reader} {
		if p != nil {
			p.kill()
			_, _ = l.drain(p)
		}
	}
}

// drain takes in what a process says until it ends, and how it ends.
func (l *objectsLife) drain(p *process) (f *Finding, records int) {
	for {
		r, ok, f := p.next(l.patience)
		if f != nil {
			return f, records
		}
		if !ok {
			return p.wait(), records
		}
		if f := l.take(p, r); f != nil {
			p.kill()
			return f, records
		}
		records++
	}
}

// take takes a record in.
func (l *objectsLife) take(p *process, r record) *Finding {
	switch {
	case p == l.reader && r.Kind == recordView:
		l.views = append(l.views, r.Found)
	case r.Kind == recordCount:
		l.counts.count(r.Name)
	case r.Kind == recordSlot:
		l.counts.slot(r.Name)
	case r.Kind == recordConsumer:
		l.learn(r.Consumer)
	case r.Kind == recordYielded:
		l.learnYielded(r)
	case r.Kind == recordStrike:
		l.counts.strikes[r.Name]++
	default:
		return l.oracle.replay(r)
	}
	return nil
}

// takeUntil takes in what a process says until it says something of a kind; ok is false if it ends before.
func (l *objectsLife) takeUntil(p *process, kind recordKind) (r record, ok bool, f *Finding) {
	for {
		if r, ok, f = p.next(l.patience); f != nil || !ok || r.Kind == kind {
			return r, ok, f
		}
		if f = l.take(p, r); f != nil {
			return r, ok, f
		}
	}
}

// round has a process take the store over and work.
func (l *objectsLife) round(n int, log func(string)) *Finding {
	rng := rand.New(rand.NewPCG(l.rng.Uint64(), 2))
	c := &jobConfig{Seed: rng.Uint64(), Number: n, Workers: l.workers, Want: l.want,
		Objects: filepath.Join(l.dir, "objects"), Cache: filepath.Join(l.dir, fmt.Sprint("cache", rng.IntN(2))),
		Patience: l.patience, Grace: l.grace, SlotBytes: l.slotBytes}
	if rng.IntN(4) == 0 && l.want["kill"] {
		c.DieAt = 1 + rng.Int64N(1+rng.Int64N(300))
	}
	end, after := l.drawEnd(rng), 1+rng.IntN(1+rng.IntN(2000))
	log(fmt.Sprintf("round %d in an object store: ends by %v after %d records, request %d kills it", n, end, after,
		c.DieAt))
	l.damageCache(c.Cache, rng)
	p, err := startProcess(l.ctx, c)
	if err != nil {
		return found("harness", "%v", err)
	}
	opened, ok, f := l.open(p)
	if f != nil {
		p.kill()
		drained, _ := l.drain(p)
		return cmpFinding(f, drained)
	}
	if !ok {
		l.lastEnd += ", then kill -9 of who was about to open it"
		l.counts.objectDeaths++
		return p.wait()
	}
	if f := l.settle(opened.Found); f != nil {
		p.kill()
		_, _ = l.drain(p)
		return f
	}
	if rng.IntN(2) == 0 {
		r := *c
		r.Follow, r.DieAt, r.Seed = true, 0, rng.Uint64()
		if l.reader, err = startProcess(l.ctx, &r); err != nil {
			return found("harness", "%v", err)
		}
	}
	p.send(order{Kind: orderWork, State: l.state()})
	return l.work(p, end, after)
}

func (l *objectsLife) drawEnd(rng *rand.Rand) objectsEnding {
	for {
		e := objectsEnding(rng.IntN(4))
		if (e != objectsKilled || l.want["kill"]) && (e != objectsCutOff || l.want["partition"]) {
			return e
		}
	}
}

// open has a process take the store over from the one before, if there is one.
func (l *objectsLife) open(p *process) (opened record, ok bool, f *Finding) {
	if l.before != nil {
		l.before.send(order{Kind: map[bool]orderKind{false: orderExpect, true: orderPartition}[l.cut]})
		if _, _, f := l.takeUntil(l.before, recordReady); f != nil {
			return opened, false, f
		}
	}
	p.send(order{Kind: orderOpen})
	if opened, ok, f = l.takeUntil(p, recordOpened); f != nil || !ok {
		return opened, ok, f
	}
	defer func() {
		if ok && f == nil {
			p.send(order{Kind: orderRead, Micros: l.oracle.clock.micros.Load()})
			opened, ok, f = l.takeUntil(p, recordFound)
		}
	}()
	if l.before != nil {
		l.before.send(order{Kind: orderHeal})
		b := l.before
		l.before = nil
		if f, _ = l.drain(b); b.fenced {
			l.counts.fenced++
		}
		l.lastEnd = fmt.Sprintf("%s (it ended by %s)", l.lastEnd, b.text)
	}
	return opened, ok, f
}

// work takes in what a process says until it is to end.
func (l *objectsLife) work(p *process, end objectsEnding, after int) *Finding {
	l.lastEnd = end.String()
	l.counts.objectEndings[end.String()]++
	for range after {
		r, ok, f := p.next(l.patience)
		if f == nil && ok {
			f = l.take(p, r)
		}
		if f != nil {
			p.kill()
			return f
		}
		if !ok {
			if !p.ended && p.finding == nil {
				l.lastEnd = "kill -9 at a request"
				l.counts.objectDeaths++
			}
			return p.wait()
		}
	}
	switch end {
	case objectsKilled:
		l.counts.objectDeaths++
		p.kill()
		f, _ := l.drain(p)
		return f
	case objectsClosed:
		f, _ := l.drain(p)
		l.lastEnd += " (" + p.text + ")"
		return f
	}
	l.before, l.cut = p, end == objectsCutOff
	return nil
}

// damageCache damages what the last process with this cache has left, or deletes it, or leaves it alone.
func (l *objectsLife) damageCache(dir string, rng *rand.Rand) {
	how := rng.IntN(4)
	files, _ := filepath.Glob(filepath.Join(dir, "pages-*"))
	for _, name := range files {
		b, err := os.ReadFile(name)
		if err != nil || len(b) == 0 {
			continue
		}
		switch how {
		case 0:
			_ = os.Remove(name)
		case 1:
			b[rng.IntN(len(b))] ^= 1 << rng.IntN(8)
			_ = os.WriteFile(name, b, 0o600)
		case 2:
			_ = os.Truncate(name, int64(rng.IntN(len(b))))
		}
	}
}

// last takes the store over in this process, on an empty disk, and checks it.
func (l *objectsLife) last() *Finding {
	store, err := objstore.OpenDir(filepath.Join(l.dir, "objects"))
	if err != nil {
		return found("harness", "%v", err)
	}
	defer store.Close()
	if l.before != nil {
		l.before.send(order{Kind: orderExpect})
		if _, _, f := l.takeUntil(l.before, recordReady); f != nil {
			return f
		}
	}
	db, err := kv.Open("", &kv.Options{Objects: &objects.Config{Store: store}, Clock: l.oracle.clock.time,
		Merger: kv.Append(operandSeparator)})
	if err != nil {
		return found("does not open", "in an object store, at last: %v", err)
	}
	defer db.Close()
	if b := l.before; b != nil {
		l.before = nil
		if f, _ := l.drain(b); f != nil {
			return f
		}
	}
	c, err := readAll(db, "", false)
	if err != nil {
		return found("unreadable", "in an object store, at last: %v", err)
	}
	return l.settle(c)
}
