package kv

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"sync"

	"github.com/siftkv/siftkv/internal/base"
	"github.com/siftkv/siftkv/internal/manifest"
	"github.com/siftkv/siftkv/internal/operand"
	"github.com/siftkv/siftkv/internal/replay"
	"github.com/siftkv/siftkv/internal/values"
	"github.com/siftkv/siftkv/internal/version"
)

// A follower keeps a view of a store that another DB writes. It reads what the manifest and the log have grown by
// since the last time, and makes a state of it that readers see as a whole.
//
// A view is a prefix of the writes: the tables as of some edit, and the writes of the logs that follow, in order, as
// far as they are there. The next log counts only if the one before it was ended. Not all writes are in logs: a file
// that was ingested comes with an edit of the manifest, before the log goes on. And an edit names the merger before
// the first of its operands is in a log. So writes may be missing between two of the log, or be of a kind that the
// manifest has not named. Then the follower reads on in the manifest, and in the logs again. If the manifest has not
// grown, the missing writes are writes that failed. Files cannot vanish in between: until a refresh ends, the
// registration stands for the position of the previous view, and at first for all files. Without a registration, and
// where the log does not go on as expected, the follower starts again at CURRENT.
type follower struct {
	d       *DB
	closing context.Context // ends when the store begins to close
	end     context.CancelFunc
	begin   func(context.Context) error // refresh, which programs without views do not link
	turn    chan struct{}               // has a token unless a refresh runs, which owns what follows

	reads    replay.Follower
	operands operand.Combiner // of the state that it has read

	publishing sync.Mutex
	reg        *manifest.Registration // nil: there is none
	views      []followedView         // that may still be in use, oldest first; guarded by DB.mu
}

// A followedView is a version, and the position in the store's history where it was read.
type followedView struct {
	version *version.Version
	at      manifest.Position
}

func newFollower(d *DB) *follower {
	f := &follower{d: d, turn: make(chan struct{}, 1), reads: replay.Follower{FS: d.fs, Dir: d.dir}}
	f.closing, f.end = context.WithCancel(context.Background())
	f.begin = f.refresh
	f.turn <- struct{}{}
	d.visible.Store(uint64(base.MaxSeqNum)) // a state's limit decides
	d.limit, d.mem = 0, newMemTable(1<<10, 0)
	return f
}

// maxFollowTries bounds how often a refresh starts again. One is enough for a reader that is registered.
const maxFollowTries = 100

// refresh makes a new view, and tells the writer about it.
func (f *follower) refresh(ctx context.Context) error {
	select {
	case <-f.turn:
	case <-ctx.Done():
		return base.ContextError(ctx, "waited for another refresh")
	}
	defer func() { f.turn <- struct{}{} }()
	defer f.d.objects.within(ctx, f.closing)()
	err := f.d.directory.Check()
	if err != nil {
		return fmt.Errorf("%w; close the view, and open what %s is now", err, f.d.dir)
	}
	for range maxFollowTries {
		fresh := f.reads.Position() == manifest.Position{}
		if err = f.interrupted(ctx); err == nil {
			err = f.advance(ctx)
		}
		if err == nil {
			return f.publishPosition()
		}
		if errors.Is(err, base.ErrContextEnded) {
			return base.ContextError(ctx, "a refresh was broken off")
		}
		if errors.Is(err, ErrClosed) || errors.Is(err, ErrStale) {
			return err
		}
		err = errors.Join(err, f.restart())
		if fresh && !errors.Is(err, fs.ErrNotExist) {
			break // from the start it is no better
		}
	}
	return base.WithHint(err, f.d.opts.hint(f.d.dir))
}

// interrupted returns an error if the store is closed or ctx has ended.
func (f *follower) interrupted(ctx context.Context) error {
	switch {
	case f.d.closed.Load():
		return ErrClosed
	case ctx.Err() != nil:
		return base.ErrContextEnded
	}
	return nil
}

