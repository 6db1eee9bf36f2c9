package crashfs

import (
	"bytes"
	"io/fs"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/internal/vfs"
)

func always() error { return nil }

// A disk and what is done to it.
type machine struct {
	t *testing.T
	*FS
}

func newMachine(t *testing.T) machine {
	t.Helper()
	m := machine{t, New(NewDisk(), always)}
	require.NoError(t, m.MkdirAll("a/b"))
	require.NoError(t, m.SyncDir("/"))
	require.NoError(t, m.SyncDir("a"))
	return m
}

func (m machine) write(name, text string, sync bool) {
	m.t.Helper()
	f, err := m.Create(name)
	require.NoError(m.t, err)
	_, err = f.Write([]byte(text))
	require.NoError(m.t, err)
	if sync {
		require.NoError(m.t, f.Sync())
	}
	require.NoError(m.t, f.Close())
}

// after returns the contents of a file after a power cut, or "gone".
func (m machine) after(percent int, seed uint64, name string) string {
	m.t.Helper()
	return read(m.t, m.Disk.CutTo(percent, rand.New(rand.NewPCG(seed, 1))), name)
}

func read(t *testing.T, d *Disk, name string) string {
	t.Helper()
	f, err := New(d, always).Open(name)
	if err != nil {
		require.ErrorIs(t, err, fs.ErrNotExist)
		return "gone"
	}
	size, err := f.Size()
	require.NoError(t, err)
	data := make([]byte, size)
	if size > 0 {
		_, err = f.ReadAt(data, 0)
		require.NoError(t, err)
	}
	return string(data)
}

// all returns everything that cuts of a share leave of a file.
func (m machine) all(name string) map[string]bool {
	m.t.Helper()
	seen := map[string]bool{}
	for seed := range uint64(200) {
		seen[m.after(50, seed, name)] = true
	}
	return seen
}

func set(texts ...string) map[string]bool {
	m := map[string]bool{}
	for _, text := range texts {
		m[text] = true
	}
	return m
}

func TestNamesNeedASyncOfTheirDirectory(t *testing.T) {
	m := newMachine(t)
	m.write("a/b/f", "text", true)
	require.Equal(t, "gone", m.after(0, 1, "a/b/f"))
	require.Equal(t, "text", m.after(100, 1, "a/b/f"))
	require.Equal(t, set("gone", "text"), m.all("a/b/f"))
	require.NoError(t, m.SyncDir("a/b"))
	require.Equal(t, set("text"), m.all("a/b/f"))
}

func TestBytesNeedASyncOfTheirFile(t *testing.T) {
	m := newMachine(t)
	m.write("a/b/f", "text", false)
	require.NoError(t, m.SyncDir("a/b"))
	require.Equal(t, set("", "text"), m.all("a/b/f"))
	require.NoError(t, m.SyncFile("a/b/f"))
	require.Equal(t, set("text"), m.all("a/b/f"))
	m.write("a/b/f", "new", false)
	require.Equal(t, "text", m.after(0, 1, "a/b/f"))
	require.Equal(t, "new", m.after(100, 1, "a/b/f"))
}

func TestBlocksSurviveOneByOne(t *testing.T) {
	m := newMachine(t)
	full, none := string(bytes.Repeat([]byte{1}, blockSize)), string(make([]byte, blockSize))
	m.write("a/b/f", full+full, false)
	require.NoError(t, m.SyncDir("a/b"))
	require.Equal(t, set("", full, none+full, full+full), m.all("a/b/f"))
}

func TestARenameKeepsOneOfItsNames(t *testing.T) {
	m := newMachine(t)
	m.write("a/b/old", "text", true)
	m.write("a/b/new", "before", true)
	require.NoError(t, m.SyncDir("a/b"))
	require.NoError(t, m.Rename("a/b/old", "a/b/new"))
	require.Equal(t, "text", read(t, m.Disk, "a/b/new"))
	require.Equal(t, set("before", "text"), m.all("a/b/new"))
	for seed := range uint64(200) {
		disk := m.Disk.CutTo(50, rand.New(rand.NewPCG(seed, 1)))
		if read(t, disk, "a/b/old") == "gone" {
			require.Equal(t, "text", read(t, disk, "a/b/new"))
		}
	}
	require.NoError(t, m.SyncDir("a/b"))
	require.Equal(t, set("gone"), m.all("a/b/old"))
}

