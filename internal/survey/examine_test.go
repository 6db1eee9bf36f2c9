package survey_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/internal/survey"
	"github.com/siftkv/siftkv/internal/vfs"
)

// A refusingFS fails one operation on one file, at its n-th time.
type refusingFS struct {
	vfs.FS
	op, name string
	left     int
	err      error
	hit      bool
}

func (r *refusingFS) refuse(op, name string) error {
	if op != r.op || filepath.Base(name) != r.name {
		return nil
	}
	if r.left--; r.left >= 0 {
		return nil
	}
	r.hit = true
	return &fs.PathError{Op: op, Path: name, Err: r.err}
}

func (r *refusingFS) Open(name string) (vfs.ReadFile, error) {
	if err := r.refuse("open", name); err != nil {
		return nil, err
	}
	f, err := r.FS.Open(name)
	return refusingFile{f, r, name}, err
}

func (r *refusingFS) Stat(name string) (int64, error) {
	if err := r.refuse("stat", name); err != nil {
		return 0, err
	}
	return r.FS.Stat(name)
}

type refusingFile struct {
	vfs.ReadFile
	fs   *refusingFS
	name string
}

func (f refusingFile) ReadAt(b []byte, off int64) (int, error) {
	if err := f.fs.refuse("read", f.name); err != nil {
		return 0, err
	}
	return f.ReadFile.ReadAt(b, off)
}

func (f refusingFile) Size() (int64, error) {
	if err := f.fs.refuse("size", f.name); err != nil {
		return 0, err
	}
	return f.ReadFile.Size()
}

// What the file system refuses is an error, at whatever call, and never damage: the
// bytes may all be right.
func TestWhatMayNotBeReadIsNoDamage(t *testing.T) {
	dir := copyStore(t)
	garbage := []string{"000003.wal", "000005.sst", "CURRENT.tmp"}
	for _, name := range garbage {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte("old"), 0o600))
	}
	names, err := vfs.OS.List(dir)
	require.NoError(t, err)
	refused := map[string]int{}
	for _, name := range names {
		for _, op := range []string{"open", "size", "read", "stat"} {
			for _, cause := range []error{syscall.EACCES, syscall.EMFILE, syscall.EIO,
				errors.New("the mount went away")} {
				for n := 0; ; n++ {
					fsys := &refusingFS{FS: vfs.OS, op: op, name: name, left: n, err: cause}
					s, err := survey.Take(t.Context(), dir, survey.Options{FS: fsys, Deep: true})
					if !fsys.hit {
						require.NoError(t, err)
						require.Empty(t, s.Damage)
						break
					}
					require.ErrorIs(t, err, cause, "%s %s, time %d", op, name, n)
					refused[op]++
				}
			}
		}
	}
	for _, op := range []string{"open", "size", "read", "stat"} {
		require.Greater(t, refused[op], 10, op)
	}
}

// Who leaves the files as they are may read around what a device cannot read.
func TestWhatADeviceCannotReadIsDamageIfItIsReadAround(t *testing.T) {
	dir := copyStore(t)
	for _, name := range []string{"CURRENT", "MANIFEST-000016", "000011.sst", "000018.wal"} {
		for _, op := range []string{"open", "read"} {
			fsys := &refusingFS{FS: vfs.OS, op: op, name: name, left: 2, err: syscall.EIO}
			for left := range 3 { // recognize has read some of them before
				fsys.left, fsys.hit = left, false
				s, err := survey.Take(t.Context(), dir, survey.Options{FS: fsys, Deep: true, ReadAround: true})
				require.NoError(t, err)
				if !fsys.hit {
					continue
				}
				require.NotEmpty(t, s.Damage, "%s %s", op, name)
				require.Equal(t, name, s.Damage[0].File)
			}
			fsys.left, fsys.err, fsys.hit = 0, syscall.EACCES, false
			_, err := survey.Take(t.Context(), dir, survey.Options{FS: fsys, Deep: true, ReadAround: true})
			require.ErrorIs(t, err, syscall.EACCES, "permissions are something else")
		}
	}
}

// Whoever reads on is told of all tables, and of each that may not be read.
func TestWhoReadsOnLearnsOfTheOtherTables(t *testing.T) {
	dir := copyStore(t)
	require.NoError(t, os.Truncate(filepath.Join(dir, "000015.sst"), 100))
	fsys := &refusingFS{FS: vfs.OS, op: "open", name: "000011.sst", err: syscall.EMFILE}
	s, err := survey.Take(t.Context(), dir, survey.Options{FS: fsys, Deep: true, ReadOn: true})
	require.ErrorIs(t, err, syscall.EMFILE)
	require.Len(t, s.Damage, 1)
	require.Equal(t, "000015.sst", s.Damage[0].File)
	var out strings.Builder
	require.NoError(t, s.Verdict().WriteText(&out))
	require.Regexp(t, `000011.sst .*  not read\n`, out.String())
	require.Regexp(t, `000015.sst .*  DAMAGED\n`, out.String())
}
