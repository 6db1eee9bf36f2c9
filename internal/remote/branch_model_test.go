package remote

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"maps"
	"math"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/internal/base"
	"github.com/siftkv/siftkv/internal/manifest"
	"github.com/siftkv/siftkv/internal/objectdir"
	"github.com/siftkv/siftkv/internal/remote/branch"
	"github.com/siftkv/siftkv/internal/remote/filelist"
	"github.com/siftkv/siftkv/internal/scale"
	"github.com/siftkv/siftkv/internal/sequence/sequencetest"
	"github.com/siftkv/siftkv/internal/vfs"
	"github.com/siftkv/siftkv/objstore"
)

// branchOptions are those of a branch in a schedule: requests wait for their turn, however long that takes, and the
// grace is more than twice as long as listings lag.
func branchOptions(s objstore.Store, name string) FSOptions {
	return FSOptions{Options: branch.Options{Objects: s, Branch: name, Patience: 10 * time.Hour,
		Grace: 2*sequencetest.Lag + 5*time.Second}, Params: objectdir.Params{Local: vfs.NewMem(),
		Log: slog.New(slog.DiscardHandler)},
		Logs:   LogOptions{Patience: 10 * time.Hour, Interval: -1, Edits: shortEdits},
		Tables: TableOptions{ReadTimeout: 10 * time.Hour}}
}

// A branchModel is what must be there.
type branchModel struct {
	t  *testing.T
	sc *sequencetest.Schedule

	mu    sync.Mutex
	kept  map[string][]string // keys of sorted files and blob files, by checkpoints and branches
	acked map[filelist.BranchPrefix]uint64
	count map[string]int
}

// keep requires that the files of a state are there from now on.
func (m *branchModel) keep(name string, s *branch.Snapshot) {
	var keys []string
	for num, t := range s.List.Files {
		keys = append(keys, t.Key(num))
	}
	m.mu.Lock()
	m.kept[name] = keys
	m.mu.Unlock()
	m.check()
}

func (m *branchModel) forget(name string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.kept, name)
}

func (m *branchModel) did(what string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.count[what]++
}

// check requires that all is there.
func (m *branchModel) check() {
	there := map[string]bool{}
	for o, err := range m.sc.Mem.List(context.Background(), "", "") {
		require.NoError(m.t, err)
		there[o.Key] = true
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	for name, keys := range m.kept {
		for _, key := range keys {
			require.True(m.t, there[key], "%s has lost %s", name, key)
		}
	}
}

// write takes a branch over and replaces its files one after the other: every other one is a blob file.
func (m *branchModel) write(c *sequencetest.Client, branch string) (err error) {
	f := NewFS(branchOptions(c, branch))
	acked := m.acknowledged()
	lock, err := f.Lock(f.join(manifest.LockName), vfs.Exclusive)
	if err != nil {
		return errors.Join(err, f.Close())
	}
	n, _ := m.slot(f)
	require.GreaterOrEqual(m.t, n, acked[f.prefix], "an acknowledgement is lost")
	defer func() { err = errors.Join(err, lock.Close(), f.Close()) }()
	files, num := []uint64{}, uint64(1)
	if current, err := manifest.Current(f, objectdir.Root); err == nil {
		data, err := vfs.ReadSmallFile(f.small, f.path(manifest.FileManifest, current), math.MaxInt64)
		require.NoError(m.t, err)
		live, _, err := filelist.ReadManifest(data, current)
		require.NoError(m.t, err)
		files, num = slices.Sorted(maps.Keys(live)), current
		for n := range f.list.Files {
			num = max(num, n)
		}
	}
	snapshot := &manifest.Edit{StoreID: 1, LogNum: 1}
	for _, n := range files {
		addModelFile(snapshot, n)
	}
	num++
	l, err := manifest.Create(f, objectdir.Root, num, snapshot)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, l.Close()) }()
	for range 1 + c.Rng.IntN(6) {
		num++
		if err := writeModelFile(f, modelKind(num), num); err != nil {
			return err
		}
		e := &manifest.Edit{}
		addModelFile(e, num)
		var gone []uint64
		for len(files) > 0 && (len(files) > 3 || c.Rng.IntN(2) == 0) {
			gone = append(gone, files[0])
			if modelKind(files[0]) == manifest.FileBlob {
				e.DeletedBlobs = append(e.DeletedBlobs, files[0])
			} else {
				e.Deleted = append(e.Deleted, manifest.DeletedTable{Num: files[0]})
			}
			files = files[1:]
		}
		files = append(files, num)
		if err := l.Append(e); err != nil {
			return err
		}
		m.did("published")
		if len(f.asWriter().logs.chain.Slots) > 2 {
			m.did("edited") // an edit of an edit
		}
		for _, n := range gone {
			require.NoError(m.t, f.Remove(f.path(modelKind(n), n)))
		}
		if c.Rng.IntN(2) == 0 {
			num++
			if err := m.acknowledge(f, num); err != nil {
				return err
			}
		}
		time.Sleep(time.Duration(c.Rng.IntN(60)) * time.Second)
	}
	return nil
}

