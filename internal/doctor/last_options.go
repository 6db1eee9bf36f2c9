package doctor

import (
	"strings"

	"github.com/siftkv/siftkv/internal/manifest"
	"github.com/siftkv/siftkv/internal/vfs"
	"github.com/siftkv/siftkv/kv"
)

// LastOptions returns the options that the store in dir was last opened with for writing: who writes to it for its
// program leaves files of the kind, and with the mode, that the program makes. What has no text is not among them.
// If they are not known, or a newer release wrote them down, all are defaults.
func LastOptions(dir string) *kv.Options {
	stored, err := manifest.Options(vfs.OS, dir)
	if err != nil {
		return &kv.Options{}
	}
	o, err := kv.ParseOptions(stored.Text)
	if err != nil {
		return &kv.Options{}
	}
	if !strings.Contains(stored.Text, "SeparateFrom = ") {
		// It was written by a release that had all values in tables, which would refuse the store if that changed.
		o.SeparateFrom = -1
	}
	o.InMemory, o.ReadOnly = false, false // neither writes the file: what says so was not written by a store
	o.RecoveryMode = kv.PointInTime       // what was once asked for a rescue is not asked again
	o.TolerateMissingValues = false       // likewise
	return o
}
