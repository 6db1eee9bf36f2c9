package objects

import (
	"context"

	"github.com/siftkv/siftkv/internal/remote/branch"
)

// Collected is what Config.Collect has deleted.
type Collected struct {
	Files   int   // sorted files and blob files
	Bytes   int64 // of them
	Entries int   // of logs and lists of files
	Failed  int   // files that could not be deleted
}

// Collect deletes what earlier writers of the branch have left behind and it no longer needs. Readers must have had
// Grace to notice, by the clock of the object store. It needs no DB, and may be called at any time: it fences no
// writer, and the writer goes on. Writers do the same with their first write; so this is for stores whose writers end
// before that, or that are not written to any more. It keeps what checkpoints and clones have.
//
// If there is nothing to delete it is six requests or so, and a LIST for each thousand files and entries. After an
// error, some is deleted: call it again.
func (o *Config) Collect(ctx context.Context) (Collected, error) {
	of, err := o.options()
	if err != nil {
		return Collected{}, err
	}
	got, err := branch.Collect(ctx, of)
	return Collected(got), err
}
