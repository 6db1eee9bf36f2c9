package remote

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

func sampleList(t testing.TB) *fileList {
	t.Helper()
	line := "siftkv format=1 manifest=MANIFEST-000007"
	sum := base.Checksum(0, 0, []byte(line))
	main := author{epoch: 1, nonce: 0x0123456789abcdef}
	branch := author{site: newSite("a.Branch", 1), epoch: 2, nonce: 1}
	last := author{epoch: math.MaxUint64, nonce: math.MaxUint64}
	return &fileList{
		current:  fmt.Sprintf("%s crc=%08x\n", line, sum),
		manifest: []byte("a manifest"), logStart: 300, logs: []uint64{8, 9, 12},
		files: map[uint64]file{3: {main, 1000, false}, 4: {branch, 0, false}, 5: {main, 1, false},
			math.MaxUint64: {last, math.MaxInt64, false}},
		home: locallog.Location{ID: 1 << 63, Epoch: 5, Place: "host:/store", Logs: []uint64{9, 12},
			Ended: []locallog.EndedLog{{ID: 7, Epoch: 3}, {ID: 1 << 62, Epoch: 4}}},
	}
}

// blobList has blob files, before, between and after sorted files, and of an author who has written nothing else.
func blobList(t testing.TB) *fileList {
	l := sampleList(t)
	main := l.files[3].author
	other := author{epoch: 6, nonce: 7}
	maps.Copy(l.files, map[uint64]file{1: {main, 1 << 26, true}, 6: {other, 88, true}, 1 << 60: {main, 0, true}})
	return l
}

func TestGoldenFileListsAreDecodedAsEncoded(t *testing.T) {
	alone := blobList(t)
	maps.DeleteFunc(alone.files, func(_ uint64, f file) bool { return !f.blob })
	for _, l := range []*fileList{sampleList(t), {current: sampleList(t).current, files: map[uint64]file{}},
		blobList(t), alone} {
		got, num, err := decodeFileList(l.encode())
		require.NoError(t, err)
		require.EqualValues(t, 7, num)
		require.Equal(t, l.encode(), got.encode())
		require.Equal(t, l.files, got.files)
		require.Equal(t, l.logs, got.logs)
		require.Equal(t, l.home, got.home)
	}
	golden.File(t, filepath.Join("testdata", "list.golden"), hex.Dump(sampleList(t).encode()))
	golden.File(t, filepath.Join("testdata", "list-blobs.golden"), hex.Dump(blobList(t).encode()))
}

func TestAListOfANewerVersionIsNamedSo(t *testing.T) {
	for _, l := range []*fileList{sampleList(t), blobList(t)} {
		b := l.encode()
		b[0] = listVersionBlob + 1
		_, _, err := decodeFileList(b)
		require.ErrorIs(t, err, manifest.ErrNewerFormat)
	}
}

// Releases that know no blob files read version 1 only, and name another. Without blob files a list is what it was.
func TestOnlyListsWithBlobFilesHaveTheirVersion(t *testing.T) {
	require.EqualValues(t, 1, sampleList(t).encode()[0])
	require.EqualValues(t, 2, blobList(t).encode()[0])
	for _, b := range [][]byte{sampleList(t).encode(), blobList(t).encode()} {
		b[0] ^= listVersion ^ listVersionBlob
		_, _, err := decodeFileList(b)
		require.ErrorIs(t, err, errList, "there is one list of blob files too few, or too many")
	}
}

func TestNoNumberIsOfASortedFileAndABlobFile(t *testing.T) {
	l := &fileList{current: sampleList(t).current, files: map[uint64]file{3: {size: 1}, 4: {size: 1, blob: true}}}
	b := l.encode()
	at := bytes.LastIndex(b, []byte{1, 4, 0, 1}) // one blob file: the number 4, of the first author, one byte
	require.Positive(t, at)
	b[at+1] = 3
	_, _, err := decodeFileList(b)
	require.ErrorIs(t, err, errList)
}