// advance reads what is new, and shows it to readers. After an error they see what they saw before.
func (f *follower) advance(ctx context.Context) error {
	d := f.d
	d.mu.Lock()
	before := d.current
	d.mu.Unlock()
	p := d.replayer()
	err := f.readManifest()
	for err == nil {
		at := f.reads.Position()
		v, vErr := f.reads.State.Version(cmp.Or(before, &version.Version{}))
		if vErr != nil {
			return vErr
		}
		f.reads.LastSeq = max(f.reads.LastSeq, v.LastSeq)
		ahead := false
		err = f.pin(v, before)
		if err == nil {
			p.Combine = f.operands.EntryFunc()
			ahead, err = f.reads.ReadLogs(&p, func() error { return f.interrupted(ctx) })
		}
		if err == nil && (ahead || f.reads.LastSeq < f.reads.State.Closed) {
			f.d.objects.lookAgain()
			err = f.readManifest() // the writer may have gone on meanwhile
		}
		if err == nil && at == f.reads.Position() {
			p.LastSeq = f.reads.LastSeq
			if err = p.CheckClosed(at.Manifest, f.reads.State.Closed); err == nil {
				err = f.install(v)
			}
			if err == nil {
				return nil
			}
		}
		err = errors.Join(err, v.CloseNew(&d.tables))
	}
	return err
}

// readManifest reads what is new in the manifest in force.
func (f *follower) readManifest() error {
	d := f.d
	num, err := manifest.Current(d.fs, d.dir)
	if err != nil {
		return err
	}
	if f.reads.Position().Manifest != num {
		if err := f.restart(); err != nil {
			return err
		}
	}
	if err := f.reads.ReadManifest(num); err != nil {
		return err
	}
	if d.storeID != 0 && f.reads.State.StoreID != d.storeID {
		return fmt.Errorf("%w; the directory now holds another store: close this view and open %s again",
			ErrStale, d.dir)
	}
	f.operands, err = d.opts.combiner(f.reads.State.Features, f.reads.State.Merger, d.dir)
	return err
}

// pin makes sure that the files of a new version stay readable. For the first one, before is nil.
func (f *follower) pin(v, before *version.Version) error {
	if f.reg != nil {
		if before == nil {
			return f.d.checkFiles(v)
		}
		return nil // if the writer did not keep them, reads say so
	}
	err := v.OpenNew(&f.d.tables, &f.d.values.Blobs, values.MaxRequests)
	if errors.Is(err, fs.ErrNotExist) { // the others are open
		return fmt.Errorf("a table is gone before it was read: %w", fs.ErrNotExist) // not stale: this is no view yet
	}
	return nil
}

// install makes a state of what was read, for readers to see.
func (f *follower) install(v *version.Version) error {
	d := f.d
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closing {
		return ErrClosed
	}
	if d.storeID == 0 { // later views have the same: it is read without d.mu
		d.storeID = f.reads.State.StoreID
	}
	at := f.reads.Position()
	if n := len(f.views); n > 0 && v == d.current {
		f.views[n-1].at = at
	} else {
		f.views = append(f.views, followedView{v, at})
		d.installVersion(v)
	}
	d.operands = f.operands
	d.limit, d.imms = f.reads.LastSeq, slices.Clone(f.reads.Mems)
	f.charge(d.imms)
	d.installState()
	return nil
}

// charge counts the memtables of a view, and no others. The caller holds DB.mu.
func (f *follower) charge(view []*memTable) {
	bytes := int64(0)
	for _, m := range view {
		bytes += m.Bytes()
	}
	f.d.memory.share.SetReplayed(bytes)
}

// publishPosition tells the writer which files are still needed: those of the oldest view in use. It is called when a
// view has come or gone. Without a follower or a registration it does nothing.
func (f *follower) publishPosition() error {
	if f == nil || f.reg == nil {
		return nil
	}
	f.publishing.Lock()
	defer f.publishing.Unlock()
	d := f.d
	d.mu.Lock()
	f.views = slices.DeleteFunc(f.views, func(v followedView) bool { return !v.version.InUse() })
	var at manifest.Position
	if len(f.views) > 0 {
		at = f.views[0].at
	}
	closing := d.closing
	d.mu.Unlock()
	if closing {
		return nil // the registration ends
	}
	return f.reg.Set(at)
}

// restart forgets what was read, so that the next attempt starts at CURRENT. Readers keep their view.
func (f *follower) restart() error {
	err := f.reads.Restart()
	f.d.mu.Lock()
	f.charge(f.d.imms)
	f.d.mu.Unlock()
	return err
}

// interrupt ends refreshes, and requests of consumers that are about to open a slot.
func (f *follower) interrupt() {
	if f != nil {
		f.end()
	}
}

// close ends waits for a change, waits for a refresh to notice, and closes the files. Without a follower it does
// nothing.
func (f *follower) close() error {
	if f == nil {
		return nil
	}
	<-f.turn
	defer func() { f.turn <- struct{}{} }() // for calls that find the store closed
	return f.restart()
}
