package filelist

import (
	"bytes"
	"encoding/hex"
	"fmt"
	"maps"
	"math"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/internal/base"
	"github.com/siftkv/siftkv/internal/golden"
	"github.com/siftkv/siftkv/internal/hostile"
	"github.com/siftkv/siftkv/internal/manifest"
	"github.com/siftkv/siftkv/internal/remote/locallog"
	"github.com/siftkv/siftkv/objstore"
)

func sampleList(t testing.TB) *List {
	t.Helper()
	line := "siftkv format=1 manifest=MANIFEST-000007"
	sum := base.Checksum(0, 0, []byte(line))
	const table = manifest.FileTable
	main := WriterID{Epoch: 1, Nonce: 0x0123456789abcdef}
	branch := WriterID{Prefix: NewBranchPrefix("a.Branch", 1), Epoch: 2, Nonce: 1}
	last := WriterID{Epoch: math.MaxUint64, Nonce: math.MaxUint64}
	return &List{
		Current:  fmt.Sprintf("%s crc=%08x\n", line, sum),
		Manifest: []byte("a manifest"), LogStart: 300, Logs: []uint64{8, 9, 12},
		Files: map[uint64]File{3: {main, 1000, table}, 4: {branch, 0, table}, 5: {main, 1, table},
			math.MaxUint64: {last, math.MaxInt64, table}},
		Location: locallog.Location{ID: 1 << 63, Epoch: 5, Place: "host:/store", Logs: []uint64{9, 12},
			Ended: []locallog.EndedLog{{ID: 7, Epoch: 3}, {ID: 1 << 62, Epoch: 4}}},
	}
}

// blobList has blob files, before, between and after sorted files, and of an writer that has written nothing else.
func blobList(t testing.TB) *List {
	l := sampleList(t)
	const blob = manifest.FileBlob
	main := l.Files[3].WriterID
	other := WriterID{Epoch: 6, Nonce: 7}
	maps.Copy(l.Files, map[uint64]File{1: {main, 1 << 26, blob}, 6: {other, 88, blob}, 1 << 60: {main, 0, blob}})
	return l
}

// slotList has slots, and copies of logs between files of other kinds.
func slotList(t testing.TB) *List {
	l := blobList(t)
	main := l.Files[3].WriterID
	maps.Copy(l.Files, map[uint64]File{2: {main, 1 << 20, manifest.FileKept}, 1 << 61: {main, 5, manifest.FileKept}})
	l.SlotFiles = map[string]string{"index": "the line of a slot\n", "a-2": ""}
	return l
}

func TestGoldenFileListsAreDecodedAsEncoded(t *testing.T) {
	alone := blobList(t)
	maps.DeleteFunc(alone.Files, func(_ uint64, f File) bool { return f.Kind != manifest.FileBlob })
	onlySlots, onlyKept := sampleList(t), slotList(t)
	onlySlots.SlotFiles, onlyKept.SlotFiles = slotList(t).SlotFiles, nil
	for _, l := range []*List{sampleList(t), {Current: sampleList(t).Current, Files: map[uint64]File{}},
		blobList(t), alone, slotList(t), onlySlots, onlyKept} {
		got, num, err := Decode(l.Encode())
		require.NoError(t, err)
		require.EqualValues(t, 7, num)
		require.Equal(t, l.Encode(), got.Encode())
		require.Equal(t, l.Files, got.Files)
		require.Equal(t, l.Logs, got.Logs)
		require.Equal(t, l.Location, got.Location)
		require.Equal(t, l.SlotFiles, got.SlotFiles)
	}
	golden.File(t, filepath.Join("testdata", "list-slots.golden"), hex.Dump(slotList(t).Encode()))
	golden.File(t, filepath.Join("testdata", "list.golden"), hex.Dump(sampleList(t).Encode()))
	golden.File(t, filepath.Join("testdata", "list-blobs.golden"), hex.Dump(blobList(t).Encode()))
}

func TestAListOfANewerVersionIsNamedSo(t *testing.T) {
	for _, l := range []*List{sampleList(t), blobList(t), slotList(t)} {
		for _, version := range []byte{0, byte(newestVersion + 1)} {
			b := l.Encode()
			b[0] = version
			_, _, err := Decode(b)
			require.ErrorIs(t, err, manifest.ErrNewerFormat)
		}
	}
}

// Releases that know no blob files read version 1 only, and name another; those that know no slots, versions 1 and 2.
// Without blob files, and without slots, a list is what it was.
func TestListsHaveTheLowestVersionThatHasAllOfThem(t *testing.T) {
	for i, l := range []*List{sampleList(t), blobList(t), slotList(t)} {
		b := l.Encode()
		require.EqualValues(t, i+1, b[0])
		for other := byte(1); other <= byte(newestVersion); other++ {
			if b[0] = other; other != byte(i+1) {
				_, _, err := Decode(b)
				require.ErrorIs(t, err, ErrMalformed, "there is a list of files too few, or too many")
			}
		}
	}
}

