//go:build unix

package outfile

import (
	"io/fs"
	"os"
	"syscall"
)

// giveTo makes a file that was just created one of the owner of another, and reports
// whether it is.
func giveTo(f *os.File, old fs.FileInfo) bool {
	info, err := f.Stat()
	if err != nil {
		return false
	}
	is, ok := info.Sys().(*syscall.Stat_t)
	want, wanted := old.Sys().(*syscall.Stat_t)
	if !ok || !wanted || is.Uid == want.Uid && is.Gid == want.Gid {
		return true
	}
	return f.Chown(int(want.Uid), int(want.Gid)) == nil
}
