//go:build !(darwin || dragonfly || freebsd || illumos || linux || netbsd || openbsd || windows)

package vfs

import (
	"os"
	"path/filepath"
	"sync"
)

// LocksEndWithProcess says that locks keep other processes out, and that the lock of a process that was killed is free.
const LocksEndWithProcess = false

// held counts, by absolute path, the holders of the locks of this process: -1 for an exclusive one. These platforms
// have no lock that ends with its process, so other processes are not kept out.
var held = struct {
	sync.Mutex
	byPath map[string]int
}{byPath: map[string]int{}}

func tryLock(f *os.File, mode LockMode) (ok bool, err error) {
	path, err := filepath.Abs(f.Name())
	if err != nil {
		return false, err
	}
	held.Lock()
	defer held.Unlock()
	n := held.byPath[path]
	switch {
	case mode == Exclusive && n == 0:
		held.byPath[path] = -1
	case mode == Shared && n >= 0:
		held.byPath[path] = n + 1
	default:
		return false, nil
	}
	return true, nil
}

func unlock(f *os.File, mode LockMode) error {
	path, err := filepath.Abs(f.Name())
	if err != nil {
		return err
	}
	held.Lock()
	defer held.Unlock()
	if mode == Exclusive || held.byPath[path] == 1 {
		delete(held.byPath, path)
	} else {
		held.byPath[path]--
	}
	return nil
}

func processGone(int) bool { return false }

func isReadOnlyFS(error) bool { return false }
