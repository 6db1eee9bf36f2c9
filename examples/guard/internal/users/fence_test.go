package users

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// A deadline is meant by the database's clock, which may differ from that of the process by any time.
func TestClocksThatDiffer(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
	defer cancel()
	for i, now := range []string{sqliteDialect.now + " + 86400000000", sqliteDialect.now + " - 86400000000"} {
		s, err := OpenSQLite(ctx, t.TempDir())
		require.NoError(t, err)
		s.dialect.now = now
		inserted, err := s.Insert(ctx, User{ID: int64(i), Name: "ann"})
		require.NoError(t, err)
		require.True(t, inserted)
		require.NoError(t, s.Close())
	}
}
