package cli

import (
	"fmt"
	"os"
)

// A Directory is an argument that names a directory. It need not be there; if it is
// something else, the command line is wrong.
type Directory string

// Validate is called by kong.
func (d Directory) Validate() error {
	if info, err := os.Stat(string(d)); err == nil && !info.IsDir() {
		return fmt.Errorf("%s is no directory", d)
	}
	return nil
}

// A File is an argument that names a file to read. It need not be there; if it is a
// directory, the command line is wrong.
type File string

// Validate is called by kong.
func (f File) Validate() error {
	if info, err := os.Stat(string(f)); err == nil && info.IsDir() {
		return fmt.Errorf("%s is a directory, and no file", f)
	}
	return nil
}

// Files are arguments like File.
type Files []string

// Validate is called by kong.
func (f Files) Validate() error {
	for _, name := range f {
		if err := File(name).Validate(); err != nil {
			return err
		}
	}
	return nil
}
