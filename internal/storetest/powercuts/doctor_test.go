package powercuts

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/internal/doctor"
	"github.com/siftkv/siftkv/internal/doctor/repair"
	"github.com/siftkv/siftkv/internal/manifest"
	"github.com/siftkv/siftkv/internal/scale"
	"github.com/siftkv/siftkv/internal/storetest/stores"
	"github.com/siftkv/siftkv/internal/survey"
	"github.com/siftkv/siftkv/internal/vfs"
	"github.com/siftkv/siftkv/kv"
	"github.com/siftkv/siftkv/sstable"
)

// A doctorRun writes a history, and keeps what power cuts at random moments leave.
type doctorRun struct {
	t    *testing.T
	rng  *rand.Rand
	disk *crashDisk
	o    *kv.Options
	db   *kv.DB

	mu      sync.Mutex // of what the file system's calls see
	cutting *rand.Rand
	stride  int
	images  []vfs.FS
	doing   []string // at each cut
	step    string
	cutIn   map[string]bool
	ingests int
}

func newDoctorRun(t *testing.T, seed uint64, stride int) *doctorRun {
	r := &doctorRun{t: t, rng: rand.New(rand.NewPCG(seed, 5)), cutting: rand.New(rand.NewPCG(seed, 6)),
		stride: stride, cutIn: map[string]bool{}}
	r.disk = newCrashDisk(func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		// The first ingest is cut at every call, and every kind of step at its first.
		if r.cutting.IntN(r.stride) == 0 || r.step != "" && !r.cutIn[r.step] || r.step == "ingest" && r.ingests <= 1 {
			r.cutIn[r.step] = true
			r.images = append(r.images, r.disk.Cut(r.cutting))
			r.doing = append(r.doing, r.step)
		}
	})
	r.open()
	return r
}

func (r *doctorRun) open() {
	r.o = &kv.Options{
		MemtableSize: 64 << 10, BlockSize: 256, TargetFileSize: 16 << 10, BaseLevelSize: 16 << 10, CacheSize: -1,
		L0CompactionThreshold: 1 + r.rng.IntN(4), Compaction: kv.CompactionStyle(r.rng.IntN(3)),
		RunsPerLevel:             2 + r.rng.IntN(3),
		MaxConcurrentCompactions: 1 + r.rng.IntN(2), Merger: kv.Append(","),
	}
	stores.RandomSeparation(r.o, r.rng)
	var err error
	r.db, err = kv.Open("db", onDisk(r.o, r.disk.FS()))
	require.NoError(r.t, err)
}

// run goes through a number of steps.
func (r *doctorRun) run(steps int) {
	for range steps {
		step, name := r.pick()
		r.mu.Lock()
		r.step = name
		r.mu.Unlock()
		step()
	}
	r.disk.Fail(nil)
	require.NoError(r.t, r.db.Close())
}

func (r *doctorRun) pick() (step func(), name string) {
	switch n := r.rng.IntN(40); {
	case n < 3:
		return func() { require.NoError(r.t, r.db.Flush(context.Background())) }, "flush"
	case n < 5:
		return func() { require.NoError(r.t, r.db.Compact(context.Background(), nil, nil)) }, "compact"
	case n < 7:
		return func() { require.NoError(r.t, r.db.Close()); r.open() }, "reopen"
	case n < 11:
		return r.ingest, "ingest"
	case n < 13:
		return r.fail, "resume"
	}
	return r.write, "write"
}

// write commits a batch of all kinds of writes.
func (r *doctorRun) write() {
	b := r.db.NewBatch()
	for range 1 + r.rng.IntN(8) {
		k := fmt.Appendf(nil, "key/%03d", r.rng.IntN(80))
		v := []byte(strings.Repeat(string(rune('a'+r.rng.IntN(26))), r.rng.IntN(1+r.rng.IntN(4000))))
		switch r.rng.IntN(9) {
		case 0:
			require.NoError(r.t, b.Delete(k))
		case 1:
			require.NoError(r.t, b.DeleteRange(k, fmt.Appendf(nil, "key/%03d", r.rng.IntN(80))))
		case 2:
			require.NoError(r.t, b.Merge(k, []byte("operand")))
		case 3:
			require.NoError(r.t, b.SetTTL(k, v, time.Hour))
		default:
			require.NoError(r.t, b.Set(k, v))
		}
	}
	require.NoError(r.t, b.Commit([]*kv.WriteOptions{kv.Sync, kv.NoSync, kv.Async}[r.rng.IntN(3)]))
}

