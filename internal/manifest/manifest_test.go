package manifest

import (
	"encoding/hex"
	"fmt"
	"io/fs"
	"math"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/siftkv/siftkv/internal/base"
	"github.com/siftkv/siftkv/internal/golden"
	"github.com/siftkv/siftkv/internal/vfs"
	"github.com/stretchr/testify/require"
)

func TestFileNames(t *testing.T) {
	for num, name := range map[uint64]string{0: "000000.sst", 120: "000120.sst", 1234567: "1234567.sst"} {
		require.Equal(t, name, FileName(FileTable, num))
	}
	for _, kind := range []FileKind{FileTable, FileWAL, FileManifest, FileBlob, FileKept} {
		for _, num := range []uint64{0, 7, 99999, 100000, 999999, 1234567, math.MaxUint64} {
			k, n := ParseFileName(FileName(kind, num))
			require.Equal(t, kind, k)
			require.Equal(t, num, n)
		}
	}
	for _, foreign := range []string{"7.sst", "0000007.sst", "7.blob", "000007.blobs",
		"+00007.sst", "000007.sst.bak", "notes.txt", "",
		"MANIFEST-", "current", "-00007.wal", "CURRENT2", "OPTIONS-000007", "OPTIONS", "OPTIONS.tmp",
		"READER-", "READER-1", "READER-notes.txt", "READER-1-2-3", "READER-01-2", "READER-1-", "READER-+1-2"} {
		k, _ := ParseFileName(foreign)
		require.Equal(t, FileUnknown, k, foreign)
	}
	k, _ := ParseFileName("CURRENT.tmp")
	require.Equal(t, FileTemp, k)
	k, _ = ParseFileName("SIFTKV-OPTIONS.tmp")
	require.Equal(t, FileTemp, k)
	k, _ = ParseFileName("SIFTKV-OPTIONS")
	require.Equal(t, FileOptions, k)
	k, _ = ParseFileName("READER-4711-1")
	require.Equal(t, FileReader, k)
}

func sampleEdit() *Edit {
	return &Edit{
		StoreID: 0xfeedface, NextFile: 12, LogNum: 9, LastSeq: 1 << 40,
		Deleted: []DeletedTable{{Level: 0, Num: 4}, {Level: 6, Num: 5}},
		Added: []AddedTable{
			{Level: 1, Table: Table{Num: 7, ID: 77, Size: 5000, TailSize: 600, Smallest: []byte("a"),
				Largest:     []byte("m"),
				SmallestSeq: 3, LargestSeq: 900, Entries: 50, Deletes: 2, FilterBytes: 64, IndexBytes: 128}},
			{Level: 2, Table: Table{Num: 8, ID: 88, Size: 1, TailSize: 1, Smallest: []byte{}, Largest: []byte("zz"),
				LargestExclusive: true, RangeDeletes: 1}},
			{Level: 3, Table: Table{Num: 9, Smallest: []byte("q")}},
		},
	}
}

func TestEditRoundTrip(t *testing.T) {
	for _, e := range []*Edit{{}, {LogNum: 3}, sampleEdit()} {
		got, err := DecodeEdit(e.Append(nil))
		require.NoError(t, err)
		require.Equal(t, e, got)
	}
}

// An edit that adds an ingested file has a field that older versions refuse.
func TestGoldenIngestedTables(t *testing.T) {
	e := &Edit{LastSeq: 77, Added: []AddedTable{
		{Level: 6, Table: Table{Num: 7, Smallest: []byte("a"), Largest: []byte("b"), Seq: 77, SmallestSeq: 77,
			LargestSeq: 77}},
		{Level: 0, Table: Table{Num: 8, Smallest: []byte("a"), Largest: []byte("b"), SmallestSeq: 3, LargestSeq: 9}},
	}}
	b := e.Append(nil)
	got, err := DecodeEdit(b)
	require.NoError(t, err)
	require.Equal(t, e, got)
	golden.File(t, filepath.Join("testdata", "ingested.golden"), hex.Dump(b))
	for _, bad := range [][]byte{
		{tagIngested, 2, 7, 77},                      // no such table
		append(slices.Clip(b), tagIngested, 2, 8, 9), // its entries have numbers of their own
		append(slices.Clip(b), tagIngested, 2, 7, 0),
		append(slices.Clip(b), tagIngested, 1, 7),
	} {
		_, err := DecodeEdit(bad)
		require.ErrorIs(t, err, errEdit)
	}
}

