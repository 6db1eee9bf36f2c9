// Package job runs flushes and compactions: it merges memtables or tables, in ranges of keys and by several threads,
// into new tables and blob files. It knows no store. An Env has what a job needs of one. The store decides what runs,
// and makes the result current.
package job

import (
	"context"
	"log/slog"
	"runtime"

	"github.com/siftkv/siftkv/internal/base"
	"github.com/siftkv/siftkv/internal/compaction"
	"github.com/siftkv/siftkv/internal/filterbudget"
	"github.com/siftkv/siftkv/internal/memtable"
	"github.com/siftkv/siftkv/internal/sstable"
	"github.com/siftkv/siftkv/internal/tablecache"
	"github.com/siftkv/siftkv/internal/values"
	"github.com/siftkv/siftkv/internal/vfs"
)

// An Env is what jobs need of their store. Its functions are safe for concurrent use.
type Env struct {
	FS      vfs.FS
	Dir     string
	Log     *slog.Logger
	NewNum  func() uint64 // returns a number that no file has
	Tables  *tablecache.Cache
	Values  *values.Store
	Sizes   *compaction.Options // sizes of new files, their compression and how many threads there are
	Format  sstable.WriterOptions
	Filters *filterbudget.Plan

	SeparateFrom int   // the size of the smallest value that is separated, in bytes; 0: none is
	MaxMerged    int64 // bytes of the longest separated value that is read to be combined with operands

	Merge   memtable.Combine // combines operands; nil: there is no merger
	Now     func() uint64    // returns the clock's time, in microseconds since 1970
	Stop    func() error     // its error ends a job early; nil: nothing does
	Threads Threads
	Rate    *RateLimiter
}

// Threads are those that run jobs in the background, as far as a job may ask them for help.
type Threads struct {
	Busy    func() int
	Hire    func(max int) bool // takes a thread if less than max are busy
	Dismiss func()             // returns it
}

// threads returns how many threads may merge at the same time, with a number of processors left to others.
func (e *Env) threads(left int) int {
	return min(e.Sizes.MaxConcurrentCompactions, runtime.GOMAXPROCS(0)-left)
}

// stop returns a function that says whether work should go on: it returns the error of Stop, and
// base.ErrContextEnded if ctx has ended.
func (e *Env) stop(ctx context.Context) func() error {
	return func() error {
		if e.Stop != nil {
			if err := e.Stop(); err != nil {
				return err
			}
		}
		if ctx.Err() != nil {
			return base.ErrContextEnded
		}
		return nil
	}
}
