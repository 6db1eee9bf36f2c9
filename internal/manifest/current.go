package manifest

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/siftkv/siftkv/internal/base"
	"github.com/siftkv/siftkv/internal/vfs"
)

// FormatVersion is the version of the store's format that this program writes. It opens every version up to this one.
const FormatVersion = 1

// CURRENT is one line of text:
//
//	siftkv format=1 manifest=MANIFEST-000007 crc=89abcdef
//
// It is sealed: see base.SealLine.

// maxCurrentSize is much more than a CURRENT file has.
const maxCurrentSize = 4096

// SetCurrent makes the manifest with this number the one in force. When it returns, the change is durable.
func SetCurrent(fs vfs.FS, dir string, num uint64) error {
	line := fmt.Sprintf("siftkv format=%d manifest=%s", FormatVersion, FileName(FileManifest, num))
	return vfs.ReplaceFile(fs, filepath.Join(dir, CurrentName), base.SealLine(line))
}

// ErrNotCurrent is matched when a CURRENT file does not begin as this program
// writes it: it is damaged, or another program's.
var ErrNotCurrent = errors.New("not a line that this store writes")

// Current returns the number of the manifest in force. If there is no CURRENT file, the error matches fs.ErrNotExist.
func Current(fs vfs.FS, dir string) (num uint64, err error) {
	name := filepath.Join(dir, CurrentName)
	data, err := vfs.ReadSmallFile(fs, name, maxCurrentSize)
	if err != nil {
		return 0, err
	}
	num, err = ParseCurrent(string(data))
	if errors.Is(err, ErrNewerFormat) {
		return 0, fmt.Errorf("%s: %w", name, err)
	}
	if err != nil {
		return 0, &base.CorruptionError{File: name, What: "the store's pointer to its manifest", Cause: err}
	}
	return num, nil
}

// ParseCurrent returns the number of the manifest that the text of a CURRENT file names.
func ParseCurrent(text string) (uint64, error) {
	var version uint64
	if !base.ScanLine(text, "siftkv format=%d", &version) {
		return 0, ErrNotCurrent
	}
	line, ok := base.UnsealLine(text)
	if !ok {
		return 0, errors.New("checksum does not match")
	}
	if version > FormatVersion {
		return 0, fmt.Errorf("%w: version %d, this program opens up to %d", ErrNewerFormat, version, FormatVersion)
	}
	_, name, _ := strings.Cut(line, "manifest=")
	kind, num := ParseFileName(name)
	if kind != FileManifest {
		return 0, fmt.Errorf("%.100q is not a manifest's name", name)
	}
	return num, nil
}