// ingest takes in a few files: each has a key that is written nowhere else, and the last has
// some that the store may have.
func (r *doctorRun) ingest() {
	r.mu.Lock()
	r.ingests++
	r.mu.Unlock()
	var paths []string
	files := 1 + r.rng.IntN(4)
	for i := range files {
		path := fmt.Sprintf("file%d-%d", r.ingests, i)
		f, err := r.disk.FS().Create(path)
		require.NoError(r.t, err)
		w := sstable.NewWriter(f, nil)
		require.NoError(r.t, w.Set(fmt.Appendf(nil, "ingest/%05d/%d of %d", r.ingests, i, files), []byte("v")))
		if i == files-1 { // the others end before
			for n := range r.rng.IntN(5) {
				require.NoError(r.t, w.Set(fmt.Appendf(nil, "key/%03d", 20*n),
					fmt.Appendf(nil, "ingested %d", r.ingests)))
			}
			require.NoError(r.t, w.DeleteRange([]byte("key/070"), []byte("key/075")))
		}
		_, err = w.Finish()
		require.NoError(r.t, errors.Join(err, f.Sync(), f.Close()))
		paths = append(paths, path)
	}
	require.NoError(r.t, r.db.Ingest(context.Background(), paths, nil))
}

// fail has the disk refuse some changes in the middle of writes, until the store has
// resumed.
func (r *doctorRun) fail() {
	left := 1 + r.rng.IntN(8)
	r.disk.Fail(func(string, int) error {
		if left--; left >= 0 {
			return syscall.ENOSPC
		}
		return nil
	})
	err := r.db.Set([]byte("key/full"), fmt.Appendf(nil, "%d", r.rng.IntN(100)), kv.Sync)
	if err != nil {
		require.ErrorIs(r.t, err, kv.ErrReadOnly)
	}
	for {
		if err := r.db.Flush(context.Background()); err == nil {
			break
		}
	}
	r.disk.Fail(nil)
}

// A store that could not open, write or close for want of room was not closed in good
// order, and nothing of it is damaged: whatever byte was the first that had no room, and
// also if nothing but the last page of a file has some.
func TestAFullDiskDamagesNothing(t *testing.T) {
	t.Parallel()
	failed := map[string]int{}
	for room, fits := 0, false; !fits; room += scale.Stride(61, 29) {
		fits = requireFullDiskHarmless(t, fmt.Sprintf("room for %d bytes", room), failed,
			func(d *crashDisk) { d.Room(room) })
	}
	for _, part := range []string{"open", "write", "close"} {
		require.Positive(t, failed[part], part)
	}
	clear(failed)
	for calls := 0; failed["write"] == 0 || calls < 30; calls++ {
		requireFullDiskHarmless(t, fmt.Sprintf("short writes alone have room after %d calls", calls), failed,
			func(d *crashDisk) {
				left := calls
				d.Fail(func(op string, bytes int) error {
					if left--; left >= 0 || op != "create" && bytes < 20 {
						return nil
					}
					return syscall.ENOSPC
				})
			})
	}
	require.Positive(t, failed["close"])
}

