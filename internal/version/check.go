package version

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"

	"github.com/siftkv/siftkv/internal/base"
	"github.com/siftkv/siftkv/internal/vfs"
)

// CheckFiles finds files of the version in dir that are missing or have another size than they had, without opening
// them. Errors about damage tell the user to run hint. If tolerated is not nil, it is told of such blob files, and they
// are no error.
func (v *Version) CheckFiles(fsys vfs.FS, dir, hint string, tolerated func(num uint64, err error)) error {
	var errs []error
	check := func(name string, had int64, what func() string) error {
		name = filepath.Join(dir, name)
		switch size, err := fsys.Stat(name); {
		case err != nil && !errors.Is(err, fs.ErrNotExist):
			return err // whether it is there is not known
		case err != nil:
			return &base.CorruptionError{File: name, Offset: -1, What: what(), Cause: err, Hint: hint}
		case size != had:
			return &base.CorruptionError{File: name, Offset: min(size, had), Hint: hint,
				What: fmt.Sprintf("%s has %d bytes, and had %d when it was written", what(), size, had)}
		}
		return nil
	}
	v.All(func(level int, t *Table) {
		errs = append(errs, check(t.Name(), t.Size, func() string { return fmt.Sprintf("a table of level %d", level) }))
	})
	for b := range v.Blobs() {
		err := check(b.Name(), b.Size, func() string { return "a blob file" })
		if tolerated != nil && errors.Is(err, base.ErrCorruption) {
			tolerated(b.Num, err)
			continue
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}