const modelSlot = "SLOT-s"

// slot returns what the file of a branch's slot has: a number, and that of a copy of logs.
func (m *branchModel) slot(f *FS) (n, kept uint64) {
	text, err := vfs.ReadSmallFile(f, f.join(modelSlot), math.MaxInt64)
	if errors.Is(err, fs.ErrNotExist) {
		return 0, 0
	}
	require.NoError(m.t, err)
	_, err = fmt.Sscan(string(text), &n, &kept)
	require.NoError(m.t, err)
	return n, kept
}

// acknowledge moves a branch's slot on, and replaces its copy of logs.
func (m *branchModel) acknowledge(f *FS, num uint64) error {
	n, before := m.slot(f)
	err := writeModelFile(f, manifest.FileKept, num)
	if err == nil {
		err = vfs.ReplaceFile(f, f.join(modelSlot), fmt.Append(nil, n+1, " ", num))
	}
	if err != nil {
		return err
	}
	m.did("acknowledged")
	m.mu.Lock()
	m.acked[f.prefix] = max(m.acked[f.prefix], n+1)
	m.mu.Unlock()
	if before > 0 {
		require.NoError(m.t, f.Remove(f.path(manifest.FileKept, before)))
	}
	return nil
}

// acknowledged returns how far each branch's slot is at the least.
func (m *branchModel) acknowledged() map[filelist.BranchPrefix]uint64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	return maps.Clone(m.acked)
}

func modelTable(num uint64) manifest.Table {
	return manifest.Table{Num: num, ID: num, Size: 1, Smallest: []byte("a"), Largest: []byte("b"), Entries: 1}
}

// modelKind says of which kind the file of a branchModel with a number is.
func modelKind(num uint64) manifest.FileKind {
	if num%2 == 1 {
		return manifest.FileBlob
	}
	return manifest.FileTable
}

// addModelFile makes an edit add a file of a branchModel.
func addModelFile(e *manifest.Edit, num uint64) {
	if modelKind(num) == manifest.FileBlob {
		e.AddedBlobs = append(e.AddedBlobs, manifest.BlobFile{Num: num, ID: num, Size: 1, Records: 1})
		return
	}
	e.Added = append(e.Added, manifest.AddedTable{Table: modelTable(num)})
}

func writeModelTable(f *FS, num uint64) error { return writeModelFile(f, manifest.FileTable, num) }

func writeModelFile(f *FS, kind manifest.FileKind, num uint64) error {
	w, err := f.Create(f.path(kind, num))
	if err != nil {
		return err
	}
	_, err = fmt.Fprint(w, num)
	return errors.Join(err, w.Sync(), w.Close())
}

// save makes a checkpoint of a branch, and drops it after a while or leaves it.
func (m *branchModel) save(ctx context.Context, c *sequencetest.Client, from, name string) {
	o := branchOptions(c, from)
	if _, err := branch.CreateCheckpoint(ctx, o.Options, name); err != nil {
		return
	}
	m.did("saved")
	f := branch.NewSet(branchOptions(m.sc.Mem, from).Options)
	at, _, err := f.Locate(ctx, from)
	require.NoError(m.t, err)
	found, err := f.FindCheckpoint(ctx, at, name)
	require.NoError(m.t, err)
	s, _, err := f.ReadCheckpoint(ctx, found)
	require.NoError(m.t, err)
	m.keep(from+"/"+name, s)
	time.Sleep(time.Duration(c.Rng.IntN(200)) * time.Second)
	if c.Rng.IntN(2) == 0 {
		m.clone(ctx, c, from, name, "of-"+name)
	}
	if c.Rng.IntN(2) == 0 {
		m.forget(from + "/" + name)
		if branch.DropCheckpoint(ctx, o.Options, name) == nil {
			m.did("dropped")
		}
	}
}

