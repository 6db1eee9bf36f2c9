package manifest

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestNamesOfIngests(t *testing.T) {
	for _, i := range []Ingest{{1, 1}, {20, 22}, {1_234_567, 12_345_678}} {
		got, ok := ParseIngest(i.FileName())
		require.True(t, ok)
		require.Equal(t, i, got)
		kind, num := ParseFileName(i.FileName())
		require.Equal(t, FileIngest, kind)
		require.Equal(t, i.Last, num, "the next file gets a larger number")
		require.True(t, i.Has(i.First) && i.Has(i.Last))
		require.False(t, i.Has(i.First-1) || i.Has(i.Last+1))
	}
	require.Equal(t, "INGEST-000020-000022", Ingest{20, 22}.FileName())
	for _, name := range []string{"INGEST-", "INGEST-000020", "INGEST-20-22", "INGEST-000022-000020",
		"INGEST-000020-+00022", "INGEST-000020-000022.tmp", "ingest-000020-000022"} {
		kind, _ := ParseFileName(name)
		require.Equal(t, FileUnknown, kind, name)
	}
}