// requireFullDiskHarmless runs a store on a disk that fills up, and reports whether
// everything had room.
func requireFullDiskHarmless(t *testing.T, what string, failed map[string]int, fill func(d *crashDisk)) (fits bool) {
	t.Helper()
	disk := newCrashDisk(func() {})
	o := onDisk(&kv.Options{MemtableSize: 64 << 10}, disk.FS())
	db, err := kv.Open("db", o)
	require.NoError(t, err)
	require.NoError(t, db.Set([]byte("a"), []byte("1"), kv.Sync))
	require.NoError(t, db.Close())
	want := map[string]string{"a": "1"}
	fill(disk)
	db, err = kv.Open("db", o)
	if fits = err == nil; !fits {
		failed["open"]++
	} else {
		for i := 0; fits && i < 20; i++ {
			k := fmt.Sprintf("key%d", i)
			if fits = db.Set([]byte(k), []byte(strings.Repeat("v", 40)), kv.Sync) == nil; fits {
				want[k] = strings.Repeat("v", 40)
			} else {
				failed["write"]++
			}
		}
		if db.Close() != nil {
			failed["close"]++
			fits = false
		}
	}
	s, err := survey.Take(t.Context(), "db", survey.Options{FS: disk.FS(), Deep: true})
	require.NoError(t, err, what)
	require.Empty(t, s.Damage, what)
	dir := filepath.Join(t.TempDir(), "db")
	require.True(t, toDir(t, disk.FS(), dir))
	got := storeContents(t, dir, what)
	for k, v := range want {
		require.Equal(t, v, got[k], what)
	}
	return fits
}

// toDir writes an image to a directory of the operating system. It is false if no
// store is in force there yet.
func toDir(t *testing.T, image vfs.FS, dir string) bool {
	t.Helper()
	names, err := image.List("db")
	if err != nil || !slices.Contains(names, "CURRENT") {
		return false
	}
	require.NoError(t, os.MkdirAll(dir, 0o755))
	for _, name := range names {
		f, err := image.Open(filepath.Join("db", name))
		require.NoError(t, err)
		size, err := f.Size()
		require.NoError(t, err)
		data, err := io.ReadAll(io.NewSectionReader(f, 0, size))
		require.NoError(t, errors.Join(err, f.Close()))
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), data, 0o600))
	}
	return true
}

// storeContents reads a whole store.
func storeContents(t *testing.T, dir, what string) map[string]string {
	t.Helper()
	db, err := kv.Open(dir, &kv.Options{ReadOnly: true, CacheSize: -1, MemtableSize: 64 << 10, Merger: kv.Append(",")})
	require.NoError(t, err, what)
	got := map[string]string{}
	it, err := db.NewIter(nil)
	require.NoError(t, err)
	for ok := it.First(); ok; ok = it.Next() {
		got[string(it.Key())] = string(it.Value())
	}
	require.NoError(t, errors.Join(it.Error(), it.Close(), db.Close()), what)
	return got
}

// withNamed adds to what a store has the keys that a repair names as those of lost values.
func withNamed(got map[string]string, r *repair.Report) map[string]string {
	all := maps.Clone(got)
	for _, l := range r.Lost {
		for _, v := range l.Values {
			all[string(v.Key)] = ""
		}
	}
	return all
}

// requireWholeIngests checks that of each ingest all files are there, or none.
func requireWholeIngests(t *testing.T, got map[string]string, what string) {
	t.Helper()
	there, files := map[string]int{}, map[string]int{}
	for k := range got {
		if rest, ok := strings.CutPrefix(k, "ingest/"); ok {
			ingest, part, _ := strings.Cut(rest, "/")
			_, of, _ := strings.Cut(part, " of ")
			n, err := strconv.Atoi(of)
			require.NoError(t, err)
			there[ingest]++
			files[ingest] = n
		}
	}
	require.Equal(t, files, there, what)
}