// listBound is what decoding may allocate: an entry of a map for every three bytes.
var listBound = hostile.Bound{PerByte: 80, Fixed: 8 << 10}

func TestHostileFileLists(t *testing.T) {
	for _, l := range []*fileList{sampleList(t), blobList(t)} {
		for mutant := range hostile.Mutants(l.encode(), 2000) {
			listBound.Require(t, len(mutant), func() {
				if l, _, err := decodeFileList(mutant); err == nil {
					_ = l.encode()
				}
			})
		}
	}
}

func FuzzFileList(f *testing.F) {
	f.Add(sampleList(f).encode())
	f.Add(blobList(f).encode())
	f.Fuzz(func(t *testing.T, b []byte) {
		listBound.Require(t, len(b), func() {
			l, _, err := decodeFileList(b)
			if err != nil {
				return
			}
			again, _, err := decodeFileList(l.encode())
			require.NoError(t, err)
			require.Equal(t, l, again)
		})
	})
}

func TestNamesOfFiles(t *testing.T) {
	branch := newSite("b", 7)
	for _, o := range []author{{epoch: 3, nonce: 0x9f2c11aa}, {site: branch, epoch: 1, nonce: math.MaxUint64}} {
		for _, blob := range []bool{false, true} {
			f := file{author: o, blob: blob}
			num, got, ok := o.site.parseFile(f.object(12))
			require.True(t, ok)
			require.EqualValues(t, 12, num)
			require.Equal(t, f, got)
		}
	}
	main, other := author{epoch: 3, nonce: 0x9f2c11aa}, author{branch, 1, 1}
	require.Equal(t, "sst/000012-3-000000009f2c11aa.sst", file{author: main}.object(12))
	require.Equal(t, "sst/000012-3-000000009f2c11aa.blob", file{author: main, blob: true}.object(12))
	require.Equal(t, "data/b-0000000000000007/sst/000012-1-0000000000000001.sst", file{author: other}.object(12))
	_, _, ok := site("").parseFile(file{author: other}.object(12))
	require.False(t, ok)
	for _, name := range []string{"", "000012-3.sst", "12-3-0000000000000001.sst", "000012-3-0000000000000001.sst2",
		"000012-03-0000000000000001.sst", "000012-3-1.sst", "000012--3-0000000000000001.sst",
		"000012-3-000000000000000A.sst", "000012-3-0000000000000001", "000012-3-0000000000000001.sst.blob",
		"000012-3-0000000000000001.blob.sst", "12-3-0000000000000001.blob"} {
		_, _, ok := site("").parseFile("sst/" + name)
		require.False(t, ok, name)
	}
}

func TestSites(t *testing.T) {
	for _, p := range []site{"", newSite("a", 0), newSite("x-0000000000000001", math.MaxUint64)} {
		require.True(t, p.check(), p)
	}
	require.Equal(t, "x-0000000000000001", newSite("x-0000000000000001", 5).branch())
	for _, p := range []site{"main", "-0000000000000001", "a-000000000000001", "a-000000000000000A",
		"a/b-0000000000000001"} {
		require.False(t, p.check(), p)
	}
}

func TestNamesOfBranchesAndCheckpoints(t *testing.T) {
	for _, name := range []string{"a", "A.b_c-9", "2026-11-23", strings.Repeat("x", maxName)} {
		require.NoError(t, checkName(name), name)
		for _, key := range []string{"branch/" + name, newSite(name, 1).checkpoints() + name + "@0123456789abcdef"} {
			require.NoError(t, objstore.CheckKey(key))
		}
	}
	for _, name := range []string{"", ".", "a.", "-a", "_a", "a/b", "a b", "a@b", "ä", "a\x00",
		strings.Repeat("x", maxName+1)} {
		require.ErrorIs(t, checkName(name), ErrInvalidName, name)
	}
}
