package storetest

import (
	"errors"
	"time"

	"github.com/siftkv/siftkv/internal/compaction"
	"github.com/siftkv/siftkv/internal/vfs/vfstest"
)

// ErrDisk is the error of a disk that a test breaks.
var ErrDisk = errors.New("the test's device is broken")

// Nothing does nothing before a call of a crashfs.FS.
func Nothing() error { return nil }

// FailOnce makes the next call of a kind fail, with ErrDisk.
func FailOnce(f *vfstest.FaultFS, op string) {
	failed := false
	f.Set(func(c vfstest.Call) (int, error) {
		if failed || c.Op != op {
			return 0, nil
		}
		failed = true
		return c.Bytes, ErrDisk // a write writes all, and fails all the same
	})
}

// Quick is a back-off that lets a store resume at once.
var Quick = compaction.Backoff{First: time.Millisecond, Max: 4 * time.Millisecond}

// Never is a back-off that keeps a store that has failed from resuming before it closes.
var Never = compaction.Backoff{First: time.Hour, Max: time.Hour}

// A FaultMode says which calls fail, from the chosen one on.
type FaultMode struct {
	Name    string
	Fails   func(c vfstest.Call, at int) bool
	Resumes bool
}

// FaultModes are all ways in which calls fail.
var FaultModes = []FaultMode{
	{"once", func(c vfstest.Call, at int) bool { return c.N == at }, true},
	{"three times", func(c vfstest.Call, at int) bool { return c.N >= at && c.N < at+3 }, true},
	{"writes from then on", func(c vfstest.Call, at int) bool { return c.Changes && c.N >= at }, false},
	{"everything from then on", func(c vfstest.Call, at int) bool { return c.N >= at }, false},
}
