package repair

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/internal/base"
	"github.com/siftkv/siftkv/internal/blob"
	"github.com/siftkv/siftkv/internal/manifest"
	"github.com/siftkv/siftkv/internal/sstable"
)

// An entryOf is an entry of a table that a test writes: with a value, or with a handle of a blob file that is missing.
type entryOf struct {
	key   string
	seq   base.SeqNum
	value string // "": lost; of a merge operand, it begins with "+"
}

// writeEntries writes a table of a store without a manifest.
func writeEntries(t *testing.T, dir string, num uint64, entries ...entryOf) {
	t.Helper()
	f, err := os.Create(filepath.Join(dir, manifest.FileName(manifest.FileTable, num)))
	require.NoError(t, err)
	w := sstable.NewWriter(f, &sstable.WriterOptions{BlockSize: 256, Compression: sstable.NoCompression})
	w.KnowBlobs(func(uint64) uint64 { return 77 })
	for i, e := range entries {
		kind, value := base.KindSet, []byte(e.value)
		if e.value == "" {
			h := blob.Handle{File: num + 100, Ordinal: uint64(i), Offset: 32 + 50*int64(i), Length: 50, Size: 20}
			kind, value = base.KindSetSeparated, h.Append(nil)
		} else if e.value[0] == '+' {
			kind, value = base.KindMerge, value[1:]
		}
		require.NoError(t, w.Add(base.MakeKey([]byte(e.key), e.seq, kind), value))
	}
	_, err = w.Finish()
	require.NoError(t, err)
	require.NoError(t, f.Close())
}

// Without a manifest, the tables of before and after a compaction may both be there. A value that is lost in one of
// them is taken from another that has the same write.
func TestALostValueIsTakenFromATableThatHasIt(t *testing.T) {
	t.Parallel()
	for _, lost := range []uint64{10, 11} {
		dir := t.TempDir()
		writeEntries(t, dir, lost, entryOf{"a", 5, ""}, entryOf{"b", 6, ""}, entryOf{"c", 7, ""})
		writeEntries(t, dir, 21-lost, entryOf{"a", 5, "same"}, entryOf{"b", 4, "older"}, entryOf{"c", 8, "newer"})
		r, err := Run(t.Context(), dir, Options{})
		require.NoError(t, err)
		require.Equal(t, map[string]string{"a": "same", "c": "newer"}, contents(t, dir))
		require.True(t, r.Covers([]byte("b")))
		require.Len(t, r.Lost[0].Values, 1, "%+v", r.Lost)
	}
}

// The table with lost values may be of a compaction that a crash broke off, before its blob file was whole: tables of
// before have the values, and sequence number 0 too. A value of an older table may be an older one: the report says so.
func TestALostValueIsTakenFromATableOfBefore(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	writeEntries(t, dir, 10, entryOf{"a", 0, "value"}, entryOf{"b", 3, "hidden"})
	writeEntries(t, dir, 11, entryOf{"a", 0, ""}, entryOf{"b", 4, ""})
	r, err := Run(t.Context(), dir, Options{})
	require.NoError(t, err)
	require.Equal(t, map[string]string{"a": "value"}, contents(t, dir))
	require.Len(t, r.Lost, 3, "%+v", r.Lost)
	require.False(t, r.Lost[0].Covers([]byte("a")), "%+v", r.Lost)
	require.True(t, r.Lost[0].Covers([]byte("b")), "%+v", r.Lost)
	require.True(t, r.Lost[1].Possible && r.Lost[1].Covers([]byte("a")), "%+v", r.Lost)
	require.Equal(t, ShowsOther, r.Lost[1].Values[0].Shows)
}

// A compaction gives a value that it combines the number of its newest operand. That operand alone is not the value.
func TestALoneOperandDoesNotReplaceALostValue(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	writeEntries(t, dir, 10, entryOf{"a", 5, "+operand"}, entryOf{"a", 4, "value"})
	writeEntries(t, dir, 11, entryOf{"a", 5, ""})
	r, err := Run(t.Context(), dir, Options{})
	require.NoError(t, err)
	require.Empty(t, contents(t, dir))
	require.True(t, r.Lost[0].Covers([]byte("a")) && !r.Lost[0].Possible, "%+v", r.Lost)
}

// A table that is written again is as old as before: of versions with sequence number 0, that of the newer table is
// kept.
func TestATableThatIsWrittenAgainGetsNoNewer(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	writeEntries(t, dir, 10, entryOf{"a", 0, ""}, entryOf{"b", 0, "kept"})
	writeEntries(t, dir, 11, entryOf{"a", 0, "newer"})
	r, err := Run(t.Context(), dir, Options{})
	require.NoError(t, err)
	require.Len(t, r.Lost, 1, "without the manifest: %+v", r.Lost)
	require.Equal(t, map[string]string{"a": "newer", "b": "kept"}, contents(t, dir))

	dir = t.TempDir()
	writeEntries(t, dir, 10, entryOf{"a", 0, strings.Repeat("older", 60)},
		entryOf{"b", 0, strings.Repeat("damaged", 50)}, entryOf{"c", 0, "kept"})
	writeEntries(t, dir, 11, entryOf{"a", 0, "newer"})
	table := filepath.Join(dir, manifest.FileName(manifest.FileTable, 10))
	data, err := os.ReadFile(table)
	require.NoError(t, err)
	at := strings.Index(string(data), "damaged")
	require.Positive(t, at)
	data[at] ^= 1
	replace(t, table, data)
	_, err = Run(t.Context(), dir, Options{})
	require.NoError(t, err)
	require.Equal(t, map[string]string{"a": "newer", "c": "kept"}, contents(t, dir))
}