// A power cut damages nothing: whatever the store was doing, verify finds no damage,
// repair has nothing to do, and a repair into another directory makes the store that
// Open recovers, also if CURRENT is gone. With the manifests gone, all files of an ingest
// are there, or none.
func TestARepairOfAStoreThatCrashedLosesNothing(t *testing.T) {
	scale.OneGoroutine(t, "repair and verification are of one goroutine each")
	t.Parallel()
	want := scale.Count(16, 60)
	cuts, unlisted, torn := 0, 0, 0
	during := map[string]int{}
	for seed := uint64(0); cuts < want || torn == 0 && seed < 200; seed++ {
		tornAlone := cuts >= want // stores with a value that is not whole are few
		r := newDoctorRun(t, seed, 12)
		r.run(80)
		for i, image := range r.images {
			what := fmt.Sprintf("seed %d, cut %d, during: %s", seed, i, r.doing[i])
			dir := filepath.Join(t.TempDir(), "db")
			if !toDir(t, image, dir) {
				continue // it was being created
			}
			s, err := doctor.Verify(t.Context(), dir, survey.Options{})
			require.NoError(t, err, what)
			require.Empty(t, s.Damage, what)
			isTorn := slices.ContainsFunc(s.Notes, func(n string) bool { return strings.HasPrefix(n, "a value of ") })
			if tornAlone && !isTorn {
				require.NoError(t, os.RemoveAll(filepath.Dir(dir)))
				continue
			}
			requireHealthy(t, dir, s, what)
			cuts++
			during[r.doing[i]]++
			for _, table := range s.Tables {
				if table.Level < 0 {
					unlisted++
				}
			}
			if isTorn {
				torn++
			}
			require.NoError(t, os.RemoveAll(filepath.Dir(dir)))
		}
	}
	t.Logf("%d power cuts left %d tables that no manifest lists, and %d logs with a value that is not whole; during %v",
		cuts, unlisted, torn, during)
	require.Positive(t, unlisted)
	require.Positive(t, torn)
	for _, step := range []string{"flush", "compact", "reopen", "ingest", "resume", "write"} {
		require.Positive(t, during[step], step)
	}
}

// requireHealthy checks a store in every way that a survey found no damage in.
func requireHealthy(t *testing.T, dir string, s *survey.Store, what string) {
	t.Helper()
	want := storeContents(t, dir, what)
	requireWholeIngests(t, want, what)
	r, err := repair.Run(t.Context(), dir, repair.Options{})
	require.NoError(t, err, what)
	require.False(t, r.Needed, what)

	requireOut(t, dir, want, what)
	requireDamageAlone(t, dir, s, want, what)
	requireTornValues(t, dir, s, want, what)

	require.NoError(t, os.Remove(filepath.Join(dir, "CURRENT")))
	lost := filepath.Join(filepath.Dir(dir), "lost")
	require.NoError(t, os.CopyFS(lost, os.DirFS(dir)))
	r, err = repair.Run(t.Context(), dir, repair.Options{})
	require.NoError(t, err, what)
	require.False(t, r.LostForSure(), "%s, without CURRENT: %+v", what, r)
	requireSame(t, want, storeContents(t, dir, what), what+", without CURRENT")

	entries, err := os.ReadDir(lost)
	require.NoError(t, err)
	for _, e := range entries {
		if kind, _ := manifest.ParseFileName(e.Name()); kind == manifest.FileManifest {
			require.NoError(t, os.Remove(filepath.Join(lost, e.Name())))
		}
	}
	r, err = repair.Run(t.Context(), lost, repair.Options{})
	if errors.Is(err, kv.ErrNotExist) || errors.Is(err, kv.ErrForeignDirectory) {
		require.Empty(t, want, "%s: nothing is left that says what this is", what)
		return
	}
	require.NoError(t, err, what)
	got := storeContents(t, lost, what)
	requireWholeIngests(t, withNamed(got, r), what+", without a manifest")
	for k := range want {
		if _, ok := got[k]; !ok {
			require.True(t, r.Covers([]byte(k)), "%s, without a manifest: %s is missing, and no loss covers it: %+v",
				what, k, r)
		}
	}
}

// requireDamageAlone damages a table, and a blob file that the manifest lists, each in a copy of the store. Whatever a
// crash has left beside it, a repair keeps the levels, and what is not in the store afterwards as Open recovered it is
// reported as lost from that file.
func requireDamageAlone(t *testing.T, dir string, s *survey.Store, want map[string]string, what string) {
	t.Helper()
	i := slices.IndexFunc(s.Tables, func(t survey.Table) bool { return t.Level >= 0 })
	if i >= 0 {
		requireLossIn(t, dir, s.Tables[i].Name, want, what)
	}
	i = slices.IndexFunc(s.Blobs, func(b survey.Blob) bool { return b.Listing != nil })
	if i >= 0 {
		requireLossIn(t, dir, s.Blobs[i].Name, want, what)
	}
}

