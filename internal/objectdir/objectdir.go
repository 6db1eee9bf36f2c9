// Package objectdir is all that package kv knows of object stores: settings as values, and the directory that a store's
// files are in. Package kv/objects makes a Driver, so that only programs that import it link what the driver does.
package objectdir

import (
	"context"
	"log/slog"
	"time"

	"github.com/siftkv/siftkv/internal/vfs"
	"github.com/siftkv/siftkv/kv/metrics"
)

// Settings are those of a store that lives in an object store: an *objects.Config.
type Settings interface {
	// Driver is for package kv: it returns what opens a store with these settings as they are now.
	Driver() Driver
}

// A Driver is Ops that programs outside of the module can name, and cannot use. The zero value is that of settings that
// are not there: the store lives in a directory.
type Driver struct{ ops *Ops }

// NewDriver returns a driver with these operations.
func NewDriver(ops *Ops) Driver { return Driver{ops} }

// OpsOf returns the operations of a driver, nil for the zero value.
func OpsOf(d Driver) *Ops { return d.ops }

// Ops are settings, and what opens a store that has them.
type Ops struct {
	Invalid      error         // why no store can have the settings; it matches base.ErrInvalidOptions
	Checkpoint   string        // the checkpoint that is opened, read-only; empty: the branch itself
	LocalLog     bool          // a writer has its log on the local disk
	MaxStaleness time.Duration // 0: a writer need not confirm that it still is the writer

	// Open returns the directory, without a request. Only Params that do not fit the settings are an error.
	Open func(Params) (Directory, error)

	// CheckStore returns an error if two writers of the object store could both win.
	CheckStore func(ctx context.Context) error
}

// Root is the directory that the files of a store seem to be in.
const Root = "objects"

// Params are what a store brings to its directory.
type Params struct {
	Writes   bool   // the caller will lock the directory for itself
	Dir      string // on the local disk, for a cache and a log; empty: there is none
	Transfer bool   // whole stores are copied: the settings of Dir do not count, and Dir is empty
	Local    vfs.FS // the local disk
	Log      *slog.Logger

	// LongLog is called with the number of a log that has grown to 500 entries, and again for every 50 more. Each entry
	// is a request when the store is opened, so the log must be flushed. It must not block. Nil: nothing is called.
	LongLog func(log uint64)

	// KeepLogs reports whether the writer reads what it writes to logs. A log that has begun while it does not is not
	// there to be read. It must not block. Nil: it never does.
	KeepLogs func() bool

	// Tests set these.
	PartSize int                              // bytes that a pass over a file reads at a time
	Edits    struct{ Percent, Each, Max int } // filelist.EditLimits
}

// A Directory has the files of a store in an object store, in Root, and all other directories of the local disk.
//
// An exclusive lock fences earlier writers. A directory without it is a reader's: opening CURRENT reads what is new.
// Calls for the writer do nothing for a reader.
type Directory interface {
	vfs.FS

	// Close ends all requests, now and later. It may be called at any time, and again.
	Close() error

	// Within makes requests for what is new end with ctx, until end is called, and so reads of files that are opened
	// meanwhile. It is for one caller at a time.
	Within(ctx context.Context) (end func())

	// LookAgain makes the next reading of CURRENT look for the newest list of files by a listing. A reader that has
	// lost a file, or finds writes missing in the logs, must call it.
	LookAgain()

	// Confirm returns an error that matches base.ErrFenced if another writer had taken over when it was called, and
	// another error if the object store does not tell.
	Confirm(ctx context.Context) error

	// LostLogs returns the logs whose writes are missing, as of the lock.
	LostLogs() []LostLog

	// LogEntries returns the number of entries that are read for a log when the store is opened. It is 0 for a log on
	// the local disk.
	LogEntries(log uint64) int

	// Finish prepares the last list of files: it is one object, and needs no log. All writes are in sorted files, or in
	// a log that is not on the local disk. It reports whether the store is as it was when it was locked: then there is
	// no reason to publish a list.
	Finish() (unchanged bool)

	// Positions returns where consumers on other machines note how far they are in a slot. It sends no request.
	Positions(slot string) Positions

	PinCheckpoint(ctx context.Context, name string) (Checkpoint, error)
	DropCheckpoint(ctx context.Context, name string) error

	Metrics() metrics.Objects
}

// Positions are texts that the consumers of a slot put into an object store one after the other. One client at a time
// has the right to. They are for one goroutine at a time. Close of the Directory ends their requests.
type Positions interface {
	// Claim takes the right to put texts from all others, and returns the newest text; empty: there is none. Unless
	// always is set it does nothing where nothing was ever put. If the newest text is damaged, the error matches
	// base.ErrCorruption, and the right is taken.
	Claim(ctx context.Context, always bool) (newest string, err error)

	// Put makes a text durable. An error matches base.ErrFenced if another client has the right by now. Without a claim
	// it does nothing.
	Put(ctx context.Context, text string) error

	// Newest calls take with the newest text, unless there is none, or take has returned nil for it before. It returns
	// take's error.
	Newest(ctx context.Context, take func(text string) error) error
}

// A LostLog is a log, or several, whose writes are not in the store.
type LostLog struct {
	Num    uint64 // of a log that must be there, and is not; 0: logs were abandoned, as the settings allow
	File   string // where it is kept, or was last seen
	Bytes  int64  // 0 if that is not known
	Reason string

	Abandoned bool // the store goes on without writes that it had
}

// A Checkpoint describes a checkpoint in an object store.
type Checkpoint struct {
	Name    string
	Created time.Time // by the clock of the machine that made it
	Bytes   int64     // of the sorted files, blob files and logs that it has, which it shares with others

	// Unfinished says that it cannot be opened: it is being made, or that was cut short. Or it was dropped, and a
	// branch that was cloned from it needs its files. DropCheckpoint deletes what it can.
	Unfinished bool
}
