//go:build !windows && !plan9

package objstore

import (
	"errors"
	"os"
	"syscall"
)

// syncDir makes the names in a directory durable, where directories can be synced.
func syncDir(open func(string) (*os.File, error), name string) error {
	f, err := open(name)
	if err != nil {
		return err
	}
	err = f.Sync()
	if errors.Is(err, syscall.EINVAL) || errors.Is(err, errors.ErrUnsupported) {
		err = nil
	}
	return errors.Join(err, f.Close())
}
