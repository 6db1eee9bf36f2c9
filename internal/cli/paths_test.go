package cli

import (
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// places are arguments that name something.
type places struct {
	Store Directory `arg:""`
	Files Files     `arg:"" optional:""`
	From  File
}

func TestAFileIsNoDirectoryAndADirectoryNoFile(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file, missing := filepath.Join(dir, "file"), filepath.Join(dir, "missing\xff")
	require.NoError(t, os.WriteFile(file, nil, 0o600))
	for _, c := range []struct {
		args  []string
		wrong bool
	}{
		{[]string{dir}, false}, {[]string{missing}, false}, {[]string{file}, true},
		{[]string{dir, file, missing}, false}, {[]string{dir, file, dir}, true},
		{[]string{dir, "--from", file}, false}, {[]string{dir, "--from=-"}, false},
		{[]string{dir, "--from", dir}, true},
	} {
		var got places
		p := &Program{Name: "sieve", Stdout: io.Discard, Stderr: io.Discard}
		_, err := p.Parse(t.Context(), append([]string{"sieve"}, c.args...), &got)
		if c.wrong {
			require.ErrorIs(t, err, ErrUsage, c.args)
			continue
		}
		require.NoError(t, err, c.args)
		require.Equal(t, Directory(c.args[0]), got.Store)
	}
}
