package measure

import (
	"errors"
	"io/fs"
	"path/filepath"

	"github.com/siftkv/siftkv/cmd/kvbench/internal/engine"
)

// OnDisk returns the bytes and the number of the files in dir, as allocated: holes do not
// count. A file that goes meanwhile counts or does not.
func OnDisk(dir string) (bytes int64, files int, err error) {
	err = filepath.WalkDir(dir, func(_ string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return ignoreGone(err)
		}
		info, err := d.Info()
		if err != nil {
			return ignoreGone(err)
		}
		bytes += allocated(info)
		files++
		return nil
	})
	return bytes, files, err
}

// ignoreGone forgives that a store removes files meanwhile.
func ignoreGone(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// A PageCache says what was done about the page cache before lookups.
type PageCache struct {
	Dropped bool `json:"dropped"` // the system was asked to drop the files
	// of the files, still in the page cache after it; -1: cannot be told
	Left       int64  `json:"left_bytes"`
	Impossible string `json:"impossible,omitempty"` // why the files were not dropped
}

// DeviceReads are reads of a device.
type DeviceReads struct {
	Bytes    engine.Count // that the system read from devices for the process, in whole pages
	Requests engine.Count // that the device served, those of other programs too
}
