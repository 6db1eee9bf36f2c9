package remote

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"time"

	"github.com/siftkv/siftkv/internal/diskcache"
	"github.com/siftkv/siftkv/internal/vfs"
	"github.com/siftkv/siftkv/objstore"
)

// TableOptions are options of [Tables]. The zero value has the defaults.
type TableOptions struct {
	// ReadTimeout bounds a read, with all of its tries. Default: 30 s.
	ReadTimeout time.Duration

	// Patience bounds each pause between tries. 0: no bound but the number of tries.
	Patience time.Duration

	// MaxReads bounds the requests for ranges that are under way at a time; others wait. Default: 64.
	MaxReads int

	// PartSize is how many bytes passes over a file read at a time: two such parts are in memory for each file
	// of a compaction, and those of iterators are bounded (sstable.Pass). Default: 2 MiB.
	PartSize int

	// KeepBytes bounds the memory for ends of files that were written and have not been opened yet.
	// Default: 32 MiB; negative: none.
	KeepBytes int64

	// Cache keeps what is read, also for other stores and after a restart. Nil: none. Its owner closes it after the
	// tables.
	Cache *diskcache.Cache

	// CacheName tells the files from those of other stores that may be in the cache: it must be another for each
	// store, and names it for good.
	CacheName string

	// WriteThrough puts files that are written into the cache at once. It makes the writing of a table wait for
	// the disk of the cache, if that is slow.
	WriteThrough bool
}

func (o TableOptions) withDefaults() TableOptions {
	o.ReadTimeout = cmp.Or(o.ReadTimeout, 30*time.Second)
	o.MaxReads = max(cmp.Or(o.MaxReads, 64), 1)
	o.PartSize = max(cmp.Or(o.PartSize, 2<<20), 1)
	o.KeepBytes = cmp.Or(o.KeepBytes, 32<<20)
	return o
}

// Tables are sorted files and blob files as objects of a store. A file's name is its key, and never used again. All
// methods are safe for concurrent use.
//
// Errors of reads and removals match fs.ErrNotExist where they match objstore.ErrNotExist.
type Tables struct {
	store  objstore.Store
	o      TableOptions
	ctx    context.Context // of all requests
	cancel context.CancelFunc
	places chan struct{} // one is taken by each range that is being read
	fresh  freshEnds
}

// NewTables returns the files in s. It sends no request.
func NewTables(s objstore.Store, o TableOptions) *Tables {
	o = o.withDefaults()
	t := &Tables{store: s, o: o, places: make(chan struct{}, o.MaxReads)}
	t.fresh.most = o.KeepBytes
	t.ctx, t.cancel = context.WithCancel(context.Background())
	return t
}

// Close ends the requests that are under way, and makes later ones fail. The store stays open.
func (t *Tables) Close() error {
	t.cancel()
	return nil
}

// Remove removes a file, in one request, unless ctx or the tables end before. That there is none is no error.
// Concurrent reads may fail.
func (t *Tables) Remove(ctx context.Context, name string) error {
	t.fresh.drop(name)
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	if t.ctx.Err() != nil {
		cancel()
	}
	defer context.AfterFunc(t.ctx, cancel)()
	return asPathError(t.retry(ctx, t.o.ReadTimeout, func(ctx context.Context) error {
		return t.store.Delete(ctx, name)
	}))
}

// Tries and the pauses between them, which double. The store's client has tried as often as it finds right; these
// are for stores that do not.
const (
	tries          = 4
	firstReadPause = 50 * time.Millisecond
)

// errBrokenOff replaces io.ErrUnexpectedEOF of a reply, which readers of files take for a file that is too short.
var errBrokenOff = errors.New("the reply broke off")

// retry calls do, again if the store had too much to do or its reply got lost. All calls have the timeout together.
func (t *Tables) retry(ctx context.Context, timeout time.Duration, do func(ctx context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	for try, pause := 1, firstReadPause; ; try, pause = try+1, 2*pause {
		err := do(ctx)
		again := errors.Is(err, objstore.ErrThrottled) || errors.Is(err, objstore.ErrUnknown) ||
			errors.Is(err, io.ErrUnexpectedEOF)
		if t.o.Patience > 0 {
			pause = min(pause, t.o.Patience)
		}
		if !again || try == tries || !wait(ctx, pause) {
			if errors.Is(err, io.ErrUnexpectedEOF) {
				err = fmt.Errorf("%w: %v", errBrokenOff, err) //nolint:errorlint // it must not match
			}
			return err
		}
	}
}

// wait reports whether ctx did not end before the pause.
func wait(ctx context.Context, pause time.Duration) bool {
	select {
	case <-time.After(pause):
		return true
	case <-ctx.Done():
		return false
	}
}

// asPathError makes the error of a missing object match fs.ErrNotExist too.
func asPathError(err error) error {
	if errors.Is(err, objstore.ErrNotExist) {
		return fmt.Errorf("%w: %w", err, fs.ErrNotExist)
	}
	return err
}

var (
	_ vfs.ReadFile   = (*tableFile)(nil)
	_ vfs.PartReader = (*tableFile)(nil)
	_ vfs.Rereader   = (*tableFile)(nil)
	_ vfs.WriteFile  = (*upload)(nil)
)
