package kv

import (
	"errors"
	"sync"
)

// applyParallel has every writer of a group put its own batch into the memtable.
// Range tombstones make a list, so batches that have some are the leader's. It is
// apart from applyGroup, whose common case then allocates nothing.
func applyParallel(mem *memTable, group []*commitRequest) error {
	var others sync.WaitGroup
	for _, r := range group[1:] {
		if r.batch.tombs == 0 {
			others.Add(1)
			r.mem, r.applied = mem, &others
			r.turn <- turnApply
		}
	}
	var errs error
	for i, r := range group {
		if i == 0 || r.batch.tombs > 0 {
			errs = errors.Join(errs, mem.Apply(r.batch.repr.Record()))
		}
	}
	others.Wait()
	if errs != nil {
		return errs
	}
	for _, r := range group {
		errs = errors.Join(errs, r.err)
	}
	return errs
}
