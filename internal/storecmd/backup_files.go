package storecmd

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	"github.com/siftkv/siftkv/internal/backup"
	"github.com/siftkv/siftkv/internal/cli/outfile"
	"github.com/siftkv/siftkv/internal/cli/progress"
	"github.com/siftkv/siftkv/internal/vfs"
	"github.com/siftkv/siftkv/kv"
)

const (
	partialSuffix = ".partial" // follows the name of a backup's file until the backup is whole
	markSuffix    = ".mark"    // follows the name of a backup's file: its mark
)

// An outFile takes a backup. A file gets its name when the backup is whole, so that
// a name never stands for half a backup; standard output, pipes and devices are
// written to as they are.
type outFile struct {
	io.Writer
	name string   // as it was given
	path string   // of the file, that symbolic links lead to
	f    *os.File // a file; nil: anything else
	pipe *os.File // opened here, and no file
}

// checkOutputs returns an error if the backup or its mark cannot be written, before
// anything is.
func (c *backupCommand) checkOutputs() error {
	mark := c.Mark
	if c.Out != "-" {
		if err := outfile.Check(c.Out); err != nil {
			return usagef("%w", err)
		}
		if info, err := os.Stat(c.Out); mark == "" && (err != nil || info.Mode().IsRegular()) {
			mark = c.Out + markSuffix
		}
	}
	return c.checkMark(mark)
}

// create opens what the backup goes to, and refuses to overwrite anything.
func (c *backupCommand) create(p *program) (*outFile, error) {
	if c.Out == "-" {
		if progress.IsTerminal(p.stdout) {
			return nil, usagef("standard output is a terminal: send the backup to a file or a pipe")
		}
		return &outFile{Writer: p.stdout, name: "-"}, nil
	}
	info, err := os.Stat(c.Out)
	switch {
	case err == nil && !info.Mode().IsRegular():
		f, err := os.OpenFile(c.Out, os.O_WRONLY, 0)
		return &outFile{Writer: f, name: c.Out, pipe: f}, err
	case err == nil && !c.Force:
		return nil, fmt.Errorf("%w: %s; name another file, or say --force", fs.ErrExist, c.Out)
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		return nil, err
	}
	flags := os.O_WRONLY | os.O_CREATE | os.O_EXCL
	if c.Force {
		flags = os.O_WRONLY | os.O_CREATE | os.O_TRUNC
	}
	path, err := outfile.Target(c.Out)
	if err != nil {
		return nil, err
	}
	f, err := os.OpenFile(path+partialSuffix, flags, vfs.DefaultMode)
	if errors.Is(err, fs.ErrExist) {
		return nil, fmt.Errorf("%w: %s, left by a backup that broke off or still runs: if no mark goes on from "+
			"it, remove it or say --force", fs.ErrExist, path+partialSuffix)
	}
	if err != nil {
		return nil, err
	}
	return &outFile{Writer: f, name: c.Out, path: path, f: f}, nil
}

// end makes what was written durable and returns the name that it has now. Of a
// backup that is not whole, nothing is left unless it is useful.
func (o *outFile) end(whole, useful bool) (name string, err error) {
	if o.pipe != nil {
		return o.name, o.pipe.Close()
	}
	if o.f == nil {
		return o.name, nil
	}
	partial := o.path + partialSuffix
	if !whole && !useful {
		return partial, errors.Join(o.f.Close(), os.Remove(partial))
	}
	if err := errors.Join(o.f.Sync(), o.f.Close()); err != nil {
		return partial, err
	}
	name = partial
	if whole {
		if err := os.Rename(partial, o.path); err != nil {
			return partial, err
		}
		name = o.name
	}
	return name, outfile.SyncName(o.path)
}

// maxMark is more than any mark has: it names the files of a store in 16 bytes each.
const maxMark = 64 << 20

// readMark reads a mark; no name is no mark.
func readMark(name string) (mark kv.BackupMark, err error) {
	if name == "" {
		return mark, nil
	}
	f, err := os.Open(name)
	if err != nil {
		return mark, err
	}
	data, err := io.ReadAll(io.LimitReader(f, maxMark)) // a device may have no end
	if err := errors.Join(err, f.Close()); err != nil {
		return mark, err
	}
	if len(data) == 0 {
		return mark, fmt.Errorf("%w: %s: the file is empty, and no mark of a backup", errDamage, name)
	}
	if !backup.IsMark(data) {
		return mark, usagef("%s is no mark of a backup", name)
	}
	if err := mark.UnmarshalBinary(data); err != nil {
		return mark, fmt.Errorf("%w (%s)", err, name)
	}
	return mark, nil
}

// checkMark refuses to replace a file that is no mark, and one that cannot be written.
func (c *backupCommand) checkMark(name string) error {
	if name == "" {
		return nil
	}
	if err := outfile.Check(name); err != nil {
		return usagef("%w", err)
	}
	if info, err := os.Stat(name); c.Force || err != nil || !info.Mode().IsRegular() {
		return nil //nolint:nilerr // there is nothing to replace
	}
	if _, err := readMark(name); err != nil {
		return usagef("%s would be replaced, and is no mark (--force replaces it): %w", name, err)
	}
	return nil
}

// writeMark saves a mark, durably and in one step.
func writeMark(name string, mark kv.BackupMark) error {
	data, err := mark.MarshalBinary()
	if err != nil {
		return err
	}
	return outfile.Write(name, func(w io.Writer) error {
		_, err := w.Write(data)
		return err
	})
}