func TestEveryTruncationOfAnEditIsAnErrorOrShorter(t *testing.T) {
	whole := sampleEdit().Append(nil)
	for n := range whole {
		e, err := DecodeEdit(whole[:n])
		if err == nil {
			require.Less(t, len(e.Append(nil)), len(whole))
		}
	}
	_, err := DecodeEdit([]byte{99, 1, 0})
	require.ErrorIs(t, err, ErrNewerFormat)
}

func FuzzDecodeEdit(f *testing.F) {
	f.Add(sampleEdit().Append(nil))
	f.Add([]byte{6, 200})
	f.Add(featuresEdit().Append(nil))
	f.Add(runsEdit().Append(nil))
	f.Add([]byte{7, 1, 4})
	f.Fuzz(func(t *testing.T, b []byte) {
		e, err := DecodeEdit(b)
		if err != nil {
			return
		}
		again, err := DecodeEdit(e.Append(nil))
		require.NoError(t, err)
		require.Equal(t, e, again)
	})
}

func TestGolden(t *testing.T) {
	golden.File(t, filepath.Join("testdata", "edit.golden"), hex.Dump(sampleEdit().Append(nil)))
}

func TestBoundsOfATable(t *testing.T) {
	k := func(s string) []byte { return []byte(s) }
	incl := Table{Smallest: k("d"), Largest: k("m")}
	excl := Table{Smallest: k("d"), Largest: k("m"), LargestExclusive: true}
	open := Table{Smallest: k("d")}
	require.True(t, incl.Contains(k("m")))
	require.False(t, excl.Contains(k("m")))
	require.True(t, excl.Contains(k("lzzz")))
	require.True(t, open.Contains(k("zzz")))
	require.False(t, open.Contains(k("c")))
	require.True(t, incl.Overlaps(k("m"), nil))
	require.False(t, excl.Overlaps(k("m"), nil))
	require.False(t, incl.Overlaps(k("a"), k("d")), "an upper end is exclusive")
	require.True(t, incl.Overlaps(nil, k("d\x00")))
	require.Equal(t, "m\x00", string(incl.UpperBound()))
	require.Equal(t, "m", string(excl.UpperBound()))
	require.Nil(t, open.UpperBound())
}

func TestLogAndCurrent(t *testing.T) {
	mem := vfs.NewMem()
	require.NoError(t, mem.MkdirAll("db"))
	_, err := Current(mem, "db")
	require.ErrorIs(t, err, fs.ErrNotExist)

	l, err := Create(mem, "db", 3, &Edit{StoreID: 5, NextFile: 4})
	require.NoError(t, err)
	require.NoError(t, l.Append(sampleEdit()))
	require.NoError(t, l.Close())

	num, err := Current(mem, "db")
	require.NoError(t, err)
	require.EqualValues(t, 3, num)
	var edits []*Edit
	require.NoError(t, Load(mem, "db", num, func(e *Edit) error {
		edits = append(edits, e)
		return nil
	}))
	require.Equal(t, []*Edit{{StoreID: 5, NextFile: 4}, sampleEdit()}, edits)
}

func TestADamagedCurrentIsNamed(t *testing.T) {
	good := fmt.Sprintf("siftkv format=%d manifest=MANIFEST-000003", FormatVersion)
	good = sealedLine(good)
	num, err := ParseCurrent(good)
	require.NoError(t, err)
	require.EqualValues(t, 3, num)

	rng := rand.New(rand.NewPCG(1, 1))
	for i := range good {
		bad := []byte(good)
		bad[i] ^= byte(1 + rng.IntN(255))
		_, err := ParseCurrent(string(bad))
		require.Error(t, err, "%q", bad)
		_, err = ParseCurrent(good[:i])
		require.Error(t, err)
	}
	newer := "siftkv format=2 manifest=x"
	_, err = ParseCurrent(sealedLine(newer))
	require.ErrorIs(t, err, ErrNewerFormat)
	_, err = ParseCurrent(strings.Replace(good, "format=1", "format=3", 1))
	require.NotErrorIs(t, err, ErrNewerFormat, "a bit of the version")

	mem := vfs.NewMem()
	require.NoError(t, mem.MkdirAll("db"))
	require.NoError(t, vfs.ReplaceFile(mem, "db/CURRENT", []byte("MANIFEST-000003\n")))
	_, err = Current(mem, "db")
	require.ErrorIs(t, err, base.ErrCorruption)
	require.ErrorContains(t, err, filepath.Join("db", "CURRENT"))
}
