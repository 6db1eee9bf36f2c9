package repair

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/internal/manifest"
	"github.com/siftkv/siftkv/internal/scale"
	"github.com/siftkv/siftkv/kv"
	"github.com/siftkv/siftkv/sstable"
)

// Each table in turn is damaged in each way: what is not as it was is within what the report says was lost, and most
// of the separated values are back.
func TestEachTableOfAStoreWithSeparatedValuesInTurn(t *testing.T) {
	t.Parallel()
	scale.OneGoroutine(t, "one goroutine repairs")
	for seed := uint64(0); seed < 4; seed += uint64(scale.Stride(3, 1)) {
		origin := filepath.Join(t.TempDir(), "origin")
		h := separatedStore(t, origin, seed)
		tables := filesOf(t, origin, manifest.FileTable)
		rebuilt, wrong := 0, 0
		for i := range tables {
			for _, damage := range slices.Sorted(maps.Keys(damages)) {
				rng := rand.New(rand.NewPCG(seed, uint64(i)))
				dir := filepath.Join(t.TempDir(), "store")
				cloneDir(t, origin, dir)
				damages[damage](t, filesOf(t, dir, manifest.FileTable)[i], rng)
				what := fmt.Sprintf("seed %d: %s %s", seed, damage, filepath.Base(tables[i]))
				r, got := repaired(t, h, dir, what, i == 0)
				for k, v := range h.now {
					if len(v) >= separateFrom && got[k] != v {
						wrong++
					}
				}
				for _, l := range r.Lost {
					n := 0
					if _, after, ok := strings.Cut(l.What, "; "); ok {
						_, _ = fmt.Sscanf(after, "%d values of it were rebuilt", &n)
					}
					rebuilt += n
				}
			}
		}
		t.Log(len(tables), rebuilt, wrong)
		require.Zero(t, wrong)
		require.Greater(t, rebuilt, 300)
	}
}

// largeStore has large values only, overwritten and never deleted, some with an expiry: blob files alone
// tell all that is in it.
func largeStore(t *testing.T, dir string) *history {
	t.Helper()
	rng := rand.New(rand.NewPCG(1, 21))
	h := &history{ever: map[string]map[string]bool{}, now: map[string]string{}}
	db, err := kv.Open(dir, &kv.Options{SeparateFrom: 1, L0CompactionThreshold: 100, TargetFileSize: 16 << 10,
		BlockSize: 256})
	require.NoError(t, err)
	for n := range 3000 {
		k, v := fmt.Sprintf("key%03d", rng.IntN(300)), fmt.Sprintf("value %d", n)
		if n%10 == 0 {
			require.NoError(t, db.SetTTL([]byte(k), []byte(v), time.Hour, kv.NoSync))
		} else {
			require.NoError(t, db.Set([]byte(k), []byte(v), kv.NoSync))
		}
		h.now[k] = v
		if h.ever[k] == nil {
			h.ever[k] = map[string]bool{}
		}
		h.ever[k][v] = true
		if n%500 == 499 {
			require.NoError(t, db.Flush(t.Context()))
		}
		if n == 1999 {
			require.NoError(t, db.Compact(t.Context(), nil, nil))
		}
	}
	require.NoError(t, db.Close())
	return h
}

func TestTablesOfLargeValuesAloneAreRebuiltWhole(t *testing.T) {
	scale.OneGoroutine(t, "one goroutine repairs")
	origin := filepath.Join(t.TempDir(), "origin")
	h := largeStore(t, origin)
	tables := filesOf(t, origin, manifest.FileTable)
	require.Greater(t, len(tables), 2)
	for i := range len(tables) + 1 {
		for _, without := range []string{"", "MANIFEST"} {
			if without != "" && i < len(tables) {
				continue
			}
			dir := filepath.Join(t.TempDir(), "store")
			cloneDir(t, origin, dir)
			what := fmt.Sprintf("table %d missing, %s", i, without)
			for j, name := range filesOf(t, dir, manifest.FileTable) {
				if i == j || i == len(tables) {
					require.NoError(t, os.Remove(name))
				}
			}
			if without != "" {
				for _, name := range append(filesOf(t, dir, manifest.FileManifest), filepath.Join(dir, "CURRENT")) {
					require.NoError(t, os.Remove(name))
				}
			}
			r, got := repaired(t, h, dir, what, true)
			require.Equal(t, h.now, got, what)
			if i < len(tables) {
				require.Empty(t, r.Lost, what)
			}
			db, err := kv.Open(dir, nil)
			require.NoError(t, err)
			it, err := db.NewIter(nil)
			require.NoError(t, err)
			expiring := 0
			for ok := it.First(); ok; ok = it.Next() {
				if at := it.Expiry(); !at.IsZero() {
					expiring++
				}
			}
			require.Greater(t, expiring, 10)
			require.NoError(t, it.Close())
			require.NoError(t, db.Compact(t.Context(), nil, nil))
			require.NoError(t, db.Close())
			require.Equal(t, h.now, contents(t, dir), what)
		}
	}
}

