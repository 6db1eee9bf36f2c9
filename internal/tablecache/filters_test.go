package tablecache

import (
	"bytes"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/filterpolicy"
	"github.com/siftkv/siftkv/internal/base"
	"github.com/siftkv/siftkv/internal/exactranges"
	"github.com/siftkv/siftkv/internal/sstable"
	"github.com/siftkv/siftkv/internal/vfs"
)

// A table of which one filter is of no use has the other one, which goes and comes back like that of any other
// table, with each reader.
func TestAnUnusableFilterLeavesTheOther(t *testing.T) {
	const limit = 1 << 20
	for _, usable := range []string{"filter", "range filter"} {
		c, tables := tablesIn(t, 1, limit)
		o := sstable.WriterOptions{ID: 1, RangeFilter: exactranges.Policy{}}
		if usable == "range filter" {
			o.Filter, c.Options.RangeFilter = ownFilter{}, exactranges.Policy{}
		}
		var b bytes.Buffer
		w := sstable.NewWriter(&b, &o)
		for i := range 1000 {
			require.NoError(t, w.Add(base.MakeKey(fmt.Appendf(nil, "%06d", i), 1, base.KindSet), nil))
		}
		_, err := w.Finish()
		require.NoError(t, err)
		c.OpenFile = func(string) (vfs.ReadFile, error) { return bytesFile{bytes.NewReader(b.Bytes())}, nil }
		table := tables[0]
		for range 3 {
			c.addFilters(limit) // of others
			r, err := table.Open(c)
			require.NoError(t, err)
			require.False(t, r.HasFilters())
			require.EqualValues(t, 1, c.Skipped.Load())
			c.addFilters(-limit)
			for range 2 {
				c.Sampled(table, true, true)
				r = table.Reader.Load()
				require.Equal(t, usable == "filter", r.HasFilter())
				require.Equal(t, usable == "range filter", r.HasRangeFilter())
				require.Zero(t, c.Skipped.Load())
				c.swap(table, r, r.WithoutFilters()) // as for others that save more
				require.EqualValues(t, 1, c.Skipped.Load(), "the %s could come back", usable)
			}
			require.EqualValues(t, 1, c.Unusable.Load())
			require.NoError(t, c.Close(table))
			require.Zero(t, c.Skipped.Load())
			require.Zero(t, c.Filters.Load())
		}
	}
}

// A tail that is read in part, and found to be of no use there, is counted out as it was counted in.
func TestTablesAreCountedOutAsTheyWereCountedIn(t *testing.T) {
	const limit = 1 << 20
	c, tables := tablesIn(t, 1, limit)
	c.Options.RangeFilter = exactranges.Policy{}
	var b bytes.Buffer
	w := sstable.NewWriter(&b, &sstable.WriterOptions{ID: 1, Filter: ownFilter{}, RangeFilter: exactranges.Policy{}})
	for i := range 1000 {
		require.NoError(t, w.Add(base.MakeKey(fmt.Appendf(nil, "%06d", i), 1, base.KindSet), nil))
	}
	info, err := w.Finish()
	require.NoError(t, err)
	c.OpenFile = func(string) (vfs.ReadFile, error) { return bytesFile{bytes.NewReader(b.Bytes())}, nil }
	others := limit/2 - int64(info.FilterBytes) // the filter fits, the range filter does not
	c.addFilters(others)
	_, err = tables[0].Open(c)
	require.NoError(t, err)
	require.EqualValues(t, 1, c.Unusable.Load())
	require.EqualValues(t, 1, c.Skipped.Load())
	require.NoError(t, c.Close(tables[0]))
	require.Zero(t, c.Skipped.Load())
	require.EqualValues(t, others, c.Filters.Load())
}

// An ownFilter is a filter of an application's own, which nobody else can decode.
type ownFilter struct{}

func (ownFilter) Name() string                     { return "own" }
func (ownFilter) String() string                   { return "own" }
func (ownFilter) NewBuilder() filterpolicy.Builder { return ownFilter{} }
func (ownFilter) AddHash(uint64)                   {}

func (ownFilter) Finish(dst []byte) ([]byte, bool) { return append(dst, "anything"...), true }
