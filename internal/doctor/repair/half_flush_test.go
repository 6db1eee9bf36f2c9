package repair

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/internal/base"
	"github.com/siftkv/siftkv/internal/manifest"
	"github.com/siftkv/siftkv/kv"
)

// A flush of several files that a crash broke off leaves some of them. What the others would have
// had is in the logs alone, whatever else is damaged.
func TestOneFileOfAFlushDoesNotStandForAll(t *testing.T) {
	for _, c := range []struct {
		name  string
		files int // of the flush, of two
		spoil func(t *testing.T, dir string) (lost int)
	}{
		{"no manifest", 1, dropManifest}, {"no manifest, all files", 2, dropManifest},
		{"damaged log", 1, flipLog}, {"damaged log, all files", 2, flipLog},
	} {
		t.Run(c.name, func(t *testing.T) {
			halves := [2]map[string][]version{{}, {}}
			dir, now := crashed(t, func(set func(k, v string), db *kv.DB) {
				set("key900", "in a table")
				require.NoError(t, db.Flush(t.Context()))
				for i := range 40 {
					k := fmt.Sprintf("key%03d", i*17%40)
					set(k, "in the log")
					halves[i*17%40/20][k] = []version{{seq: uint64(2 + i), value: "in the log"}}
				}
			})
			for i := range c.files {
				writeTable(t, dir, uint64(70+i), halves[i], nil)
			}
			most := c.spoil(t, dir)
			r, err := Run(t.Context(), dir, Options{})
			require.NoError(t, err)
			got := contents(t, dir)
			if c.files == 2 {
				most = 0
			}
			require.GreaterOrEqual(t, len(got), len(now)-most, "%+v", r.Lost)
			require.True(t, len(got) == len(now) || len(r.Lost) > 0)
			for i := range 20 {
				require.Contains(t, got, fmt.Sprintf("key%03d", i), "in the file of the flush")
			}
		})
	}
}

func dropManifest(t *testing.T, dir string) int {
	for _, name := range append(filesOf(t, dir, manifest.FileManifest), filepath.Join(dir, manifest.CurrentName)) {
		require.NoError(t, os.Remove(name))
	}
	return 0
}

// flipLog damages one block of a log, and returns how many of its records that may cost.
func flipLog(t *testing.T, dir string) int {
	log := filesOf(t, dir, manifest.FileWAL)[0]
	data, err := os.ReadFile(log)
	require.NoError(t, err)
	data[len(data)/2] ^= 1
	require.NoError(t, os.WriteFile(log, data, 0o600))
	return 2
}

// What a table has of the logs' writes is told by key: of a range tombstone, that tables have all
// of it between them.
func TestWhatTablesBesideLogsHave(t *testing.T) {
	b := besideLogs{}
	b.add(&manifest.Table{Smallest: []byte("b"), Largest: []byte("f"), LargestExclusive: true, LargestSeq: 9})
	b.add(&manifest.Table{Smallest: []byte("f"), Largest: []byte("k"), LargestSeq: 7})
	b.add(&manifest.Table{Smallest: []byte("p"), LargestSeq: 5})
	require.EqualValues(t, 9, b.last)
	for _, c := range []struct {
		start, end string // no end: a value
		seq        base.SeqNum
		want       bool
	}{
		{"b", "", 9, true}, {"b", "", 10, false}, {"a", "", 1, false}, {"f", "", 7, true}, {"f", "", 8, false},
		{"k", "", 7, true}, {"k\x00", "", 7, false}, {"z", "", 5, true}, {"b", "f", 9, true}, {"b", "g", 7, true},
		{"b", "g", 8, false}, {"a", "c", 1, false}, {"b", "k\x00", 7, true}, {"b", "l", 7, false}, {"q", "z", 5, true},
	} {
		kind, end := base.KindSet, []byte(nil)
		if c.end != "" {
			kind, end = base.KindRangeDelete, []byte(c.end)
		}
		require.Equal(t, c.want, b.has(base.MakeKey([]byte(c.start), c.seq, kind), end), "%+v", c)
	}
	require.True(t, b.has(base.MakeKey([]byte("p"), 5, base.KindRangeDelete), nil), "without bound")
	require.False(t, b.has(base.MakeKey([]byte("b"), 5, base.KindRangeDelete), nil), "without bound")
}
