package progress

import (
	"bytes"
	"io"
	"os"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestPlainWritesOneLinePerPhase(t *testing.T) {
	for _, mode := range []string{"auto", "plain"} {
		var out bytes.Buffer
		r := New(&out, mode)
		p := r.Start("load siftkv", 100, "keys")
		p.Add(50)
		p.Add(50)
		require.Empty(t, out.String(), "nothing before the end")
		p.Done()
		require.Regexp(t, `^load siftkv +\d+\.\d s +\d+ keys/s\n$`, out.String())
		out.Reset()
		r.Start("settle", 0, "").Done()
		require.Regexp(t, `^settle +\d+\.\d s\n$`, out.String())
	}
}

func TestNoneIsSilent(t *testing.T) {
	var out bytes.Buffer
	p := New(&out, "none").Start("load", 10, "keys")
	p.Add(10)
	p.Done()
	require.Empty(t, out.String())
}

func TestAFileIsNotATerminal(t *testing.T) {
	f, err := os.Create(t.TempDir() + "/out")
	require.NoError(t, err)
	require.False(t, New(f, "auto").bar)
	require.NoError(t, f.Close())
}

func TestBarDrawsAndGoes(t *testing.T) {
	var out bytes.Buffer
	r := &Reporter{w: &out, bar: true}
	for _, total := range []int{100, 0} {
		p := r.Start("load siftkv", total, "keys")
		p.Add(100)
		p.Done()
		text, err := io.ReadAll(&out)
		require.NoError(t, err)
		require.Contains(t, string(text), "\r", "the line is drawn over")
		require.NotContains(t, string(text), "keys/s\n")
	}
}

func TestTerminals(t *testing.T) {
	require.False(t, IsTerminal(&bytes.Buffer{}))
	null, err := os.OpenFile(os.DevNull, os.O_WRONLY, 0)
	require.NoError(t, err)
	require.False(t, IsTerminal(null), "it is a device, and no terminal")
	require.NoError(t, null.Close())
	if terminal, err := os.OpenFile("/dev/ptmx", os.O_RDWR, 0); err == nil {
		require.True(t, IsTerminal(terminal))
		require.NoError(t, terminal.Close())
	}
}