// Of keys that were deleted before a table was lost, the records are garbage that looks like values: the report says
// how many of these may be back, and no more are.
func TestValuesThatWereDeletedMayBeBackAndAreCounted(t *testing.T) {
	t.Parallel()
	scale.OneGoroutine(t, "one goroutine repairs")
	back, doubts := 0, 0
	for seed := uint64(0); seed < 6; seed += uint64(scale.Stride(3, 1)) {
		origin := filepath.Join(t.TempDir(), "origin")
		rng := rand.New(rand.NewPCG(seed, 31))
		db, err := kv.Open(origin, &kv.Options{SeparateFrom: separateFrom, TargetFileSize: 16 << 10, BlockSize: 256,
			L0CompactionThreshold: 100, BlobSpace: 1000, Compression: sstable.NoCompression})
		require.NoError(t, err)
		now := map[string]string{}
		for n := range 4000 {
			k := fmt.Sprintf("key%04d", rng.IntN(2000)) + strings.Repeat(" long", 40) // for several tables
			v := strconv.Itoa(n)
			switch action := rng.IntN(40); {
			case action == 0:
				require.NoError(t, db.Delete([]byte(k), kv.NoSync))
				delete(now, k)
				continue
			case action == 1 && seed > 2: // too short to be separated
			default:
				v += strings.Repeat(" large", 4)
			}
			require.NoError(t, db.Set([]byte(k), []byte(v), kv.NoSync))
			if now[k] = v; n%1000 == 999 {
				require.NoError(t, db.Flush(t.Context()))
			}
		}
		// All tables go to the last level, and no blob file is collected, since each has keys of others.
		require.NoError(t, db.Compact(t.Context(), nil, []byte("key0100")))
		require.NoError(t, db.Close())
		for i := range filesOf(t, origin, manifest.FileTable) {
			dir := filepath.Join(t.TempDir(), "store")
			cloneDir(t, origin, dir)
			require.NoError(t, os.Remove(filesOf(t, dir, manifest.FileTable)[i]))
			r, err := Run(t.Context(), dir, Options{})
			require.NoError(t, err)
			resurrected, doubt := 0, 0
			got := contents(t, dir)
			for k, v := range got {
				if now[k] != v {
					resurrected++
					require.True(t, r.Covers([]byte(k)))
				}
			}
			for k, v := range now {
				require.True(t, got[k] == v || len(v) < separateFrom && r.Covers([]byte(k)), k)
			}
			for _, l := range r.Lost {
				if _, after, ok := strings.Cut(l.What, "; up to "); ok {
					_, err := fmt.Sscanf(after, "%d may", &doubt)
					require.NoError(t, err)
				}
			}
			require.LessOrEqual(t, resurrected, doubt, "seed %d, table %d: %v", seed, i, r.Lost)
			back, doubts = back+resurrected, doubts+doubt
		}
	}
	t.Log(back, doubts)
	require.Positive(t, back)
	require.Less(t, doubts, 2*back, "the bound is near what is")
}

