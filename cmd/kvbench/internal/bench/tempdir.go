package bench

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/siftkv/siftkv/internal/vfs"
)

// Names of temporary directories, and of the lock file beside each.
const (
	tempPrefix = "kvbench-"
	lockSuffix = ".lock"
)

// TempDir makes a directory for the stores of an experiment, where --dir says or, if that is empty, where the system
// has temporary files. The caller calls remove, which removes the directory with everything in it. TempDir first
// removes the directories there whose process was killed.
//
// A process holds the lock of its directory for as long as it lives. The lock file is taken before the directory is
// made and removed after it, so that a run that looks for abandoned directories finds none without a lock.
func TempDir(parent, experiment string) (dir string, remove func() error, err error) {
	if info, err := os.Stat(parent); parent != "" && (err != nil || !info.IsDir()) {
		return "", nil, Usagef("--dir %s: not a directory; create it or choose another", parent)
	}
	if parent == "" {
		parent = os.TempDir()
	}
	removeAbandoned(parent)
	var lock io.Closer
	for try := true; try; try = errors.Is(err, vfs.ErrLocked) { // another run may take the new file for abandoned
		dir = filepath.Join(parent, tempPrefix+experiment+"-"+rand.Text())
		lock, err = vfs.OS.Lock(dir+lockSuffix, vfs.Exclusive)
	}
	if err == nil {
		if err = os.Mkdir(dir, 0o700); err == nil {
			return dir, func() error { return discard(dir, lock) }, nil
		}
		err = errors.Join(err, discard(dir, lock))
	}
	return "", nil, fmt.Errorf("make a directory for the stores: %w", err)
}

// removeAbandoned removes the temporary directories in parent whose lock no process holds. What cannot be removed
// stays for a later run.
func removeAbandoned(parent string) {
	entries, err := os.ReadDir(parent)
	if err != nil || !vfs.LocksEndWithProcess {
		return
	}
	for _, e := range entries {
		name, ok := strings.CutSuffix(e.Name(), lockSuffix)
		if !ok || !strings.HasPrefix(name, tempPrefix) || !e.Type().IsRegular() {
			continue
		}
		dir := filepath.Join(parent, name)
		if lock, err := vfs.OS.Lock(dir+lockSuffix, vfs.Exclusive); err == nil {
			_ = discard(dir, lock)
		}
	}
}

// discard removes a directory and its lock file, whose lock the caller holds. If anything of the directory stays, so
// does the lock file, and a later run removes both.
func discard(dir string, lock io.Closer) error {
	err := errors.Join(os.RemoveAll(dir), lock.Close())
	if err == nil {
		_ = os.Remove(dir + lockSuffix) // or another run has removed it
	}
	return err
}

// SpaceOf returns what a store may take while all of it is compacted, old files and new, of the bytes of its keys and
// values: half of a value compresses.
func SpaceOf(compression string, data int64) int64 {
	share := 1.9
	if compression == "none" {
		share = 2.6
	}
	return int64(share * float64(data))
}

// CheckRoom reports a directory that has less room than stores with some keys may take.
func CheckRoom(dir string, keys int, need int64) error {
	if free := vfs.FreeSpace(vfs.OS, dir); free < need {
		return Usagef("--keys %d: the stores may take %s while they are compacted, and %s has %s free; choose fewer "+
			"keys, or another directory with --dir", keys, Size(need), filepath.Dir(dir), Size(free))
	}
	return nil
}
