package objects

import (
	"context"
	"fmt"
	"time"

	"github.com/siftkv/siftkv/internal/base"
	"github.com/siftkv/siftkv/internal/objectdir"
	"github.com/siftkv/siftkv/internal/remote"
	"github.com/siftkv/siftkv/internal/remote/branch"
	"github.com/siftkv/siftkv/internal/remote/filelist"
	"github.com/siftkv/siftkv/objstore"
)

// Settings is the type of kv.Options.Objects: a *Config has it. A nil one is as none.
type Settings = objectdir.Settings

// A Driver opens stores with the settings of a Config, for package kv. Because it comes from here, programs without a
// store in an object store do not link what they do not need.
type Driver = objectdir.Driver

var _ Settings = (*Config)(nil)

// Driver implements Settings.
func (o *Config) Driver() Driver {
	if o == nil {
		return Driver{}
	}
	d := driver{Config: *o, requests: new(objstore.Counters)} // the caller's Config may change
	d.Store = remote.Guard(objstore.WithCounters(o.Store, d.requests))
	return objectdir.NewDriver(&objectdir.Ops{Invalid: o.check(), Checkpoint: o.Checkpoint, LocalLog: o.LocalLog,
		MaxStaleness: o.MaxStaleness, Open: d.open, CheckStore: d.checkStore})
}

// A driver has the settings of a store that is opened, with a guarded store, and counts the requests to it.
type driver struct {
	Config
	requests *objstore.Counters
}

// check returns an error about settings that no store can have.
func (o *Config) check() error {
	switch {
	case o.Store == nil:
		return invalidf("Objects.Store is nil")
	case o.CacheSize < 0:
		return invalidf("Objects.CacheSize is %d: want a number of bytes, or 0 for none", o.CacheSize)
	case o.Patience < 0:
		return invalidf("Objects.Patience is negative")
	case o.MaxStaleness < 0:
		return invalidf("Objects.MaxStaleness is negative")
	case o.LogInterval < 0 || o.LogBuffer < 0:
		return invalidf("Objects.LogInterval or Objects.LogBuffer is negative")
	}
	return nil
}

// invalidf returns an error that matches kv.ErrInvalidOptions.
func invalidf(format string, args ...any) error {
	return fmt.Errorf("%w: %s", base.ErrInvalidOptions, fmt.Sprintf(format, args...))
}

func (d *driver) open(p objectdir.Params) (objectdir.Directory, error) {
	local, abandon, cache := d.LocalLog, d.AbandonLog, d.CacheSize
	switch {
	case p.Transfer:
		local, abandon, cache = false, false, 0
	case p.Dir == "" && cache > 0:
		return nil, invalidf("Objects.CacheSize is set, and the directory's name is empty")
	case p.Dir == "" && local && p.Writes:
		return nil, invalidf("Objects.LocalLog is set, and the directory's name is empty")
	}
	return remote.NewFS(remote.FSOptions{Options: d.branch(), Params: p, Requests: d.requests, CacheSize: cache,
		LocalLog: local, AbandonLog: abandon,
		Logs: remote.LogOptions{Interval: d.LogInterval, MaxBuffered: d.LogBuffer,
			Patience: max(d.Patience, time.Minute), Edits: filelist.EditLimits(p.Edits)},
		Tables: remote.TableOptions{PartSize: p.PartSize, WriteThrough: d.WriteThrough}}), nil
}

func (d *driver) checkStore(ctx context.Context) error {
	if err := objstore.CheckConditional(ctx, d.Store, "check/"); err != nil {
		return fmt.Errorf("siftkv: the object store cannot hold a store: %w", err)
	}
	return nil
}

// branch returns the settings that say which branch or checkpoint is meant, in which object store.
func (o *Config) branch() branch.Options {
	return branch.Options{Objects: remote.Guard(o.Store), Branch: o.Branch, Checkpoint: o.Checkpoint,
		Patience: o.Patience, Grace: branch.Grace(o.Grace)}
}
