package keys

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/cmd/kvbench/internal/bench"
)

func TestANameIsThatOfTheContent(t *testing.T) {
	at := func(name, text string) string {
		path := filepath.Join(t.TempDir(), name)
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
		return path
	}
	name := func(path string) string {
		n, err := Name(path)
		require.NoError(t, err)
		return n
	}
	// The digits are those of: printf 'abc' | sha256sum
	require.Equal(t, "words.txt@ba7816bf8f01", name(at("words.txt", "abc")))
	require.Equal(t, "my-w-rds-.gz@ba7816bf8f01", name(at("my wörds#.gz", "abc")))
	require.Equal(t, name(at("1000", "abc")), name(at("1000", "abc")), "wherever it lies")
	require.False(t, IsCount(name(at("1000", "abc"))))
	for text, want := range map[string]int{"1000": 1000, "1_000": 1000, "010": 10, "1_": -1, "0x10": -1, "1e3": -1} {
		n, ok := Count(text)
		require.Equal(t, want >= 0, ok, text)
		if ok {
			require.Equal(t, want, n)
		}
	}
	require.NotEqual(t, name(at("a", "abc")), name(at("a", "abd")))
	require.NotEqual(t, name(at("a", "abc")), name(at("b", "abc")))
	for _, path := range []string{filepath.Join(t.TempDir(), "nothing"), t.TempDir()} {
		_, err := Name(path)
		require.ErrorIs(t, err, bench.ErrUsage)
	}
}

func TestAFileThatChangedIsNotTakenForTheOldOne(t *testing.T) {
	path := write(t, words(50, "\n"))
	name, err := Name(path)
	require.NoError(t, err)
	_, err = Open(Request{Keys: path, Name: name, MaxLen: 100, Seed: 1})
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(path, []byte(words(51, "\n")), 0o600))
	_, err = Open(Request{Keys: path, Name: name, MaxLen: 100, Seed: 1})
	require.ErrorIs(t, err, errChanged)
	require.ErrorContains(t, err, name)
}
