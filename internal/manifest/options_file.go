package manifest

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/siftkv/siftkv/internal/base"
	"github.com/siftkv/siftkv/internal/vfs"
)

// SIFTKV-OPTIONS is text that says what a store was last opened with:
//
//	# siftkv options=1 format=1 release=v1.2.3
//	...
//	# crc=89abcdef
//
// format is the version of CURRENT; release is that of this module, and has no spaces. Between the first line and
// the last is the text of kv.Options, with comments: lines that begin with #. crc is the CRC-32C of all before the
// last line, bound to (0, 0). The file is replaced in one rename. It is for people and tools: opening a store
// needs nothing from it.
//
// Its name does not begin with OPTIONS: geth takes a directory with such a file and a CURRENT for one of Pebble.

const optionsVersion = 1

// maxOptionsSize is much more than an options file has.
const maxOptionsSize = 64 << 10

// StoredOptions are what an options file says.
type StoredOptions struct {
	Format  int    // of the store, as of the file's writer
	Release string // of the module that opened the store; "unknown" if it does not say
	Text    string // lines that kv.ParseOptions reads, with comments
}

const (
	optionsLine  = "# siftkv options=%d format=%d release=%s\n"
	optionsEnd   = "# crc="
	optionsTrail = len(optionsEnd) + 8 + 1
)

// SetOptions replaces the options file. When it returns without an error, the change is durable.
func SetOptions(fsys vfs.FS, dir string, o StoredOptions) error {
	text := fmt.Sprintf(optionsLine, optionsVersion, o.Format, o.Release) + o.Text
	if len(text)+optionsTrail > maxOptionsSize {
		return fmt.Errorf("the text of the options has %d bytes: want at most %d", len(text),
			maxOptionsSize-optionsTrail)
	}
	text = fmt.Sprintf("%s%s%08x\n", text, optionsEnd, base.Checksum(0, 0, []byte(text)))
	name := filepath.Join(dir, OptionsName)
	err := vfs.ReplaceFile(fsys, name, []byte(text))
	if err != nil {
		_ = fsys.Remove(name + tempSuffix) // else the next opening of the store does it
	}
	return err
}

// Options reads the options file. The error matches fs.ErrNotExist if there is none, base.ErrNewerFormat if a newer
// version wrote it, and base.ErrCorruption if it is damaged or edited.
func Options(fsys vfs.FS, dir string) (o StoredOptions, err error) {
	name := filepath.Join(dir, OptionsName)
	data, err := vfs.ReadSmallFile(fsys, name, maxOptionsSize)
	if err != nil {
		return o, err
	}
	o, err = ParseStoredOptions(string(data))
	switch {
	case errors.Is(err, ErrNewerFormat):
		return o, fmt.Errorf("%s: %w", name, err)
	case err != nil:
		return o, &base.CorruptionError{File: name, Offset: -1, What: "what the store was last opened with", Cause: err}
	}
	return o, nil
}

// ParseStoredOptions reads the text of an options file.
func ParseStoredOptions(text string) (o StoredOptions, err error) {
	first, _, _ := strings.Cut(text, "\n")
	numbers, release, ok := strings.Cut(first, " release=")
	var version, format uint64
	if !ok || !base.ScanLine(numbers, "# siftkv options=%d format=%d", &version, &format) {
		return StoredOptions{}, errors.New("it does not begin as such a file")
	}
	o.Format, o.Release = int(format), release
	end := len(text) - optionsTrail
	if end <= len(first) || text[end:] != fmt.Sprintf("%s%08x\n", optionsEnd, base.Checksum(0, 0, []byte(text[:end]))) {
		return StoredOptions{}, errors.New("checksum does not match")
	}
	if version > optionsVersion {
		return StoredOptions{}, fmt.Errorf("%w: options of version %d, this program reads up to %d", ErrNewerFormat,
			version, optionsVersion)
	}
	o.Text = text[len(first)+1 : end]
	return o, nil
}
