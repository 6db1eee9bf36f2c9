package stress

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"time"

	"github.com/siftkv/siftkv/internal/doctor"
	"github.com/siftkv/siftkv/internal/harness"
	"github.com/siftkv/siftkv/internal/survey"
	"github.com/siftkv/siftkv/internal/vfs"
	"github.com/siftkv/siftkv/kv"
)

// swap opens a store of the operating system's file system, writes to it, and puts another in the place of its
// directory meanwhile. The store then takes no more writes, the other stays as it was, and the first has all that was
// acknowledged where it is now. Both have the content want when it begins.
func (r *round) swap(dir string, want content) *Finding {
	if !r.want["swap"] || runtime.GOOS == "windows" {
		return nil
	}
	r.counts.swaps++
	other, away := dir+".other", dir+".away"
	db, err := kv.Open(dir, r.onDisk())
	if err == nil {
		err = db.Checkpoint(context.Background(), other)
	}
	if err != nil {
		return found("swap", "the store that is to be moved: %v", err)
	}
	before, err := filesIn(other)
	if err != nil {
		return found("harness", "%v", err)
	}
	m := &swapModel{content: maps.Clone(want), maybe: map[string]bool{}}
	var writers sync.WaitGroup
	for n := range 3 {
		writers.Go(func() { m.write(db, n) })
	}
	time.Sleep(time.Duration(r.rng.IntN(5000)) * time.Microsecond)
	if err = os.Rename(dir, away); err == nil {
		err = os.Rename(other, dir)
	}
	writers.Wait()
	closed := db.Close()
	after, readErr := filesIn(dir)
	switch err := errors.Join(err, readErr); {
	case err != nil:
		return found("harness", "%v", err)
	case m.undocumented != nil:
		return found("swap", "a write to a store that was moved: %v", m.undocumented)
	case !errors.Is(closed, kv.ErrDirectoryMoved):
		return found("swap", "Close of a store that was moved: %v", closed)
	case !maps.Equal(before, after):
		return found("swap", "%s", "a store has changed the files of another, which was put in its place")
	}
	if f := r.holds(dir, want, nil); f != nil {
		return f
	}
	return r.holds(away, m.content, m.maybe)
}

// onDisk returns the round's options for a store of the operating system's file system.
func (r *round) onDisk() *kv.Options {
	s := r.setup
	s.harness.FS, s.opts.Clock, s.opts.RecoveryMode = vfs.OS, r.oracle.clock.time, kv.PointInTime
	*harness.Of(&s.opts) = s.harness
	return &s.opts
}

// maxSwapWrites is more writes of one goroutine than a store can take before its directory is moved, and until it
// notices.
const maxSwapWrites = 20_000

// A swapModel is what a store has that is moved.
type swapModel struct {
	mu           sync.Mutex
	content      content
	maybe        map[string]bool // keys of writes that failed
	undocumented error
}

// write writes until the store takes no more, which it must soon.
func (m *swapModel) write(db *kv.DB, n int) {
	for i := range maxSwapWrites {
		key, value := fmt.Sprintf("swap/%d/%06d", n, i), fmt.Sprintf("%0500d", i)
		err := db.Set([]byte(key), []byte(value), []*kv.WriteOptions{kv.Sync, kv.NoSync}[i%2])
		m.mu.Lock()
		if err == nil {
			m.content[key] = value
		} else {
			m.maybe[key] = true
		}
		if err != nil && (!errors.Is(err, kv.ErrReadOnly) || !errors.Is(err, kv.ErrDirectoryMoved)) {
			m.undocumented = err
		}
		m.mu.Unlock()
		if err != nil {
			return
		}
		if n == 0 && i%20 == 19 {
			_ = db.Flush(context.Background()) // the next write says what is wrong
		}
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.undocumented = errors.New("it goes on")
}

// holds verifies a store, opens it and compares what it has, except under the keys maybe.
func (r *round) holds(dir string, want content, maybe map[string]bool) *Finding {
	s, err := doctor.Verify(context.Background(), dir, survey.Options{})
	if err != nil || len(s.Damage) > 0 {
		return found("swap", "%s does not verify: %v, %v", dir, err, s)
	}
	db, err := kv.Open(dir, r.onDisk())
	if err != nil {
		return found("swap", "%s does not open: %v", dir, err)
	}
	got, err := readAll(db, "", false)
	if err = errors.Join(err, db.Close()); err != nil {
		return found("swap", "%s: %v", dir, err)
	}
	maps.DeleteFunc(got, func(key, _ string) bool { return maybe[key] })
	if diff := difference(want, got); diff != "" {
		return found("swap", "%s: %s", filepath.Base(dir), diff)
	}
	return nil
}

// filesIn returns the files of a directory.
func filesIn(dir string) (map[string]string, error) {
	entries, err := os.ReadDir(dir)
	files := map[string]string{}
	for _, e := range entries {
		data, readErr := os.ReadFile(filepath.Join(dir, e.Name()))
		files[e.Name()], err = string(data), errors.Join(err, readErr)
	}
	return files, err
}
