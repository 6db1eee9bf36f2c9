package fromleveldb

import (
	"errors"
	"io/fs"
	"math"
	"slices"
	"sync"

	"github.com/syndtr/goleveldb/leveldb/opt"
	"github.com/syndtr/goleveldb/leveldb/storage"
)

// goleveldb opens no store read-only that has two journals, as one that was closed, or killed, during a flush has. So
// it opens them to write, on a storage that keeps what is written in memory: the contents of the journals, and a new
// manifest.

// An overlay is a storage.Storage that reads the files of a store, and writes others. Those that were removed are still
// there below.
type overlay struct {
	storage.Storage // what is written
	below           storage.Storage

	mu     sync.Mutex
	hidden map[storage.FileDesc]bool // files below
}

func newOverlay(below storage.Storage) *overlay {
	return &overlay{Storage: storage.NewMemStorage(), below: below, hidden: map[storage.FileDesc]bool{}}
}

func (o *overlay) isHidden(fd storage.FileDesc) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.hidden[fd]
}

func (o *overlay) hide(fd storage.FileDesc) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.hidden[fd] = true
}

func (o *overlay) GetMeta() (storage.FileDesc, error) {
	fd, err := o.Storage.GetMeta()
	if errors.Is(err, fs.ErrNotExist) {
		return o.below.GetMeta()
	}
	return fd, err
}

func (o *overlay) List(kinds storage.FileType) ([]storage.FileDesc, error) {
	all, err := o.Storage.List(kinds)
	if err != nil {
		return nil, err
	}
	below, err := o.below.List(kinds)
	for _, fd := range below {
		if !o.isHidden(fd) && !slices.Contains(all, fd) {
			all = append(all, fd)
		}
	}
	return all, err
}

func (o *overlay) Open(fd storage.FileDesc) (storage.Reader, error) {
	r, err := o.Storage.Open(fd)
	if errors.Is(err, fs.ErrNotExist) && !o.isHidden(fd) {
		return o.below.Open(fd)
	}
	return r, err
}

func (o *overlay) Create(fd storage.FileDesc) (storage.Writer, error) {
	o.hide(fd)
	return o.Storage.Create(fd)
}

func (o *overlay) Remove(fd storage.FileDesc) error {
	o.hide(fd)
	if err := o.Storage.Remove(fd); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// Rename implements storage.Storage. Nothing is renamed but what a repair has written.
func (*overlay) Rename(storage.FileDesc, storage.FileDesc) error { return fs.ErrInvalid }

func (o *overlay) Close() error { return errors.Join(o.Storage.Close(), o.below.Close()) }

// never are options under which nothing is compacted.
func never(o opt.Options) *opt.Options {
	o.CompactionL0Trigger = 1 << 30
	o.CompactionTotalSize, o.CompactionTotalSizeMultiplier = math.MaxInt/2, 1
	o.DisableSeeksCompaction = true
	return &o
}