// clone makes a branch, and writes to it.
func (m *branchModel) clone(ctx context.Context, c *sequencetest.Client, from, checkpoint, name string) {
	o := branchOptions(c, from)
	o.Checkpoint = checkpoint
	if err := branch.Clone(ctx, o.Options, name); err != nil {
		return
	}
	m.did("cloned")
	now, err := m.state(name)
	require.NoError(m.t, err)
	m.keep(name, now)
	time.Sleep(time.Duration(c.Rng.IntN(200)) * time.Second)
	m.check()
	m.forget(name)
	for range c.Rng.IntN(3) {
		_ = m.write(c, name)
		now, err := m.state(name)
		require.NoError(m.t, err)
		m.keep(name, now) // nobody else writes to it
		if c.Rng.IntN(2) == 0 {
			m.save(ctx, c, name, "deep")
		}
		time.Sleep(time.Duration(c.Rng.IntN(300)) * time.Second)
		m.check()
		m.forget(name)
	}
}

// state returns the state of a branch.
func (m *branchModel) state(name string) (*branch.Snapshot, error) {
	f := branch.NewSet(branchOptions(m.sc.Mem, name).Options)
	at, store, err := f.Locate(context.Background(), name)
	if err != nil {
		return nil, err
	}
	return branch.ReadSnapshot(context.Background(), f.Sequence(at, store))
}

// TestModelOfBranches lets writers take a store over from each other, with collectors that stall and requests that come
// late, while others make checkpoints and clones of it and drop them. No sorted file that any of these needs is ever
// missing.
func TestModelOfBranches(t *testing.T) {
	count := map[string]int{}
	seeds := scale.Count(20, 60)
	for seed := range uint64(seeds) {
		synctest.Test(t, func(t *testing.T) {
			sc := sequencetest.New(t, seed)
			m := &branchModel{t: t, sc: sc, kept: map[string][]string{}, count: count,
				acked: map[filelist.BranchPrefix]uint64{}}
			for range 2 {
				sc.Start(func(_ context.Context, c *sequencetest.Client) {
					for range 5 {
						_ = m.write(c, "")
					}
				})
			}
			for n := range 2 {
				sc.Start(func(ctx context.Context, c *sequencetest.Client) {
					for i := range 5 {
						m.save(ctx, c, "", fmt.Sprintf("c%d-%d", n, i))
					}
				})
			}
			sc.Start(func(ctx context.Context, c *sequencetest.Client) {
				for i := range 3 {
					m.clone(ctx, c, "", "", fmt.Sprintf("b%d", i))
				}
			})
			sc.Run()
			m.check()
			m.requireWhole()
		})
		if t.Failed() {
			t.Fatalf("seed %d", seed)
		}
	}
	t.Log(count)
	for _, what := range []string{"published", "edited", "saved", "cloned", "dropped", "acknowledged"} {
		require.Greater(t, count[what], seeds, "the schedules let %s happen", what)
	}
}

// requireSlot requires that a branch's slot is where it was, and has its copy of logs. A clone begins without.
func (m *branchModel) requireSlot(name string) {
	f := NewFS(branchOptions(m.sc.Mem, name))
	_, err := f.List(objectdir.Root)
	require.NoError(m.t, err)
	n, kept := m.slot(f)
	require.GreaterOrEqual(m.t, n, m.acknowledged()[f.prefix])
	if m.acknowledged()[f.prefix] == 0 && name != "" {
		require.Zero(m.t, n)
	}
	if kept > 0 {
		r, err := f.Open(f.path(manifest.FileKept, kept))
		require.NoError(m.t, err)
		_, err = r.ReadAt(make([]byte, 1), 0)
		require.NoError(m.t, errors.Join(err, r.Close()))
	}
	require.NoError(m.t, f.Close())
}

// requireWhole requires of all that can be opened in the end that it has its sorted files.
func (m *branchModel) requireWhole() {
	ctx, o := context.Background(), branchOptions(m.sc.Mem, "")
	names := []string{""}
	all, err := branch.Branches(ctx, o.Options)
	require.NoError(m.t, err)
	for _, b := range all {
		if !b.Unfinished {
			names = append(names, b.Name)
		}
	}
	for _, name := range names {
		now, err := m.state(name)
		if name == "" && errors.Is(err, base.ErrNotExist) {
			continue // nobody came to write
		}
		require.NoError(m.t, err)
		m.keep("branch "+name, now)
		m.requireSlot(name)
	}
}
