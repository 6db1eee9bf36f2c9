package job

import (
	"errors"
	"io/fs"
	"slices"

	"github.com/siftkv/siftkv/internal/base"
	"github.com/siftkv/siftkv/internal/version"
)

// An InputError is a failure to read what a job merges.
type InputError struct{ error }

func (e InputError) Unwrap() error { return e.error }

// Unreadable returns the input whose file an error names, or all inputs if it names none of them.
func (c *Compaction) Unreadable(err error, path func(num uint64) string) []*version.Table {
	name, tables := "", c.Tables()
	if ce, ok := errors.AsType[*base.CorruptionError](err); ok {
		name = ce.File
	} else if pe, ok := errors.AsType[*fs.PathError](err); ok {
		name = pe.Path
	}
	if i := slices.IndexFunc(tables, func(t *version.Table) bool { return path(t.Num) == name }); i >= 0 {
		return tables[i : i+1]
	}
	return tables
}
