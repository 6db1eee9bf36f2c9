package repair

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/internal/base"
	"github.com/siftkv/siftkv/internal/manifest"
	"github.com/siftkv/siftkv/internal/rangedel"
	"github.com/siftkv/siftkv/internal/scale"
	"github.com/siftkv/siftkv/internal/sstable"
	"github.com/siftkv/siftkv/internal/survey"
	"github.com/siftkv/siftkv/internal/vfs"
	"github.com/siftkv/siftkv/kv"
)

// A version is one write.
type version struct {
	seq   uint64
	value string // empty: a delete
}

// writeTable writes a table of versions, by key.
func writeTable(t *testing.T, dir string, num uint64, keys map[string][]version, tombs []rangedel.Tombstone) {
	t.Helper()
	f, err := vfs.OS.Create(filepath.Join(dir, manifest.FileName(manifest.FileTable, num)))
	require.NoError(t, err)
	w := sstable.NewWriter(f, &sstable.WriterOptions{BlockSize: 128})
	for _, k := range slices.Sorted(maps.Keys(keys)) {
		vs := keys[k]
		slices.SortFunc(vs, func(a, b version) int { return int(b.seq) - int(a.seq) })
		for _, v := range vs {
			kind := base.KindSet
			if v.value == "" {
				kind = base.KindDelete
			}
			require.NoError(t, w.Add(base.MakeKey([]byte(k), base.SeqNum(v.seq), kind), []byte(v.value)))
		}
	}
	for _, tomb := range tombs {
		require.NoError(t, w.AddTombstone(tomb))
	}
	_, err = w.Finish()
	require.NoError(t, err)
	require.NoError(t, f.Close())
}

// Versions of keys are dealt out to tables at random: however sequence numbers
// interleave, the store that is made of the tables alone answers with the newest, now
// and when it has been compacted.
func TestTablesAloneGiveTheNewestVersions(t *testing.T) {
	t.Parallel()
	scale.OneGoroutine(t, "one goroutine repairs")
	merged, seeds := 0, uint64(scale.Count(20, 60))
	for seed := range seeds {
		rng := rand.New(rand.NewPCG(seed, 9))
		dir := t.TempDir()
		tables := make([]map[string][]version, 1+rng.IntN(8))
		tombs := make([][]rangedel.Tombstone, len(tables))
		for i := range tables {
			tables[i] = map[string][]version{}
		}
		want := map[string]string{}
		seq := uint64(0)
		for range rng.IntN(200) {
			seq++
			// Mostly the tables come one after the other; now and then not.
			i := int(seq) * len(tables) / 201
			if rng.IntN(1+int(seed)) == 0 {
				i = rng.IntN(len(tables))
			}
			k := fmt.Sprintf("k%02d", rng.IntN(40))
			switch rng.IntN(12) {
			case 0:
				tables[i][k] = append(tables[i][k], version{seq, ""})
				delete(want, k)
			case 1:
				end := fmt.Sprintf("k%02d", rng.IntN(40))
				if end > k {
					tombs[i] = append(tombs[i],
						rangedel.Tombstone{Start: []byte(k), End: []byte(end), Seq: base.SeqNum(seq)})
					maps.DeleteFunc(want, func(key, _ string) bool { return key >= k && key < end })
				}
			default:
				v := fmt.Sprintf("%s at %d", k, seq)
				tables[i][k] = append(tables[i][k], version{seq, v})
				want[k] = v
			}
		}
		for i := range tables {
			if len(tables[i])+len(tombs[i]) > 0 {
				writeTable(t, dir, uint64(10+i), tables[i], tombs[i])
			}
		}
		if names, err := vfs.OS.List(dir); err != nil || len(names) == 0 {
			continue
		}
		dry, err := Run(t.Context(), dir, Options{DryRun: true})
		require.NoError(t, err, "seed %d", seed)
		r, err := Run(t.Context(), dir, Options{})
		require.NoError(t, err, "seed %d", seed)
		require.Equal(t, sums(r), sums(dry), "seed %d", seed)
		require.True(t, r.Needed)
		require.False(t, r.LostForSure())
		for _, f := range r.Files {
			if f.Action == Rewrote {
				merged++
			}
		}
		require.Equal(t, want, contents(t, dir), "seed %d: %+v", seed, r)
		db, err := kv.Open(dir, nil)
		require.NoError(t, err)
		require.NoError(t, db.Compact(t.Context(), nil, nil))
		require.NoError(t, db.Close())
		require.Equal(t, want, contents(t, dir), "seed %d, compacted: %+v", seed, r)
	}
	t.Log(merged)
	require.Greater(t, merged, int(seeds)/2, "some had to be merged")
}

func TestPlaceKeepsNewerTablesAbove(t *testing.T) {
	table := func(num uint64, lo, hi string, from, to base.SeqNum) *piece {
		return &piece{kept: true, level: -1, from: []string{manifest.FileName(manifest.FileTable, num)},
			t: manifest.Table{Num: num, Smallest: []byte(lo), Largest: []byte(hi), SmallestSeq: from, LargestSeq: to}}
	}
	r := &repairer{report: &Report{}, s: &survey.Store{}}
	r.pieces = []*piece{
		table(1, "a", "m", 0, 0), table(2, "n", "z", 0, 0), table(3, "b", "c", 1, 9), table(4, "b", "z", 10, 20),
		table(5, "x", "y", 5, 5), table(6, "b", "b", 21, 21),
	}
	require.NoError(t, r.place())
	levels := map[uint64]int{}
	for _, p := range r.pieces {
		levels[p.t.Num] = p.level
	}
	require.Equal(t, map[uint64]int{1: 6, 2: 6, 3: 5, 5: 5, 4: 4, 6: 3}, levels)
}

func TestCovers(t *testing.T) {
	in := Range{Lower: []byte("b"), Upper: []byte("d")}
	below := Range{Lower: []byte("b"), Upper: []byte("d"), UpperExclusive: true}
	open := Range{}
	require.False(t, in.Contains([]byte("a")))
	require.True(t, in.Contains([]byte("b")))
	require.True(t, in.Contains([]byte("d")))
	require.False(t, below.Contains([]byte("d")))
	require.False(t, in.Contains([]byte("d\x00")))
	require.True(t, open.Contains(nil))
	r := Report{Lost: []Loss{{Ranges: []Range{in}}}}
	require.False(t, r.Covers([]byte("e")))
	r.Lost = append(r.Lost, Loss{})
	require.True(t, r.Covers([]byte("e")), "any key")
}
