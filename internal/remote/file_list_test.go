package remote

import (
	"encoding/hex"
	"fmt"
	"math"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/internal/base"
	"github.com/siftkv/siftkv/internal/golden"
	"github.com/siftkv/siftkv/internal/hostile"
)

func sampleList(t testing.TB) *fileList {
	t.Helper()
	line := "siftkv format=1 manifest=MANIFEST-000007"
	sum := base.Checksum(0, 0, []byte(line))
	return &fileList{
		current:  fmt.Sprintf("%s crc=%08x\n", line, sum),
		manifest: []byte("a manifest"), logStart: 300, logs: []uint64{8, 9, 12},
		tables: map[uint64]table{3: {epoch: 1, size: 1000}, 4: {epoch: 2, size: 0},
			math.MaxUint64: {math.MaxUint64, math.MaxInt64}},
		home: logHome{id: 1 << 63, epoch: 5, place: "host:/store", logs: []uint64{9, 12}},
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
	num, epoch, ok := parseTableObject(tableObject(12, 3))
	require.True(t, ok)
	require.Equal(t, []uint64{12, 3}, []uint64{num, epoch})
	for _, name := range []string{"", "12-3.sst", "000012-3.sst2", "000012-03.sst", "000012.sst", "x000012-3.sst",
		"000012--3.sst"} {
		_, _, ok := parseTableObject(name)
		require.False(t, ok, name)
	}
}
