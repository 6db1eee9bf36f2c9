package manifest

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/internal/base"
	"github.com/siftkv/siftkv/internal/hostile"
	"github.com/siftkv/siftkv/internal/vfs"
)

// A table of an edit takes some 20 bytes encoded, and 380 decoded.
var editBound = hostile.Bound{PerByte: 96, Fixed: 16 << 10}

func requireEditBounded(tb testing.TB, b []byte) {
	tb.Helper()
	editBound.Require(tb, len(b), func() { _, _ = DecodeEdit(b) })
}

func TestHostileEdits(t *testing.T) {
	for _, e := range []*Edit{sampleEdit(), featuresEdit(), runsEdit(), blobsEdit()} {
		for mutant := range hostile.Mutants(e.Append(nil), 2000) {
			requireEditBounded(t, mutant)
		}
	}
	for tag := range byte(24) { // the smallest fields there can be, many times
		for _, size := range []int{0, 1, 2, 3, 15, 18} {
			field := append([]byte{tag, byte(size)}, make([]byte, size)...)
			requireEditBounded(t, bytes.Repeat(field, 2000))
		}
	}
}

func FuzzHostileEdit(f *testing.F) {
	f.Add(sampleEdit().Append(nil))
	f.Add(featuresEdit().Append(nil))
	f.Add(runsEdit().Append(nil))
	f.Add(blobsEdit().Append(nil))
	f.Fuzz(func(t *testing.T, b []byte) { requireEditBounded(t, b) })
}

// linesBound is for files of one line, of which no more is read than a line can have.
var linesBound = hostile.Bound{Fixed: 64 << 10}

// requireLineBounded reads text as each of the files of one line.
func requireLineBounded(tb testing.TB, text string) {
	tb.Helper()
	mem := vfs.NewMem()
	require.NoError(tb, mem.MkdirAll("db"))
	for _, name := range []string{"db/" + CurrentName, "db/" + RestoreName, "db/" + readerPrefix + "1-1"} {
		require.NoError(tb, vfs.ReplaceFile(mem, name, []byte(text)))
	}
	linesBound.Require(tb, len(text), func() {
		_, _ = Current(mem, "db")
		_, _ = Restore(mem, "db")
		_ = needs(mem, "db/"+readerPrefix+"1-1")
	})
}

func sealedLine(line string) string { return string(base.SealLine(line)) }

func TestHostileLines(t *testing.T) {
	lines := []string{
		"siftkv format=1 manifest=MANIFEST-000007",
		fmt.Sprintf(restoreLine, 1, 7, 2, 4096),
		"siftkv reader pid=4711 manifest=7 offset=1234",
	}
	requireLineBounded(t, sealedLine(lines[0]+strings.Repeat("\xd6", 3400)))
	for _, line := range lines {
		for mutant := range hostile.Mutants([]byte(line), 200) {
			requireLineBounded(t, sealedLine(string(mutant)))
		}
		requireLineBounded(t, sealedLine(line+strings.Repeat("9", 8<<20)))
		requireLineBounded(t, strings.Repeat(sealedLine(line), 100_000))
	}
}

func FuzzHostileLine(f *testing.F) {
	f.Add(fmt.Sprintf(restoreLine, 1, 7, 2, 4096))
	f.Add("siftkv format=1 manifest=MANIFEST-000007")
	f.Add("siftkv reader pid=4711 manifest=7 offset=1234")
	f.Fuzz(func(t *testing.T, line string) {
		requireLineBounded(t, line)
		requireLineBounded(t, sealedLine(line))
	})
}

// A manifest is a log of edits: the largest numbers that one can have.
func TestHostileNumbersOfAnEdit(t *testing.T) {
	for tag := range uint64(24) {
		for _, n := range []uint64{0, 1 << 31, 1 << 62, 1<<64 - 1} {
			number := binary.AppendUvarint(nil, n)
			for repeat := range 20 {
				value := bytes.Repeat(number, repeat)
				field := binary.AppendUvarint(binary.AppendUvarint(nil, tag), uint64(len(value)))
				requireEditBounded(t, append(field, value...))
			}
		}
	}
}