// A merge operand that is newer than a value of a lost table needs the value: it does not prove that the value was
// garbage, whether it is in another table or in a log.
func TestValuesUnderOperandsAreRebuilt(t *testing.T) {
	t.Parallel()
	for _, flushed := range []bool{false, true} {
		dir := filepath.Join(t.TempDir(), "store")
		o := &kv.Options{SeparateFrom: 10, Merger: kv.Append(","), L0CompactionThreshold: 100}
		db, err := kv.Open(dir, o)
		require.NoError(t, err)
		for _, k := range []string{"merged", "overwritten", "plain"} {
			require.NoError(t, db.Set([]byte(k), []byte("a separated value"), kv.NoSync))
		}
		require.NoError(t, db.Flush(t.Context()))
		lost := filesOf(t, dir, manifest.FileTable)
		require.NoError(t, db.Merge([]byte("merged"), []byte("operand"), kv.NoSync))
		require.NoError(t, db.Set([]byte("overwritten"), []byte("newer"), kv.NoSync))
		require.NoError(t, db.Merge([]byte("overwritten"), []byte("operand"), kv.NoSync))
		if flushed {
			require.NoError(t, db.Flush(t.Context()))
		}
		require.NoError(t, db.Close())
		require.NoError(t, os.Remove(lost[0]))
		r, err := Run(t.Context(), dir, Options{})
		require.NoError(t, err)
		require.False(t, r.LostForSure(), "%+v", r)
		db, err = kv.Open(dir, o)
		require.NoError(t, err)
		for k, want := range map[string]string{"merged": "a separated value,operand", "overwritten": "newer,operand",
			"plain": "a separated value"} {
			v, err := db.Get([]byte(k))
			require.NoError(t, err, k)
			require.Equal(t, want, string(v), k)
		}
		require.NoError(t, db.Close())
	}
}

// A value that was separated late, when its entry had sequence number 0, is newer than a record of the key that has the
// number of its write. A rebuilt table does not show the older one.
func TestRecordsWithoutANumberMayBeNewer(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "store")
	filler := strings.Repeat("filler", 1000)
	for round, from := range []int{10, 0, 10} {
		db, err := kv.Open(dir, &kv.Options{SeparateFrom: from, Compression: sstable.NoCompression})
		require.NoError(t, err)
		switch round {
		case 0:
			require.NoError(t, db.Set([]byte("a"), []byte("an older value"), kv.NoSync))
			require.NoError(t, db.Set([]byte("b"), []byte(filler), kv.NoSync))
		case 1:
			require.NoError(t, db.Set([]byte("a"), []byte("the newer value"), kv.NoSync))
		default:
			require.NoError(t, db.Set([]byte("c"), []byte("c"), kv.NoSync))
		}
		require.NoError(t, db.Flush(t.Context()))
		require.NoError(t, db.Compact(t.Context(), nil, nil))
		require.NoError(t, db.Close())
	}
	require.Len(t, filesOf(t, dir, manifest.FileBlob), 2)
	tables := filesOf(t, dir, manifest.FileTable)
	require.Len(t, tables, 1)
	require.NoError(t, os.Remove(tables[0]))
	r, err := Run(t.Context(), dir, Options{})
	require.NoError(t, err)
	got := contents(t, dir)
	require.Equal(t, filler, got["b"])
	require.NotEqual(t, "an older value", got["a"], "%+v", r.Lost)
	require.True(t, r.Covers([]byte("a")))
}

// A record with sequence number 0 that a remaining table refers to is not of the lost table: the lost table's value of
// the key is rebuilt.
func TestARecordWithoutANumberThatATableHasHidesNothing(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "store")
	var older []string
	for round, from := range []int{-1, 10, 10} {
		db, err := kv.Open(dir, &kv.Options{SeparateFrom: from})
		require.NoError(t, err)
		k := []string{"a", "c", "a"}[round]
		require.NoError(t, db.Set([]byte(k), fmt.Appendf(nil, "the value of round %d", round), kv.NoSync))
		require.NoError(t, db.Flush(t.Context()))
		if round < 2 {
			require.NoError(t, db.Compact(t.Context(), nil, nil))
			older = filesOf(t, dir, manifest.FileTable)
		}
		require.NoError(t, db.Close())
	}
	lost := slices.DeleteFunc(filesOf(t, dir, manifest.FileTable), func(name string) bool {
		return slices.Contains(older, name)
	})
	require.Len(t, lost, 1)
	require.NoError(t, os.Remove(lost[0]))
	r, err := Run(t.Context(), dir, Options{})
	require.NoError(t, err)
	require.Equal(t, map[string]string{"a": "the value of round 2", "c": "the value of round 1"}, contents(t, dir),
		"%+v", r.Lost)
}
