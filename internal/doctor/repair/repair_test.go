package repair

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/internal/manifest"
	"github.com/siftkv/siftkv/internal/scale"
	"github.com/siftkv/siftkv/kv"
)

// A history is what was ever written to a store: per key every value, and what is
// there in the end.
type history struct {
	ever map[string]map[string]bool
	now  map[string]string
}

// store writes a store of several levels with deletes, range deletes and a log, and
// closes it. Values are unique.
func store(t *testing.T, dir string, seed uint64) *history {
	t.Helper()
	rng := rand.New(rand.NewPCG(seed, 1))
	h := &history{ever: map[string]map[string]bool{}, now: map[string]string{}}
	o := &kv.Options{BlockSize: 256, L0CompactionThreshold: 100, TargetFileSize: 16 << 10,
		Compaction: kv.CompactionStyle(seed % 3)}
	if o.Compaction != kv.Leveled {
		o.L0CompactionThreshold, o.RunsPerLevel = 2, 4 // compactions run meanwhile
	}
	db, err := kv.Open(dir, o)
	require.NoError(t, err)
	defer func() { require.NoError(t, db.Close()) }()
	n := 0
	round := func(writes int) {
		for range writes {
			n++
			k := fmt.Sprintf("key%03d", rng.IntN(300))
			switch rng.IntN(20) {
			case 0:
				require.NoError(t, db.Delete([]byte(k), kv.NoSync))
				delete(h.now, k)
			case 1:
				hi := fmt.Sprintf("%s%d", k, rng.IntN(9))
				require.NoError(t, db.DeleteRange([]byte(k), []byte(hi), kv.NoSync))
				for key := range h.now {
					if key >= k && key < hi {
						delete(h.now, key)
					}
				}
			default:
				v := fmt.Sprintf("%s value %d %s", k, n, bytes.Repeat([]byte{byte('a' + rng.IntN(26))}, rng.IntN(60)))
				require.NoError(t, db.Set([]byte(k), []byte(v), kv.NoSync))
				if h.ever[k] == nil {
					h.ever[k] = map[string]bool{}
				}
				h.ever[k][v], h.now[k] = true, v
			}
		}
	}
	round(400)
	var snap *kv.Snapshot
	if seed%2 == 0 {
		snap = db.NewSnapshot() // keeps sequence numbers from being zeroed
	}
	round(200)
	require.NoError(t, db.Compact(t.Context(), nil, nil))
	round(150)
	require.NoError(t, db.Flush(t.Context()))
	if seed%3 == 0 {
		require.NoError(t, db.Compact(t.Context(), []byte("key100"), []byte("key120")))
	}
	round(150)
	require.NoError(t, db.Flush(t.Context()))
	round(60)
	if snap != nil {
		require.NoError(t, snap.Close())
	}
	return h
}

// contents reads a whole store by iterator, and checks that lookups agree.
func contents(t *testing.T, dir string) map[string]string {
	t.Helper()
	db, err := kv.Open(dir, nil)
	require.NoError(t, err)
	got := map[string]string{}
	it, err := db.NewIter(nil)
	require.NoError(t, err)
	for ok := it.First(); ok; ok = it.Next() {
		got[string(it.Key())] = string(it.Value())
	}
	require.NoError(t, it.Error())
	require.NoError(t, it.Close())
	for i := range 300 {
		k := fmt.Sprintf("key%03d", i)
		v, err := db.Get([]byte(k))
		want, ok := got[k]
		if !ok {
			require.ErrorIs(t, err, kv.ErrNotFound, k)
			continue
		}
		require.NoError(t, err)
		require.Equal(t, want, string(v), k)
	}
	require.NoError(t, db.Close())
	return got
}

