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
	text := string(sample.sealed())
	golden.File(t, filepath.Join("testdata", "slot.golden"), text)
	got, err := parseRecord(text, sample.Name)
	require.NoError(t, err)
	require.Equal(t, sample, got)
}

func TestHostileRecords(t *testing.T) {
	for mutant := range hostile.Mutants(sample.sealed(), 1000) {
		hostile.Bound{Fixed: 8 << 10}.Require(t, len(mutant), func() {
			if r, err := parseRecord(string(mutant), sample.Name); err == nil {
				require.Equal(t, sample, r)
			}
		})
	}
	for _, line := range []string{"", "siftkv slot=a", "siftkv slot=b history=1 acked=2",
		"siftkv slot=a history=1 acked=02", "siftkv slot=a history=1 acked=2 more",
		"siftkv slot=a history=-1 acked=2", "siftkv slot=a history=1 acked=18446744073709551615"} {
		_, err := parseRecord(string(base.SealLine(line)), "a")
		require.Error(t, err, line)
	}
}

func FuzzRecord(f *testing.F) {
	f.Add(string((&record{Name: "a", History: 1, Acked: 2}).sealed()))
	f.Add("siftkv slot=a history=1 acked=2 crc=00000000\n")
	f.Fuzz(func(t *testing.T, text string) {
		if r, err := parseRecord(text, "a"); err == nil {
			require.Equal(t, text, string(r.sealed()))
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
