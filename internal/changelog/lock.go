package changelog

import (
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"time"

	"github.com/siftkv/siftkv/internal/manifest"
	"github.com/siftkv/siftkv/internal/vfs"
)

// lockTries bounds attempts to lock a slot: a look at the lock, which takes microseconds, is in the way of one.
const (
	lockTries = 20
	lockPause = time.Millisecond
)

// lockSlot takes the lock of a slot's consumer, which keeps other processes out. The error matches vfs.ErrLocked if
// another consumer has it.
func lockSlot(fsys vfs.FS, dir, slot string) (io.Closer, error) {
	for try := 1; ; try++ {
		lock, err := fsys.Lock(filepath.Join(dir, manifest.ConsumerName(slot)), vfs.Exclusive)
		if err == nil {
			return lock, nil
		}
		if !errors.Is(err, vfs.ErrLocked) || try == lockTries {
			return nil, fmt.Errorf("siftkv: lock slot %s: %w", slot, err)
		}
		time.Sleep(lockPause)
	}
}

// isHeld reports whether some process has the lock of a slot's consumer.
func isHeld(fsys vfs.FS, dir, slot string) bool {
	lock, err := fsys.Lock(filepath.Join(dir, manifest.ConsumerName(slot)), vfs.Existing)
	if err == nil {
		err = lock.Close()
	}
	return errors.Is(err, vfs.ErrLocked)
}
