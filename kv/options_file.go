package kv

import (
	"cmp"
	"runtime/debug"
	"strings"
	"sync"

	"github.com/siftkv/siftkv/internal/manifest"
	"github.com/siftkv/siftkv/internal/vfs"
)

// The file SIFTKV-OPTIONS says what a store in a directory was last opened with for writing, and by which release. Its
// bytes are described in internal/manifest/options_file.go. Nothing depends on it: if it cannot be read it is written
// again, and if it cannot be written the store opens all the same. It is written when CURRENT is there, and only if it
// would change: most calls of Open cost one read of it, and no sync. A checkpoint has one too. There is none in an
// object store, where it would be a request for each Open, and none in a backup, whose stream is a store's contents.

// storedText returns the text for the options file of a store that was opened with o: what was
// set, and in comments the defaults of what was not. All is o with its defaults.
func (o *Options) storedText(all *Options) string {
	if o == nil {
		o = &Options{}
	}
	return "# What the store was last opened with. Fields that are commented out were not set.\n" +
		optionFields.Format(o, all)
}

// save writes the options file of a store into a directory, unless it is there.
func (o *Options) save(fsys vfs.FS, dir string) {
	if o.ReadOnly || o.InMemory {
		return
	}
	file := manifest.StoredOptions{Format: manifest.FormatVersion, Release: release(), Text: o.stored}
	if there, err := manifest.Options(fsys, dir); err == nil && there == file {
		return
	}
	if err := manifest.SetOptions(fsys, dir, file); err != nil {
		o.Logger.Warn("what the store was opened with could not be written down", "dir", dir, "error", err)
	}
}

const modulePath = "github.com/siftkv/siftkv"

// release returns the version of this module in the program.
var release = sync.OnceValue(func() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return unknownRelease
	}
	version := ""
	for _, m := range append(info.Deps, &info.Main) {
		if m.Path == modulePath {
			version = m.Version
		}
	}
	return cmp.Or(strings.Join(strings.Fields(version), "-"), unknownRelease)
})

const unknownRelease = "unknown"
