package siftraft

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/siftkv/siftkv/kv"
)

// The directory of an FSM:
//
//	CURRENT      the name of the store that has the state, and a newline
//	CURRENT.tmp  the next one, while it is written
//	store-N      stores: the one that CURRENT names; others are what a restore has left, and are removed
//	snapshot-N   checkpoints that raft has not released; those that a process has left are removed
const (
	currentName    = "CURRENT"
	storePrefix    = "store-"
	snapshotPrefix = "snapshot-"
	firstStore     = storePrefix + "1"
	tempSuffix     = ".tmp"
)

// OpenFSM opens the state machine in a directory, or makes one whose state is empty. Nothing else may be in the
// directory. If another process has it open, the error matches kv.ErrLocked.
func OpenFSM(dir string, o *FSMOptions) (*FSM, error) {
	f := &FSM{dir: dir}
	f.idle.L = &f.mu
	if o != nil {
		f.opts = *o
	}
	if f.opts.Store != nil {
		f.kv = *f.opts.Store
	}
	if f.opts.Durability == nil {
		f.opts.Durability = kv.NoSync
	}
	if dir == "" || f.kv.InMemory || f.kv.ReadOnly || f.kv.Objects != nil {
		return nil, fmt.Errorf("%w: an FSM has its stores in a directory, and writes them", kv.ErrInvalidOptions)
	}
	if err := f.openCurrent(); err != nil {
		return nil, fmt.Errorf("siftraft: open the FSM in %s: %w", dir, err)
	}
	return f, nil
}

// openCurrent opens the store that has the state. Whoever has opened it is alone: the others in the directory are
// nobody's, then.
func (f *FSM) openCurrent() error {
	name, err := f.current()
	if err != nil {
		return err
	}
	db, err := kv.Open(filepath.Join(f.dir, name), &f.kv)
	if err != nil {
		return err
	}
	applied, err := f.settle(db, name)
	if err != nil {
		return errors.Join(err, db.Close())
	}
	f.now, f.applied = &generation{db: db, dir: filepath.Join(f.dir, name), users: 1}, applied
	return nil
}

// settle makes sure that the store which is open is the current one, and removes all others.
func (f *FSM) settle(db *kv.DB, name string) (Position, error) {
	again, err := f.current()
	if err != nil {
		return Position{}, err
	}
	if again != name {
		return Position{}, fmt.Errorf("%w: another process has restored a snapshot meanwhile", kv.ErrLocked)
	}
	if err := f.writeCurrent(name); err != nil {
		return Position{}, err
	}
	if err := f.sweep(name); err != nil {
		return Position{}, err
	}
	return readPosition(db)
}

// current returns the name of the store that has the state. In a directory without stores that is the first.
func (f *FSM) current() (string, error) {
	content, err := os.ReadFile(filepath.Join(f.dir, currentName))
	if errors.Is(err, fs.ErrNotExist) {
		stores, err := filepath.Glob(filepath.Join(f.dir, storePrefix+"*"))
		if err == nil && slices.ContainsFunc(stores, func(s string) bool { return filepath.Base(s) != firstStore }) {
			err = fmt.Errorf("%s is not there, but %q", currentName, stores)
		}
		return firstStore, err
	}
	if err != nil {
		return "", err
	}
	name, whole := strings.CutSuffix(string(content), "\n")
	digits, ours := strings.CutPrefix(name, storePrefix)
	if _, err := strconv.ParseUint(digits, 10, 31); err != nil || !whole || !ours {
		return "", fmt.Errorf("%s holds %q, and not the name of a store", currentName, content)
	}
	_, err = os.Stat(filepath.Join(f.dir, name)) // Open would make one that is empty
	return name, err
}

// sweep removes what earlier processes have left beside the current store. New names are larger than all that
// were there.
func (f *FSM) sweep(keep string) error {
	entries, err := os.ReadDir(f.dir)
	if err != nil {
		return err
	}
	for _, e := range entries {
		name := e.Name()
		digits, numbered := strings.CutPrefix(name, storePrefix)
		if !numbered {
			digits, numbered = strings.CutPrefix(name, snapshotPrefix)
		}
		if numbered {
			n, err := strconv.Atoi(digits)
			if err != nil {
				continue
			}
			f.made = max(f.made, n)
		}
		if name == keep || !numbered && name != currentName+tempSuffix {
			continue
		}
		if err := os.RemoveAll(filepath.Join(f.dir, name)); err != nil {
			return err
		}
	}
	return nil
}

// newName returns the path of a directory that is not there.
func (f *FSM) newName(prefix string) string {
	f.made++
	return filepath.Join(f.dir, prefix+strconv.Itoa(f.made))
}

// A generation is a store that has the state, or had it before a restore.
type generation struct {
	db  *kv.DB
	dir string

	// Guarded by FSM.mu.
	users   int  // those who read or write it, and one while it is current
	retired bool // another is current: the last user removes it
}

// acquire keeps the current store open until release.
func (f *FSM) acquire() (*generation, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closed {
		return nil, kv.ErrClosed
	}
	f.now.users++
	f.busy++
	return f.now, nil
}

// release ends what acquire began. The last user of a store that is not current any more removes it.
func (f *FSM) release(g *generation) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if g.users--; g.users == 0 && g.retired {
		f.mu.Unlock()
		_ = g.db.Close() // what fails here is done by the next OpenFSM
		_ = os.RemoveAll(g.dir)
		f.mu.Lock()
	}
	if f.busy--; f.busy == 0 {
		f.idle.Broadcast()
	}
}

// replace makes a store the current one in place of another, which the caller has acquired, for this process and for
// those that come. After an error CURRENT may name either: the FSM ends its work.
func (f *FSM) replace(old, next *generation, applied Position) error {
	if err := f.writeCurrent(filepath.Base(next.dir)); err != nil {
		return f.fail(err)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	old.retired = true
	old.users-- // as the current one
	f.now, f.applied, f.failed = next, applied, nil
	return nil
}

// writeCurrent has CURRENT name a store, durably. It has the mode of the stores' files.
func (f *FSM) writeCurrent(name string) error {
	path := filepath.Join(f.dir, currentName)
	mode := cmp.Or(f.kv.FileMode, 0o600)
	temp, err := os.OpenFile(path+tempSuffix, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, mode)
	if err != nil {
		return err
	}
	_, err = temp.WriteString(name + "\n")
	if err == nil {
		err = temp.Sync()
	}
	if err = errors.Join(err, temp.Close()); err != nil {
		return err
	}
	if err = os.Rename(path+tempSuffix, path); err != nil {
		return err
	}
	return syncDir(f.dir)
}

// Close closes the store, after all that View has called have returned. Call it when raft has shut down. What was
// applied and is not durable yet is by then.
func (f *FSM) Close() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closed {
		return nil
	}
	f.closed = true
	for f.busy > 0 {
		f.idle.Wait()
	}
	return f.now.db.Close()
}
