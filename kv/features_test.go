package kv

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/internal/harness"
	"github.com/siftkv/siftkv/internal/manifest"
	"github.com/siftkv/siftkv/internal/operand"
)

// The combiner of a store without a harness bounds values by what readers may get, and entries by what Set takes. Which
// merger it has depends on the option, and on the operands that the store holds.
func TestCombinerOfAStore(t *testing.T) {
	t.Parallel()
	const operands = manifest.FeatureMerge
	add, other := operand.Int64Add{}, Append(",")
	for _, c := range []struct {
		o        Options
		used     manifest.Features
		recorded string
		want     operand.Combiner
	}{
		{want: operand.Combiner{}},
		{recorded: add.Name(), want: operand.Combiner{}}, // nothing has operands any more
		{used: operands, recorded: add.Name(), want: operand.Combiner{Name: add.Name(), Merger: add}},
		{used: operands, recorded: "theirs", want: operand.Combiner{Name: "theirs"}},
		{o: Options{Merger: other}, recorded: add.Name(), want: operand.Combiner{Name: other.Name(), Merger: other}},
		{o: Options{Merger: other}, used: operands, recorded: other.Name(),
			want: operand.Combiner{Name: other.Name(), Merger: other}},
		{o: Options{harness: harness.Harness{MaxMerged: 7}}, want: operand.Combiner{MaxEntry: 7}},
	} {
		c.want.MaxValue = 1 << 30
		if c.want.MaxEntry == 0 {
			c.want.MaxEntry = 256 << 20
		}
		got, err := c.o.combiner(c.used, c.recorded, "dir")
		require.NoError(t, err)
		require.Equal(t, c.want, got, "%+v", c)
	}
	o := Options{Merger: other}
	_, err := o.combiner(operands, add.Name(), "dir")
	require.ErrorIs(t, err, ErrInvalidOptions)
	require.ErrorContains(t, err, "dir holds operands of merger "+`"`+add.Name()+`"`)
}