// requireCovered checks that every value is one that was written, and that whatever
// is not as it was is within what the report says was lost. With a manifest that can be trusted, the report
// is certain of it, and counts no fewer writes than keys have lost.
func requireCovered(t *testing.T, h *history, r *Report, got map[string]string, what string) {
	t.Helper()
	whole := trusted(r)
	if !strings.Contains(what, "missing") {
		// No file is missing, so nothing may be explained by that.
		told := *r
		told.Lost = slices.DeleteFunc(slices.Clone(r.Lost), func(l Loss) bool { return l.File == listOfFiles })
		r = &told
	}
	for k, v := range got {
		require.True(t, h.ever[k][v], "%s: %s was never %q", what, k, v)
		if h.now[k] != v {
			require.True(t, r.Covers([]byte(k)), "%s: %s is %q, was %q, and no loss covers it: %+v", what, k, v,
				h.now[k], r)
		}
	}
	lost := uint64(0)
	for k := range h.now {
		if _, ok := got[k]; !ok {
			require.True(t, r.Covers([]byte(k)), "%s: %s is missing, and no loss covers it: %+v", what, k, r)
		}
		if got[k] != h.now[k] {
			lost++
		}
	}
	if whole {
		require.Equal(t, lost > 0, lost > 0 && r.LostForSure(), "%s: %d keys have lost writes: %+v", what, lost, r)
		require.LessOrEqual(t, lost, countLost(r), "%s: %+v", what, r)
	}
}

// trusted reports whether a repair could trust the manifest.
func trusted(r *Report) bool {
	return r.Needed && !slices.ContainsFunc(r.Lost, func(l Loss) bool { return l.File == listOfFiles })
}

// countLost returns how many writes a report says are lost for certain, which is any number if it does not know.
func countLost(r *Report) (n uint64) {
	for _, l := range r.Lost {
		switch {
		case l.Possible:
		case l.Writes == nil:
			return math.MaxUint64
		default:
			n += *l.Writes
		}
	}
	return n
}

// repaired repairs a damaged store, checks what is left, and returns the report and the contents. If
// thorough is set, to another directory before.
func repaired(t *testing.T, h *history, dir, what string, thorough bool) (*Report, map[string]string) {
	t.Helper()
	before := snapshotDir(t, dir)
	dry, err := Run(t.Context(), dir, Options{DryRun: true})
	require.NoError(t, err, what)
	require.Equal(t, before, snapshotDir(t, dir), "%s: a dry run changes nothing", what)
	if !dry.Needed { // what a crash may leave: the store opens, on a prefix of its writes
		got := contents(t, dir)
		if len(dry.Notes) == 0 {
			requireCovered(t, h, dry, got, what)
		}
		return dry, got
	}
	out := ""
	if thorough {
		out = filepath.Join(t.TempDir(), "out")
		toOut, err := Run(t.Context(), dir, Options{Out: out})
		require.NoError(t, err, what)
		require.Equal(t, before, snapshotDir(t, dir), "%s: with another directory the original stays", what)
		require.Equal(t, sums(toOut), sums(dry), what)
	}
	r, err := Run(t.Context(), dir, Options{})
	require.NoError(t, err, what)
	require.Equal(t, sums(r), sums(dry), what)
	for name, data := range before {
		requireSomewhere(t, dir, name, data, what)
	}
	got := contents(t, dir)
	requireCovered(t, h, r, got, what)
	if thorough {
		require.Equal(t, got, contents(t, out), what)
		again, err := Run(t.Context(), dir, Options{})
		require.NoError(t, err, what)
		require.False(t, again.Needed, "%s: a repaired store needs no repair: %+v", what, again.Damage)
	}
	return r, got
}

// sums returns what a report promises of the repaired store.
func sums(r *Report) []any { return []any{r.Lost, r.Levels, r.Tables, r.Blobs, r.Entries, r.Notes} }

// requireSomewhere checks that the bytes of an original are still there.
func requireSomewhere(t *testing.T, dir, name, data, what string) {
	t.Helper()
	kind, _ := manifest.ParseFileName(name)
	if kind == manifest.FileLock {
		return
	}
	for _, path := range []string{name, filepath.Join(LostDir, name)} {
		if b, err := os.ReadFile(filepath.Join(dir, path)); err == nil && string(b) == data {
			return
		}
	}
	t.Fatalf("%s: %s is gone", what, name)
}

