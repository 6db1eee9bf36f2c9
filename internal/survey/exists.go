package survey

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"

	"github.com/siftkv/siftkv/internal/base"
	"github.com/siftkv/siftkv/internal/manifest"
	"github.com/siftkv/siftkv/internal/vfs"
)

// Exists reports whether a directory holds a store. It changes nothing. A directory that is another program's is an
// error, and so is a store that a newer version of this package wrote, or into which a restore has not ended. In an
// object store only the pointer to the manifest is looked for: what is wrong with it shows when it is read.
func Exists(fsys vfs.FS, dir string, inObjects bool) (bool, error) {
	names, err := fsys.List(dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return false, err
	}
	if slices.Contains(names, manifest.RestoreName) {
		if err := refuseUnfinished(fsys, dir); err != nil {
			return false, err
		}
	}
	if slices.Contains(names, manifest.CurrentName) {
		if inObjects {
			return true, nil
		}
		return true, refuse(fsys, dir, names)
	}
	if name := firstFile(names); name != "" {
		return false, refuseWithoutCurrent(fsys, dir, name, names)
	}
	return false, nil
}

// firstFile returns the first of the names that a crash while a store was created cannot have left. Those that it
// can leave have no data. It returns an empty name if there is none.
func firstFile(names []string) string {
	for _, name := range names {
		switch kind, num := manifest.ParseFileName(name); {
		case kind == manifest.FileLock, kind == manifest.FileTemp, kind == manifest.FileReader:
		case kind == manifest.FileManifest && num == manifest.First:
		default:
			return name
		}
	}
	return ""
}

// refuse returns an error for a store of a newer version of this package, and of another program: LevelDB and its kin
// have a CURRENT too. A CURRENT of ours that is damaged is not refused here, but found when the store is recovered.
func refuse(fsys vfs.FS, dir string, names []string) error {
	_, err := manifest.Current(fsys, dir)
	switch {
	case errors.Is(err, base.ErrNewerFormat):
		return err
	case errors.Is(err, manifest.ErrNotCurrent):
		return Recognize(fsys, dir, names)
	}
	return nil
}

// refuseWithoutCurrent returns the error for a directory that has no CURRENT, but a file with the given name. It is
// damage if a file bears a mark of a store of this package, otherwise ErrForeignDirectory.
func refuseWithoutCurrent(fsys vfs.FS, dir, name string, names []string) error {
	switch err := Recognize(fsys, dir, names); {
	case errors.Is(err, base.ErrNotExist):
		return fmt.Errorf("%w: %s holds %q; give the store a directory of its own", base.ErrForeignDirectory, dir, name)
	case err != nil:
		return err
	}
	return &base.CorruptionError{File: filepath.Join(dir, manifest.CurrentName), Offset: -1,
		What: fmt.Sprintf("the file is missing, but %s is there: the store has lost its pointer to its manifest", name)}
}

// refuseUnfinished returns an error if a restore into the directory has not ended.
func refuseUnfinished(fsys vfs.FS, dir string) error {
	state, err := manifest.Restore(fsys, dir)
	if err != nil || state.Doing == 0 {
		return err
	}
	giveUp := "or remove the directory"
	if state.Done != 0 {
		giveUp = "or remove the file " + manifest.RestoreName + " there, which leaves the store as of the backup before"
	}
	return fmt.Errorf("%w: the one into %s has come to offset %d of its stream; go on with Restore, %s",
		manifest.ErrRestoreUnfinished, dir, state.Offset, giveUp)
}
