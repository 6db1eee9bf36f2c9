package repair

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"

	"github.com/siftkv/siftkv/internal/doctor"
	"github.com/siftkv/siftkv/internal/vfs"
	"github.com/siftkv/siftkv/kv"
)

// openDirectories opens the directory of the damaged store, and looks at that of the repaired one.
func (r *repairer) openDirectories(dir string) (err error) {
	disk := r.o.fs
	if disk == nil {
		disk = vfs.OSWithMode(cmp.Or(doctor.LastOptions(dir).FileMode, vfs.DefaultMode))
	}
	r.fs = cmp.Or(r.o.From, disk)
	if r.dir, err = vfs.Absolute(r.fs, dir); err != nil {
		return err
	}
	r.fs, r.directory, err = vfs.OpenDirectory(r.fs, r.dir)
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%w in %s", kv.ErrNotExist, dir)
	}
	if err != nil || r.o.Out == "" {
		r.to, r.target, r.targetDirectory = r.fs, r.dir, r.directory
		return err
	}
	if r.o.From == nil {
		disk = r.fs
	}
	if r.target, err = vfs.Absolute(disk, r.o.Out); err != nil {
		return err
	}
	r.out = &outDir{fs: disk, dir: r.target}
	return r.out.check()
}

func (r *repairer) closeDirectories() error {
	err := r.directory.Close()
	if r.out != nil {
		err = errors.Join(err, r.out.directory.Close())
	}
	return err
}

// checkTarget returns an error if the directory of the repaired store is not where it was.
func (r *repairer) checkTarget() error {
	if err := r.targetDirectory.Check(); err != nil {
		return fmt.Errorf("%w; the repair is of the one that was opened as %s", err, r.target)
	}
	return nil
}
