package kv

import (
	"log/slog"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/filterpolicy"
)

// decliningPolicy has builders that cannot build a filter, as those of keys that were chosen to that end.
type decliningPolicy struct{ filterpolicy.Policy }

func (decliningPolicy) NewBuilder() filterpolicy.Builder { return decliningBuilder{} }

type decliningBuilder struct{}

func (decliningBuilder) AddHash(uint64)                           {}
func (decliningBuilder) Finish(dst []byte) (data []byte, ok bool) { return dst, false }

// A file without the filter that it should have is counted, and the log says so.
func TestAFilterThatCannotBeBuiltIsTold(t *testing.T) {
	t.Parallel()
	policy, err := filterpolicy.Parse("fuse:8")
	require.NoError(t, err)
	for _, c := range []struct {
		policy filterpolicy.Policy
		want   int // lines
	}{{decliningPolicy{policy}, 1}, {policy, 0}, {nil, 0}} {
		var log strings.Builder
		db, err := Open(t.TempDir(), &Options{Filter: c.policy, Logger: slog.New(slog.NewTextHandler(&log, nil))})
		require.NoError(t, err)
		require.NoError(t, db.Set([]byte("k"), []byte("value"), NoSync))
		require.NoError(t, db.Flush(t.Context()))
		require.Equal(t, c.want, db.Metrics().Levels[0].Unfiltered)
		value, err := db.Get([]byte("k"))
		require.NoError(t, err)
		require.Equal(t, "value", string(value))
		require.NoError(t, db.Close())
		require.Equal(t, c.want, strings.Count(log.String(), "no filter could be built"), log.String())
		if c.want > 0 {
			require.Contains(t, log.String(), "filter=fuse:8 entries=1")
		}
	}
}
