package branch

import (
	"encoding/hex"
	"fmt"
	"math"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/internal/base"
	"github.com/siftkv/siftkv/internal/golden"
	"github.com/siftkv/siftkv/internal/hostile"
	"github.com/siftkv/siftkv/internal/manifest"
	"github.com/siftkv/siftkv/internal/remote/filelist"
	"github.com/siftkv/siftkv/internal/remote/locallog"
)

const savedKey = "checkpoint/main/nightly@0123456789abcdef"

func sampleList(t testing.TB) *filelist.List {
	t.Helper()
	line := "siftkv format=1 manifest=MANIFEST-000007"
	sum := base.Checksum(0, 0, []byte(line))
	main := filelist.WriterID{Epoch: 1, Nonce: 0x0123456789abcdef}
	branch := filelist.WriterID{Prefix: filelist.NewBranchPrefix("a.Branch", 1), Epoch: 2, Nonce: 1}
	last := filelist.WriterID{Epoch: math.MaxUint64, Nonce: math.MaxUint64}
	const table = manifest.FileTable
	return &filelist.List{
		Current:  fmt.Sprintf("%s crc=%08x\n", line, sum),
		Manifest: []byte("a manifest"), LogStart: 300, Logs: []uint64{8, 9, 12},
		Files: map[uint64]filelist.File{3: {WriterID: main, Size: 1000, Kind: table},
			4: {WriterID: branch, Kind: table}, 5: {WriterID: main, Size: 1, Kind: table},
			math.MaxUint64: {WriterID: last, Size: math.MaxInt64, Kind: table}},
		Location: locallog.Location{ID: 1 << 63, Epoch: 5, Place: "host:/store", Logs: []uint64{9, 12},
			Ended: []locallog.EndedLog{{ID: 7, Epoch: 3}, {ID: 1 << 62, Epoch: 4}}},
	}
}

func sampleSnapshot(t testing.TB) (*Snapshot, Header) {
	t.Helper()
	s := &Snapshot{List: sampleList(t), ManifestNum: 7, logs: []filelist.Log{{Number: 8, Data: []byte("eight")},
		{Number: 12,
			Data: []byte("twelve")}}}
	delete(s.List.Files, math.MaxUint64)
	s.List.LogStart, s.List.Location = 0, locallog.Location{}
	return s, Header{Store: 0x1122334455667788, Number: 0x0123456789abcdef, branch: 5,
		created: time.UnixMicro(1700000000000000)}
}

func TestGoldenSnapshotsAreDecodedAsEncoded(t *testing.T) {
	s, h := sampleSnapshot(t)
	b := s.Encode(savedKey, h)
	got, head, err := decodeSnapshot(b, savedKey)
	require.NoError(t, err)
	require.Equal(t, s, got)
	require.EqualValues(t, 1000+1+len("eight")+len("twelve"), head.size)
	require.Equal(t, []any{h.Store, h.Number, h.branch, h.created}, []any{head.Store, head.Number, head.branch,
		head.created})
	list, err := decodeList(b[:head.listEnd()], savedKey, head)
	require.NoError(t, err)
	require.Equal(t, s.List, list.List)
	golden.File(t, filepath.Join("testdata", "saved.golden"), hex.Dump(b))
}

func TestSnapshotsThatAreRefused(t *testing.T) {
	s, h := sampleSnapshot(t)
	b := s.Encode(savedKey, h)
	for at := range b {
		b[at] ^= 4
		_, _, err := decodeSnapshot(b, savedKey)
		require.ErrorIs(t, err, base.ErrCorruption, at)
		b[at] ^= 4
	}
	for n := range b {
		_, _, err := decodeSnapshot(b[:n], savedKey)
		require.ErrorIs(t, err, base.ErrCorruption, n)
	}
	_, _, err := decodeSnapshot(b, savedKey+"0")
	require.ErrorIs(t, err, base.ErrCorruption)
	require.ErrorContains(t, err, "renamed or copied")
}

// savedBound is what decoding may allocate: that of a list of files, and a struct for each log of 32 bytes.
var savedBound = hostile.Bound{PerByte: 100, Fixed: 16 << 10}

func TestHostileSnapshots(t *testing.T) {
	s, h := sampleSnapshot(t)
	for mutant := range hostile.Mutants(s.Encode(savedKey, h), 2000) {
		savedBound.Require(t, len(mutant), func() { _, _, _ = decodeSnapshot(mutant, savedKey) })
	}
	b := branch{state: branchThere, prefix: filelist.NewBranchPrefix("b", 9), parent: "a", from: "c"}
	for mutant := range hostile.Mutants(b.encode(), 2000) {
		savedBound.Require(t, len(mutant), func() { _, _ = decodeBranch(mutant, "key") })
	}
}

func FuzzSnapshot(f *testing.F) {
	s, h := sampleSnapshot(f)
	f.Add(s.Encode(savedKey, h))
	f.Fuzz(func(t *testing.T, b []byte) {
		savedBound.Require(t, len(b), func() {
			s, h, err := decodeSnapshot(b, savedKey)
			if err != nil {
				return
			}
			again, _, err := decodeSnapshot(s.Encode(savedKey, h), savedKey)
			require.NoError(t, err)
			require.Equal(t, s, again)
		})
	})
}

func TestGoldenFatesOfBranchesAreDecodedAsEncoded(t *testing.T) {
	b := branch{state: branchDropped, prefix: filelist.NewBranchPrefix("b", 9),
		created: time.UnixMicro(1700000000000000), parent: "a",
		from: "c"}
	got, err := decodeBranch(b.encode(), "key")
	require.NoError(t, err)
	require.Equal(t, b, got)
	golden.File(t, filepath.Join("testdata", "branch.golden"), hex.Dump(b.encode()))
	newer := b.encode()
	newer[0]++
	_, err = decodeBranch(newer, "key")
	require.ErrorIs(t, err, manifest.ErrNewerFormat)
	for n := range b.encode() {
		_, err := decodeBranch(b.encode()[:n], "key")
		require.ErrorIs(t, err, base.ErrCorruption, n)
	}
}

func FuzzBranch(f *testing.F) {
	b := branch{state: branchThere, prefix: filelist.NewBranchPrefix("b", 9), parent: "a", from: "c"}
	f.Add(b.encode())
	f.Fuzz(func(t *testing.T, b []byte) {
		got, err := decodeBranch(b, "key")
		if err != nil {
			return
		}
		again, err := decodeBranch(got.encode(), "key")
		require.NoError(t, err)
		require.Equal(t, got, again)
	})
}

func TestKeysOfCheckpoints(t *testing.T) {
	for _, k := range []checkpointKey{{"", "nightly", 1, false}, {filelist.NewBranchPrefix("b", 2), "c", 3, true},
		{filelist.NewBranchPrefix("b", 2), "", math.MaxUint64, false}} {
		key := stateKey(k.prefix, k.Name, k.Number)
		if k.Confirmed {
			key += confirmedSuffix
		}
		got, ok := parseCheckpoint(key)
		require.True(t, ok, key)
		require.Equal(t, k, got)
	}
	for _, key := range []string{"", "checkpoint/main/c", "checkpoint/other/c@0123456789abcdef", "checkpoint/main/c@1",
		"checkpoint/main/a/c@0123456789abcdef", "checkpoint/main/c@0123456789abcdef-no", "main/c@0123456789abcdef",
		"checkpoint/main/c@0123456789ABCDEF", "checkpoint/main/c@d@0123456789abcdef"} {
		_, ok := parseCheckpoint(key)
		require.False(t, ok, key)
	}
}