func TestSlotsOfAListAreInOrderAndHaveNames(t *testing.T) {
	for _, bad := range []map[string]string{{"": "x"}, {"A": "x"}, {"a/b": "x"}} {
		l := sampleList(t)
		l.SlotFiles = bad
		_, _, err := Decode(l.Encode())
		require.ErrorIs(t, err, ErrMalformed)
	}
	l := sampleList(t)
	l.SlotFiles = map[string]string{"a": "", "b": ""}
	b := l.Encode()
	for _, names := range []string{"aa", "ba"} {
		b[len(b)-5], b[len(b)-2] = names[0], names[1]
		_, _, err := Decode(b)
		require.ErrorIs(t, err, ErrMalformed, names)
	}
}

func TestNoNumberIsOfASortedFileAndABlobFile(t *testing.T) {
	l := &List{Current: sampleList(t).Current, Files: map[uint64]File{3: {Size: 1, Kind: manifest.FileTable},
		4: {Size: 1, Kind: manifest.FileBlob}}}
	b := l.Encode()
	at := bytes.LastIndex(b, []byte{1, 4, 0, 1}) // one blob file: the number 4, of the first author, one byte
	require.Positive(t, at)
	b[at+1] = 3
	_, _, err := Decode(b)
	require.ErrorIs(t, err, ErrMalformed)
}

// listBound is what decoding may allocate: an entry of a map for every three bytes.
var listBound = hostile.Bound{PerByte: 80, Fixed: 8 << 10}

func TestHostileFileLists(t *testing.T) {
	for _, l := range []*List{sampleList(t), blobList(t), slotList(t)} {
		for mutant := range hostile.Mutants(l.Encode(), 2000) {
			listBound.Require(t, len(mutant), func() {
				if l, _, err := Decode(mutant); err == nil {
					_ = l.Encode()
				}
			})
		}
	}
}

func FuzzFileList(f *testing.F) {
	f.Add(sampleList(f).Encode())
	f.Add(blobList(f).Encode())
	f.Add(slotList(f).Encode())
	f.Fuzz(func(t *testing.T, b []byte) {
		listBound.Require(t, len(b), func() {
			l, _, err := Decode(b)
			if err != nil {
				return
			}
			again, _, err := Decode(l.Encode())
			require.NoError(t, err)
			require.Equal(t, l, again)
		})
	})
}

func TestNamesOfFiles(t *testing.T) {
	branch := NewBranchPrefix("b", 7)
	for _, o := range []WriterID{{Epoch: 3, Nonce: 0x9f2c11aa}, {Prefix: branch, Epoch: 1, Nonce: math.MaxUint64}} {
		for _, kind := range kinds {
			f := File{WriterID: o, Kind: kind}
			num, got, ok := o.Prefix.ParseFile(f.Key(12))
			require.True(t, ok)
			require.EqualValues(t, 12, num)
			require.Equal(t, f, got)
		}
	}
	main, other := WriterID{Epoch: 3, Nonce: 0x9f2c11aa}, WriterID{branch, 1, 1}
	for i, ending := range []string{"sst", "blob", "kept"} {
		require.Equal(t, "sst/000012-3-000000009f2c11aa."+ending, File{WriterID: main, Kind: kinds[i]}.Key(12))
	}
	ofBranch := File{WriterID: other, Kind: manifest.FileTable}.Key(12)
	require.Equal(t, "data/b-0000000000000007/sst/000012-1-0000000000000001.sst", ofBranch)
	_, _, ok := BranchPrefix("").ParseFile(ofBranch)
	require.False(t, ok)
	for _, name := range []string{"", "000012-3.sst", "12-3-0000000000000001.sst", "000012-3-0000000000000001.sst2",
		"000012-03-0000000000000001.sst", "000012-3-1.sst", "000012--3-0000000000000001.sst",
		"000012-3-000000000000000A.sst", "000012-3-0000000000000001", "000012-3-0000000000000001.sst.blob",
		"000012-3-0000000000000001.blob.sst", "12-3-0000000000000001.blob"} {
		_, _, ok := BranchPrefix("").ParseFile("sst/" + name)
		require.False(t, ok, name)
	}
}

func TestSites(t *testing.T) {
	for _, p := range []BranchPrefix{"", NewBranchPrefix("a", 0), NewBranchPrefix("x-0000000000000001",
		math.MaxUint64)} {
		require.True(t, p.Valid(), p)
	}
	require.Equal(t, "x-0000000000000001", NewBranchPrefix("x-0000000000000001", 5).Branch())
	for _, p := range []BranchPrefix{"main", "-0000000000000001", "a-000000000000001", "a-000000000000000A",
		"a/b-0000000000000001"} {
		require.False(t, p.Valid(), p)
	}
}

func TestNamesOfBranchesAndCheckpoints(t *testing.T) {
	for _, name := range []string{"a", "A.b_c-9", "2026-11-23", strings.Repeat("x", maxName)} {
		require.NoError(t, CheckName(name), name)
		for _, key := range []string{"branch/" + name, NewBranchPrefix(name, 1).Checkpoints() + name +
			"@0123456789abcdef"} {
			require.NoError(t, objstore.CheckKey(key))
		}
	}
	for _, name := range []string{"", ".", "a.", "-a", "_a", "a/b", "a b", "a@b", "ä", "a\x00",
		strings.Repeat("x", maxName+1)} {
		require.ErrorIs(t, CheckName(name), ErrInvalidName, name)
	}
}
