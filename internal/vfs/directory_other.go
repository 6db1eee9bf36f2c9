//go:build !(darwin || dragonfly || freebsd || linux || netbsd || openbsd)

package vfs

import (
	"io/fs"
	"os"
	"path/filepath"
)

// named returns a file's name, for a call that is made at once.
func (d *Directory) named(rel string) (string, error) { return d.path(rel), d.Check() }

func (d *Directory) openFile(rel string, flag int, perm fs.FileMode) (*os.File, error) {
	name, err := d.named(rel)
	if err != nil {
		return nil, err
	}
	return os.OpenFile(name, flag, perm)
}

func (d *Directory) openDirectory(rel string) (*os.File, error) {
	return d.openFile(rel, os.O_RDONLY, 0)
}

func (d *Directory) stat(rel string) (fileInfo, error) {
	name, err := d.named(rel)
	if err != nil {
		return fileInfo{}, err
	}
	info, err := os.Stat(name)
	if err != nil {
		return fileInfo{}, err
	}
	return newFileInfo(info), nil
}

func (d *Directory) remove(rel string) error {
	name, err := d.named(rel)
	if err != nil {
		return err
	}
	return os.Remove(name)
}

func (d *Directory) mkdir(rel string, perm fs.FileMode) error {
	name, err := d.named(rel)
	if err != nil {
		return err
	}
	return os.Mkdir(name, perm)
}

func (d *Directory) sync(rel string) error {
	name, err := d.named(rel)
	if err != nil {
		return err
	}
	return syncDir(name)
}

// bothNamed returns the names of two files, for a call that is made at once.
func bothNamed(from *Directory, oldRel string, to *Directory, newRel string) (oldName, newName string, err error) {
	if oldName, err = from.named(oldRel); err == nil {
		newName, err = to.named(newRel)
	}
	return oldName, newName, err
}

func rename(from *Directory, oldRel string, to *Directory, newRel string) error {
	oldName, newName, err := bothNamed(from, oldRel, to, newRel)
	if err != nil {
		return err
	}
	return os.Rename(oldName, newName)
}

func link(from *Directory, oldRel string, to *Directory, newRel string) error {
	oldName, newName, err := bothNamed(from, oldRel, to, newRel)
	if err != nil {
		return err
	}
	file, err := filepath.EvalSymlinks(oldName)
	if err != nil {
		return err
	}
	return os.Link(file, newName)
}
