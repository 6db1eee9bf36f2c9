package manifest

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"

	"github.com/siftkv/siftkv/internal/base"
	"github.com/siftkv/siftkv/internal/vfs"
)

// RESTORE is one line of text, in a directory that backups are restored into:
//
//	siftkv restore=1 done=0123456789abcdef manifest=7 doing=0123456789abcdef offset=4096 crc=89abcdef
//
// It is sealed as that of CURRENT. The line is replaced in one rename.

// ErrRestoreUnfinished is matched by errors of a directory into which a restore has not ended.
var ErrRestoreUnfinished = errors.New("siftkv: a restore is unfinished")

// A RestoreState is what a restore has done to a directory.
type RestoreState struct {
	Done     uint64 // id of the last backup that was restored whole; 0: none
	Manifest uint64 // the manifest in force since then
	Doing    uint64 // id of the backup that is being restored; 0: none
	Offset   int64  // of its stream, everything before is in the directory
}

const restoreLine = "siftkv restore=1 done=%016x manifest=%d doing=%016x offset=%d"

// SetRestore replaces the RESTORE file. When it returns, the change is durable, and so
// are the names of all other files in the directory.
func SetRestore(fsys vfs.FS, dir string, s RestoreState) error {
	line := fmt.Sprintf(restoreLine, s.Done, s.Manifest, s.Doing, s.Offset)
	return vfs.ReplaceFile(fsys, filepath.Join(dir, RestoreName), base.SealLine(line))
}

// Restore reads the RESTORE file. There is none where nothing was restored: the state is zero.
func Restore(fsys vfs.FS, dir string) (s RestoreState, err error) {
	name := filepath.Join(dir, RestoreName)
	data, err := vfs.ReadSmallFile(fsys, name, maxCurrentSize)
	if errors.Is(err, fs.ErrNotExist) {
		return s, nil
	}
	if err != nil {
		return s, err
	}
	line, intact := base.UnsealLine(string(data))
	var version, offset uint64
	if base.ScanLine(line, "siftkv restore=%d", &version) && version > 1 && intact {
		return s, fmt.Errorf("%s: %w: version %d, this program reads up to 1", name, ErrNewerFormat, version)
	}
	if !base.ScanLine(line, "siftkv restore=1 done=%x manifest=%d doing=%x offset=%d", &s.Done, &s.Manifest, &s.Doing,
		&offset) || !intact || int64(offset) < 0 {
		cause := errors.New("not a line that this store writes")
		if !intact {
			cause = errors.New("checksum does not match")
		}
		return RestoreState{}, &base.CorruptionError{File: name, What: "the state of a restore", Cause: cause}
	}
	s.Offset = int64(offset)
	return s, nil
}