// requireLossIn damages a file of a copy of the store, and checks the repair.
func requireLossIn(t *testing.T, dir, name string, want map[string]string, what string) {
	t.Helper()
	hit := damagedCopy(t, dir, name, len(what)*len(want))
	r, err := repair.Run(t.Context(), hit, repair.Options{})
	require.NoError(t, err, what)
	require.True(t, r.Needed, what)
	require.Equal(t, "manifest", r.Levels, "%s: %+v", what, r)
	told := *r
	told.Lost = slices.DeleteFunc(slices.Clone(r.Lost), func(l repair.Loss) bool { return l.File != name })
	got := storeContents(t, hit, what)
	for k := range want {
		require.True(t, got[k] == want[k] || told.Covers([]byte(k)), "%s, %s damaged: %s, and no loss covers it: %+v",
			what, name, k, r)
	}
	for k := range got {
		require.True(t, got[k] == want[k] || told.Covers([]byte(k)),
			"%s, %s damaged: %s is back, and no loss covers it: %+v", what, name, k, r)
	}
}

// damagedCopy returns a copy of the store in which one bit of a file is wrong.
func damagedCopy(t *testing.T, dir, name string, at int) (hit string) {
	t.Helper()
	hit = filepath.Join(filepath.Dir(dir), "hit-"+name, "db")
	require.NoError(t, os.CopyFS(hit, os.DirFS(dir)))
	data, err := os.ReadFile(filepath.Join(hit, name))
	require.NoError(t, err)
	data[at%len(data)] ^= 1
	require.NoError(t, os.WriteFile(filepath.Join(hit, name), data, 0o600))
	return hit
}

// requireTornValues damages a value that a log refers to, in a copy of the store. If Open takes that for the trace of a
// crash, a repair makes what Open recovers. If not, the value is lost, and nothing older shows.
func requireTornValues(t *testing.T, dir string, s *survey.Store, want map[string]string, what string) {
	t.Helper()
	i := slices.IndexFunc(s.Blobs, func(b survey.Blob) bool { return b.Logged && b.Listing == nil })
	if i < 0 {
		return
	}
	name := s.Blobs[i].Name
	hit := damagedCopy(t, dir, name, len(what)*(len(want)+1))
	what = fmt.Sprintf("%s, %s damaged", what, name)
	if kv.Verify(t.Context(), hit, io.Discard) == nil {
		requireOut(t, hit, storeContents(t, hit, what), what)
		return
	}
	r, err := repair.Run(t.Context(), hit, repair.Options{})
	require.NoError(t, err, what)
	require.True(t, r.Needed, what)
	got := storeContents(t, hit, what)
	for k := range want {
		_, ok := got[k]
		require.True(t, ok || r.Covers([]byte(k)), "%s: %s, and no loss covers it: %+v", what, k, r)
	}
	if !slices.ContainsFunc(s.Logs, func(l survey.Log) bool { return l.Torn != "" }) { // else later writes count too
		for k := range got {
			require.True(t, got[k] == want[k] || r.Covers([]byte(k)), "%s: %s is back: %+v", what, k, r)
		}
	}
}

// requireOut checks that a repair into another directory has nothing to do, and makes a store with these contents.
func requireOut(t *testing.T, dir string, want map[string]string, what string) {
	t.Helper()
	out := filepath.Join(filepath.Dir(dir), "out")
	r, err := repair.Run(t.Context(), dir, repair.Options{Out: out})
	require.NoError(t, err, what)
	require.False(t, r.Needed, what)
	require.False(t, r.LostForSure(), "%s: %+v", what, r)
	require.Equal(t, "manifest", r.Levels, what)
	requireSame(t, want, storeContents(t, out, what), what)
}

// requireSame compares without printing large stores.
func requireSame(t *testing.T, want, got map[string]string, what string) {
	t.Helper()
	for k, v := range want {
		g, ok := got[k]
		require.True(t, ok && g == v, "%s: %s has %d bytes (%v), not %d", what, k, len(g), ok, len(v))
	}
	require.Len(t, got, len(want), what)
}
