package doctor

import (
	"strings"

	"github.com/siftkv/siftkv/internal/manifest"
	"github.com/siftkv/siftkv/internal/vfs"
	"github.com/siftkv/siftkv/kv"
)

// LastOptions returns the options that the store in dir was last opened with for writing. So a tool that writes to the
// store makes files of the same kind, and with the same mode, as the store's program. Options without a text form are
// left out. If the options are not known, or a newer release wrote them, all are defaults.
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
	o.InMemory, o.ReadOnly = false, false // no store with either writes the file
	o.RecoveryMode = kv.PointInTime       // what was once set for a rescue is not set again
	o.TolerateMissingValues = false       // likewise
	return o
}
