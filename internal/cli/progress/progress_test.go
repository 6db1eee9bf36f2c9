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

// A bar whose size is not known shows the time that passes, until its phase or the reporter ends it.
func TestABarWithoutASizeIsDrawnAgain(t *testing.T) {
	in, out, err := os.Pipe()
	require.NoError(t, err)
	r := &Reporter{w: out, bar: true}
	r.Start("settle siftkv", 0, "")
	text := make([]byte, 0, 1<<10)
	for bytes.Count(text, []byte("settle siftkv")) < 3 {
		n, err := in.Read(text[len(text):cap(text)])
		require.NoError(t, err)
		text = text[:len(text)+n]
	}
	r.Stop()
	r.Stop()
	require.NoError(t, out.Close())
	rest, err := io.ReadAll(in)
	require.NoError(t, err)
	require.True(t, bytes.HasSuffix(rest, []byte(clearLine)), "%q", rest)
	require.Equal(t, 1, bytes.Count(rest, []byte(clearLine))-bytes.Count(rest, []byte("settle")))
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
