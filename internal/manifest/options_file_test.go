package manifest

import (
	"bytes"
	"fmt"
	"io/fs"
	"strings"
	"testing"

	"github.com/siftkv/siftkv/internal/base"
	"github.com/siftkv/siftkv/internal/golden"
	"github.com/siftkv/siftkv/internal/hostile"
	"github.com/siftkv/siftkv/internal/vfs"
	"github.com/stretchr/testify/require"
)

var sampleOptions = StoredOptions{Format: 1, Release: "v1.2.3",
	Text: "# What the store was last opened with.\nMemtableSize = 64MiB\n# Filter = blocked:10\n"}

func TestGoldenOptionsFile(t *testing.T) {
	mem := vfs.NewMem()
	require.NoError(t, mem.MkdirAll("db"))
	_, err := Options(mem, "db")
	require.ErrorIs(t, err, fs.ErrNotExist)
	for _, o := range []StoredOptions{sampleOptions, {Release: "unknown"}, sampleOptions} {
		require.NoError(t, SetOptions(mem, "db", o))
		got, err := Options(mem, "db")
		require.NoError(t, err)
		require.Equal(t, o, got)
	}
	names, err := mem.List("db")
	require.NoError(t, err)
	require.Equal(t, []string{OptionsName}, names)
	text, err := vfs.ReadSmallFile(mem, "db/"+OptionsName, maxOptionsSize)
	require.NoError(t, err)
	golden.File(t, "testdata/options.golden", text)

	require.Error(t, SetOptions(mem, "db", StoredOptions{Release: "v1", Text: strings.Repeat("#\n", 40_000)}))
	got, err := Options(mem, "db")
	require.NoError(t, err)
	require.Equal(t, sampleOptions, got, "it is as before")
}

// A bit that is not as it was written is noticed, and so is an end that is missing.
func TestADamagedOptionsFileIsNoticed(t *testing.T) {
	mem := vfs.NewMem()
	require.NoError(t, mem.MkdirAll("db"))
	require.NoError(t, SetOptions(mem, "db", sampleOptions))
	good, err := vfs.ReadSmallFile(mem, "db/"+OptionsName, maxOptionsSize)
	require.NoError(t, err)
	damaged := func(data []byte) {
		require.NoError(t, vfs.ReplaceFile(mem, "db/"+OptionsName, data))
		_, err := Options(mem, "db")
		require.ErrorIs(t, err, base.ErrCorruption, "%q", data)
		require.NotErrorIs(t, err, ErrNewerFormat, "%q", data)
	}
	for i := range good {
		damaged(good[:i])
		for bit := range 8 {
			flipped := bytes.Clone(good)
			flipped[i] ^= 1 << bit
			damaged(flipped)
		}
	}
	damaged(append(good, '\n'))
	damaged([]byte("# siftkv options=2 format=1 release=v9\n"))
	newer := sealedOptions("# siftkv options=2 format=1 release=v9\n")
	require.NoError(t, vfs.ReplaceFile(mem, "db/"+OptionsName, []byte(newer)))
	_, err = Options(mem, "db")
	require.ErrorIs(t, err, ErrNewerFormat)
	require.ErrorContains(t, err, OptionsName)
}

// sealedOptions gives the text of an options file its last line.
func sealedOptions(text string) string {
	return fmt.Sprintf("%s%s%08x\n", text, optionsEnd, base.Checksum(0, 0, []byte(text)))
}

// optionsBound is for a file of which no more is read than it can have.
var optionsBound = hostile.Bound{Fixed: 1 << 20}

func requireOptionsBounded(tb testing.TB, text string) {
	tb.Helper()
	mem := vfs.NewMem()
	require.NoError(tb, mem.MkdirAll("db"))
	require.NoError(tb, vfs.ReplaceFile(mem, "db/"+OptionsName, []byte(text)))
	optionsBound.Require(tb, len(text), func() { _, _ = Options(mem, "db") })
}

func TestHostileOptions(t *testing.T) {
	text := fmt.Sprintf(optionsLine, 1, 1, "v1.2.3") + sampleOptions.Text
	for mutant := range hostile.Mutants([]byte(text), 500) {
		requireOptionsBounded(t, sealedOptions(string(mutant)))
	}
	requireOptionsBounded(t, strings.Repeat(text, 100_000))
	requireOptionsBounded(t, sealedOptions("# siftkv options=1 format=1 release="+strings.Repeat("9", 8<<20)))
}

func FuzzHostileOptions(f *testing.F) {
	f.Add(fmt.Sprintf(optionsLine, 1, 1, "v1.2.3") + sampleOptions.Text)
	f.Add("")
	f.Fuzz(func(t *testing.T, text string) {
		requireOptionsBounded(t, text)
		requireOptionsBounded(t, sealedOptions(text))
	})
}
