package changelog

import (
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/internal/base"
	"github.com/siftkv/siftkv/internal/golden"
	"github.com/siftkv/siftkv/internal/hostile"
	"github.com/siftkv/siftkv/internal/vfs"
)

var sample = record{Name: "search-index", History: 0xfeedfacecafe, Acked: 4711}

func TestGoldenRecord(t *testing.T) {
	text := string(base.SealLine(sample.line()))
	golden.File(t, filepath.Join("testdata", "slot.golden"), text)
	got, err := parseRecord(text)
	require.NoError(t, err)
	require.Equal(t, sample, got)
}

func TestHostileRecords(t *testing.T) {
	for mutant := range hostile.Mutants(base.SealLine(sample.line()), 1000) {
		hostile.Bound{Fixed: 8 << 10}.Require(t, len(mutant), func() {
			if r, err := parseRecord(string(mutant)); err == nil {
				require.Equal(t, sample, r)
			}
		})
	}
	for _, line := range []string{"", "siftkv slot=a", "siftkv slot=A history=1 acked=2",
		"siftkv slot=a history=1 acked=02", "siftkv slot=a history=1 acked=2 more",
		"siftkv slot=a history=-1 acked=2", "siftkv slot=a history=1 acked=18446744073709551615"} {
		_, err := parseRecord(string(base.SealLine(line)))
		require.Error(t, err, line)
	}
}

func FuzzRecord(f *testing.F) {
	f.Add(string(base.SealLine(sample.line())))
	f.Add("siftkv slot=a history=1 acked=2 crc=00000000\n")
	f.Fuzz(func(t *testing.T, text string) {
		if r, err := parseRecord(text); err == nil {
			require.Equal(t, text, string(base.SealLine(r.line())))
		}
	})
}

func TestARecordIsThatOfItsFile(t *testing.T) {
	fs := vfs.NewMem()
	require.NoError(t, fs.MkdirAll("db"))
	require.NoError(t, sample.write(fs, "db"))
	got, err := readRecord(fs, "db/SLOT-search-index")
	require.NoError(t, err)
	require.Equal(t, sample, got)
	require.NoError(t, fs.Rename("db/SLOT-search-index", "db/SLOT-other"))
	_, err = readRecord(fs, "db/SLOT-other")
	require.ErrorIs(t, err, base.ErrCorruption)
	require.NoError(t, removeRecord(fs, "db", "other"))
	require.NoError(t, removeRecord(fs, "db", "other"))
}