func snapshotDir(t *testing.T, dir string) map[string]string {
	t.Helper()
	files := map[string]string{}
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	for _, e := range entries {
		if e.IsDir() || e.Name() == manifest.LockName {
			continue
		}
		data, err := os.ReadFile(filepath.Join(dir, e.Name()))
		require.NoError(t, err)
		files[e.Name()] = string(data)
	}
	return files
}

// Every combination of damages to CURRENT, the manifest, a table and the log.
func TestEveryCombinationOfDamages(t *testing.T) {
	t.Parallel()
	scale.OneGoroutine(t, "a repair has a single goroutine")
	kinds := []manifest.FileKind{manifest.FileCurrent, manifest.FileManifest, manifest.FileTable, manifest.FileWAL}
	origin := filepath.Join(t.TempDir(), "origin")
	h := store(t, origin, 6)
	names := []string{"whole", "missing", "flipped", "truncated"}
	for n := range 4 * 4 * 4 * 4 {
		if n > 3 && n%scale.Stride(7, 1) != 0 { // a stride that has no factor of 4 reaches every pair of damages
			continue
		}
		rng := rand.New(rand.NewPCG(uint64(n), 2))
		dir := filepath.Join(t.TempDir(), "store")
		cloneDir(t, origin, dir)
		var what strings.Builder
		for i, kind := range kinds {
			damage := names[n>>(2*i)&3]
			files := filesOf(t, dir, kind)
			name := files[rng.IntN(len(files))]
			damages[damage](t, name, rng)
			fmt.Fprintf(&what, "%s %s; ", damage, filepath.Base(name))
		}
		if n == 0 {
			r, err := Run(t.Context(), dir, Options{})
			require.NoError(t, err)
			require.False(t, r.Needed, "%+v", r.Damage)
			continue
		}
		r, got := repaired(t, h, dir, what.String(), n%8 == 1)
		if n&^3 == 0 { // CURRENT alone
			require.Empty(t, r.Lost, what.String())
			require.Equal(t, h.now, got)
		}
	}
}

// Random bytes of random files, on stores of several kinds.
func TestRandomDamageIsReportedAndNothingIsInvented(t *testing.T) {
	t.Parallel()
	scale.OneGoroutine(t, "one goroutine repairs")
	for seed := range uint64(9) {
		origin := filepath.Join(t.TempDir(), "origin")
		kind := store
		if seed >= 6 {
			kind = separatedStore
		}
		h := kind(t, origin, seed)
		for n := range scale.Count(2, 8) {
			rng := rand.New(rand.NewPCG(seed, uint64(n)))
			dir := filepath.Join(t.TempDir(), "store")
			cloneDir(t, origin, dir)
			var what strings.Builder
			fmt.Fprintf(&what, "seed %d, round %d: ", seed, n)
			var files []string
			for _, kind := range []manifest.FileKind{manifest.FileCurrent, manifest.FileManifest, manifest.FileTable,
				manifest.FileWAL, manifest.FileBlob} {
				files = append(files, filesOf(t, dir, kind)...)
			}
			for range 1 + rng.IntN(5) {
				name := files[rng.IntN(len(files))]
				if info, err := os.Stat(name); err != nil || info.Size() == 0 {
					continue
				}
				damage := []string{"flipped", "flipped", "overwritten", "truncated", "missing", "emptied"}[rng.IntN(6)]
				damages[damage](t, name, rng)
				fmt.Fprintf(&what, "%s %s; ", damage, filepath.Base(name))
			}
			if _, err := Run(t.Context(), dir, Options{DryRun: true}); errors.Is(err, kv.ErrNotExist) ||
				errors.Is(err, kv.ErrForeignDirectory) {
				continue // nothing is left that says what this is
			}
			repaired(t, h, dir, what.String(), n%4 == 0)
		}
	}
}
