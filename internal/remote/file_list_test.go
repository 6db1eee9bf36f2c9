package remote

import (
	"encoding/hex"
	"fmt"
	"math"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/internal/base"
	"github.com/siftkv/siftkv/internal/golden"
	"github.com/siftkv/siftkv/internal/hostile"
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
		tables: map[uint64]table{3: {main, 1000}, 4: {branch, 0}, 5: {main, 1}, math.MaxUint64: {last, math.MaxInt64}},
		home: logHome{id: 1 << 63, epoch: 5, place: "host:/store", logs: []uint64{9, 12},
			ended: []endedLog{{7, 3}, {1 << 62, 4}}},
	}
}

func TestFileListsAreDecodedAsEncoded(t *testing.T) {
	for _, l := range []*fileList{sampleList(t), {current: sampleList(t).current, tables: map[uint64]table{}}} {
		got, num, err := decodeFileList(l.encode())
		require.NoError(t, err)
		require.EqualValues(t, 7, num)
		require.Equal(t, l.encode(), got.encode())
		require.Equal(t, l.tables, got.tables)
		require.Equal(t, l.logs, got.logs)
		require.Equal(t, l.home, got.home)
	}
	golden.File(t, filepath.Join("testdata", "list.golden"), hex.Dump(sampleList(t).encode()))
}

func TestAListOfANewerVersionIsNamedSo(t *testing.T) {
	b := sampleList(t).encode()
	b[0] = listVersion + 1
	_, _, err := decodeFileList(b)
	require.ErrorIs(t, err, ErrNewerFormat)
}

// listBound is what decoding may allocate: an entry of a map for every three bytes.
var listBound = hostile.Bound{PerByte: 80, Fixed: 8 << 10}

func TestHostileFileLists(t *testing.T) {
	for mutant := range hostile.Mutants(sampleList(t).encode(), 2000) {
		listBound.Require(t, len(mutant), func() {
			if l, _, err := decodeFileList(mutant); err == nil {
				_ = l.encode()
			}
		})
	}
}

func FuzzFileList(f *testing.F) {
	f.Add(sampleList(f).encode())
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

func TestNamesOfSortedFiles(t *testing.T) {
	branch := newSite("b", 7)
	for _, o := range []author{{epoch: 3, nonce: 0x9f2c11aa}, {site: branch, epoch: 1, nonce: math.MaxUint64}} {
		num, got, ok := o.site.parseTable(o.object(12))
		require.True(t, ok)
		require.EqualValues(t, 12, num)
		require.Equal(t, o, got)
	}
	require.Equal(t, "sst/000012-3-000000009f2c11aa.sst", author{epoch: 3, nonce: 0x9f2c11aa}.object(12))
	require.Equal(t, "data/b-0000000000000007/sst/000012-1-0000000000000001.sst", author{branch, 1, 1}.object(12))
	_, _, ok := site("").parseTable(author{branch, 1, 1}.object(12))
	require.False(t, ok)
	for _, name := range []string{"", "000012-3.sst", "12-3-0000000000000001.sst", "000012-3-0000000000000001.sst2",
		"000012-03-0000000000000001.sst", "000012-3-1.sst", "000012--3-0000000000000001.sst",
		"000012-3-000000000000000A.sst"} {
		_, _, ok := site("").parseTable("sst/" + name)
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
