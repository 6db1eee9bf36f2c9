package repair

import (
	"bytes"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/internal/manifest"
	"github.com/siftkv/siftkv/internal/scale"
	"github.com/siftkv/siftkv/kv"
	"github.com/siftkv/siftkv/sstable"
)

const separateFrom = 20

// separatedStore writes a store of several levels and closes it. Values of at least separateFrom bytes are in many blob
// files, some with an expiry. The store has deletes, range deletes and a log. Values are unique.
func separatedStore(t *testing.T, dir string, seed uint64) *history {
	t.Helper()
	rng := rand.New(rand.NewPCG(seed, 11))
	h := &history{ever: map[string]map[string]bool{}, now: map[string]string{}}
	db, err := kv.Open(dir, &kv.Options{SeparateFrom: separateFrom, BlockSize: 256, L0CompactionThreshold: 100,
		TargetFileSize: 16 << 10, Compression: sstable.NoCompression})
	require.NoError(t, err)
	n := 0
	round := func(writes int) {
		for range writes {
			n++
			k := fmt.Sprintf("key%03d", rng.IntN(300))
			v := fmt.Sprintf("%d %s", n, bytes.Repeat([]byte{byte('a' + rng.IntN(26))}, rng.IntN(100)))
			switch rng.IntN(20) {
			case 0:
				require.NoError(t, db.Delete([]byte(k), kv.NoSync))
				delete(h.now, k)
				continue
			case 1:
				hi := fmt.Sprintf("%s%d", k, rng.IntN(9))
				require.NoError(t, db.DeleteRange([]byte(k), []byte(hi), kv.NoSync))
				maps.DeleteFunc(h.now, func(key, _ string) bool { return key >= k && key < hi })
				continue
			case 2:
				require.NoError(t, db.SetTTL([]byte(k), []byte(v), time.Hour, kv.NoSync))
			default:
				require.NoError(t, db.Set([]byte(k), []byte(v), kv.NoSync))
			}
			if h.ever[k] == nil {
				h.ever[k] = map[string]bool{}
			}
			h.ever[k][v], h.now[k] = true, v
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
	require.NoError(t, db.Close())
	return h
}

// requireNeverOlder requires of each key that it has its value, or none, but for those that a loss other than
// that of values covers.
func requireNeverOlder(t *testing.T, h *history, r *Report, got map[string]string, what string) {
	t.Helper()
	named := map[string]bool{}
	for _, l := range r.Lost {
		for _, v := range l.Values {
			named[string(v.Key)] = true
			require.Equal(t, ShowsNothing, v.Shows)
			require.NotContains(t, got, string(v.Key), what)
		}
	}
	for k, v := range h.now {
		at, ok := got[k]
		require.True(t, ok || named[k], "%s: %s is gone, and not named", what, k)
		if ok {
			require.Equal(t, v, at, "%s: %s", what, k)
		}
	}
	for k := range got {
		require.Contains(t, h.now, k, what)
	}
	for k := range named {
		require.Contains(t, h.now, k, what)
	}
}

// Each blob file in turn is damaged in each way, with a manifest and without one: values that are lost are
// named, their keys show nothing, and all others are as they were.
func TestEachBlobFileInTurn(t *testing.T) {
	t.Parallel()
	scale.OneGoroutine(t, "a repair has a single goroutine")
	for seed := range uint64(scale.Count(1, 2)) {
		origin := filepath.Join(t.TempDir(), "origin")
		h := separatedStore(t, origin, seed)
		require.Equal(t, h.now, contents(t, origin))
		blobs := filesOf(t, origin, manifest.FileBlob)
		require.Greater(t, len(blobs), 2)
		lost, tried := map[string]int{}, 0
		for i := range blobs {
			for _, damage := range slices.Sorted(maps.Keys(damages)) {
				for _, without := range []string{"", manifest.CurrentName, "MANIFEST"} {
					if tried++; tried%scale.Stride(5, 1) != 0 { // every damage comes with each of these three
						continue
					}
					rng := rand.New(rand.NewPCG(seed, uint64(i)))
					dir := filepath.Join(t.TempDir(), "store")
					cloneDir(t, origin, dir)
					damages[damage](t, filesOf(t, dir, manifest.FileBlob)[i], rng)
					for _, f := range filesOf(t, dir, manifest.FileManifest) {
						if without == "MANIFEST" {
							require.NoError(t, os.Remove(f))
						}
					}
					if without == manifest.CurrentName {
						require.NoError(t, os.Remove(filepath.Join(dir, without)))
					}
					what := fmt.Sprintf("seed %d: %s %s, without %s", seed, damage, filepath.Base(blobs[i]), without)
					r, got := repaired(t, h, dir, what, i == 0 || damage == "flipped")
					requireNeverOlder(t, h, r, got, what)
					for _, l := range r.Lost {
						lost[damage] += len(l.Values)
					}
				}
			}
		}
		require.Zero(t, lost["whole"])
		require.Greater(t, lost["missing"], lost["truncated"])
		require.Greater(t, lost["truncated"], lost["flipped"])
		require.Positive(t, lost["flipped"])
		t.Log(len(blobs), tried, lost)
	}
}

// Blob files that have each other's names lose nothing.
func TestBlobFilesThatWereSwapped(t *testing.T) {
	origin := filepath.Join(t.TempDir(), "origin")
	h := separatedStore(t, origin, 1)
	for _, trusted := range []bool{true, false} {
		dir := filepath.Join(t.TempDir(), "store")
		cloneDir(t, origin, dir)
		blobs := filesOf(t, dir, manifest.FileBlob)
		require.NoError(t, os.Rename(blobs[0], dir+"0"))
		require.NoError(t, os.Rename(blobs[1], blobs[0]))
		require.NoError(t, os.Rename(dir+"0", blobs[1]))
		if !trusted {
			require.NoError(t, os.Remove(filepath.Join(dir, manifest.CurrentName)))
		}
		r, got := repaired(t, h, dir, "swapped", true)
		require.Equal(t, h.now, got)
		require.False(t, r.LostForSure())
		var text strings.Builder
		require.NoError(t, r.WriteText(&text))
		require.Contains(t, text.String(), "values are in new blob files")
	}
}
