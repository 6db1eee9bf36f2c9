package kv

import (
	"cmp"
	"fmt"

	"github.com/siftkv/siftkv/internal/manifest"
	"github.com/siftkv/siftkv/internal/operand"
)

// A store says in its manifest which kinds of entries it may hold in addition to values and tombstones, and only if it
// does. A program that does not know them refuses it, and opens every other. The manifest says so before the first such
// entry is written to a log. The next open forgets the kinds that no table holds any more.

// enable makes it durable that the store may hold what used says. The caller leads the pipeline.
func (d *DB) enable(used manifest.Features) error {
	e := &manifest.Edit{Features: used}
	if used&manifest.FeatureMerge != 0 {
		e.Merger = d.operands.Name
	}
	return d.applyEdit(func() *manifest.Edit { return e }, func() { d.features |= used })
}

// combiner decides which merger combines the operands of the store in dir, which holds what used says and whose
// manifest names the recorded one. Without Options.Merger, a merger of this package combines its own operands; those of
// others are kept and cannot be read.
func (o *Options) combiner(used manifest.Features, recorded, dir string) (operand.Combiner, error) {
	if used&manifest.FeatureMerge == 0 {
		recorded = ""
	}
	given := o.Merger
	c := operand.Combiner{Name: recorded, MaxValue: MaxReaderSize, MaxEntry: cmp.Or(o.harness.MaxMerged, MaxValueSize)}
	switch {
	case given == nil:
		c.Merger = operand.Builtin(recorded)
		return c, nil
	case recorded != "" && recorded != given.Name():
		return c, fmt.Errorf("%w: Merger is %q, and the store in %s holds operands of merger %q; "+
			"open it with that one, or with none to read other keys",
			ErrInvalidOptions, given.Name(), dir, recorded)
	}
	c.Merger, c.Name = given, given.Name()
	return c, nil
}