func TestWhatIsRemovedMayComeBack(t *testing.T) {
	m := newMachine(t)
	m.write("a/b/f", "text", true)
	require.NoError(t, m.SyncDir("a/b"))
	f, err := m.Open("a/b/f")
	require.NoError(t, err)
	require.NoError(t, m.Remove("a/b/f"))
	require.Equal(t, "text", m.after(0, 1, "a/b/f"))
	require.Equal(t, "gone", m.after(100, 1, "a/b/f"))
	size, err := f.Size()
	require.NoError(t, err, "what is open stays readable")
	require.EqualValues(t, 4, size)
	require.NoError(t, m.SyncDir("a/b"))
	require.Equal(t, set("gone"), m.all("a/b/f"))
	require.ErrorIs(t, m.Remove("a/b/f"), fs.ErrNotExist)
	require.Error(t, m.Remove("a"), "it is not empty")
}

func TestLinksShareTheirBytes(t *testing.T) {
	m := newMachine(t)
	m.write("a/b/f", "text", false)
	require.NoError(t, m.Link("a/b/f", "a/g"))
	require.ErrorIs(t, m.Link("a/b/f", "a/g"), fs.ErrExist)
	require.NoError(t, m.SyncFile("a/g"))
	require.NoError(t, m.SyncDir("a/b"))
	require.Equal(t, set("text"), m.all("a/b/f"))
	require.Equal(t, set("gone", "text"), m.all("a/g"))
	after := New(m.Disk.CutTo(100, rand.New(rand.NewPCG(1, 1))), always)
	require.NoError(t, after.Disk.Edit("a/g", func(data []byte) { data[0] = 'n' }))
	require.Equal(t, "next", read(t, after.Disk, "a/b/f"))
}

func TestFailedCallsChangeNothingButHalfAWrite(t *testing.T) {
	fail := false
	m := machine{t, New(NewDisk(), func() error {
		if fail {
			return fs.ErrInvalid
		}
		return nil
	})}
	w, err := m.Create("f")
	require.NoError(t, err)
	fail = true
	n, err := w.Write([]byte("text"))
	require.ErrorIs(t, err, fs.ErrInvalid)
	require.Equal(t, 2, n)
	for _, err := range []error{w.Sync(), m.Remove("f"), m.Rename("f", "g"), m.Link("f", "g"), m.SyncDir("."),
		m.SyncFile("f"), m.MkdirAll("d")} {
		require.ErrorIs(t, err, fs.ErrInvalid)
	}
	_, err = m.Lock("l", vfs.Exclusive)
	require.ErrorIs(t, err, fs.ErrInvalid)
	names, err := m.List("/")
	require.NoError(t, err)
	require.Equal(t, []string{"f"}, names)
	require.Equal(t, "te", read(t, m.Disk, "f"))
	size, err := m.Stat("f")
	require.NoError(t, err)
	require.EqualValues(t, 2, size)
	require.Equal(t, "gone", m.after(0, 1, "f"))
}

func TestClosedFilesAreNotUsed(t *testing.T) {
	m := newMachine(t)
	w, err := m.Create("f")
	require.NoError(t, err)
	require.NoError(t, w.Close())
	r, err := m.Open("f")
	require.NoError(t, err)
	require.NoError(t, r.Close())
	for _, use := range []func(){
		func() { _, _ = w.Write(nil) }, func() { _ = w.Sync() }, func() { _ = w.Close() },
		func() { _, _ = r.ReadAt(nil, 0) }, func() { _, _ = r.Size() }, func() { _ = r.Close() },
	} {
		require.Panics(t, use)
	}
}
