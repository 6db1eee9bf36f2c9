package cell

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/cespare/xxhash/v2"
	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/cmd/kvbench/internal/bench"
	"github.com/siftkv/siftkv/cmd/kvbench/internal/engine"
	"github.com/siftkv/siftkv/internal/cli/progress"
	"github.com/siftkv/siftkv/internal/lookuptrace"
)

// recordTrace records so many lookups of keys that are there, and of others.
func recordTrace(t *testing.T, found, absent int) string {
	t.Helper()
	var out bytes.Buffer
	r, err := lookuptrace.NewRecorder(&out, lookuptrace.Options{Keys: true})
	require.NoError(t, err)
	note := func(i int, there bool) {
		key := fmt.Appendf(nil, "key-%t-%08d", there, i)
		r.Record(key, xxhash.Sum64(key), there, true)
	}
	for i := range found {
		note(i*i%997, true)
	}
	for i := range absent {
		note(i, false)
	}
	require.NoError(t, r.Close())
	path := filepath.Join(t.TempDir(), "a.trace")
	require.NoError(t, os.WriteFile(path, out.Bytes(), 0o600))
	return path
}

func TestReplayAsksForWhatTheTraceHas(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct{ found, absent, limit, wantFound, wantAbsent int }{
		{3000, 700, 1_000_000, 3000, 700},
		{3000, 700, 1000, 1000, 700},
		{1, 0, 10, 1, 0},
		{1, 3, 10, 1, 3},
	} {
		t.Run(fmt.Sprint(tc), func(t *testing.T) {
			l, err := NewLab(t.TempDir(), []string{"test"}, progress.New(io.Discard, "none"))
			require.NoError(t, err)
			defer func() { require.NoError(t, l.Close()) }()
			s := Default()
			s.Keys, s.Workload, s.Lookups, s.Reps, s.Memtable = recordTrace(t, tc.found, tc.absent), Replay,
				int64(tc.limit), 2, 256<<10
			var last string
			for range 2 {
				r, err := l.Run(t.Context(), s)
				require.NoError(t, err)
				require.NoError(t, r.Identities.Err())
				require.Equal(t, 2*tc.wantFound, r.Existing.Lookups)
				require.Equal(t, 2*tc.wantAbsent, r.Absent.Lookups)
				require.Equal(t, tc.wantAbsent == 0, r.Metric(string(engine.Absent), "ns/op") == nil)
				require.Len(t, r.Notes, 2)
				_, err = json.Marshal(r)
				require.NoError(t, err)
				if last != "" {
					require.Equal(t, last, exact(r), "counters are equal in two replays")
				}
				last = exact(r)
			}
		})
	}
	t.Run("filled", func(t *testing.T) {
		l := newLab(t)
		s := Default()
		s.Keys, s.Workload, s.Reps, s.Memtable = recordTrace(t, 3000, 700), Replay, 2, 256<<10
		bare, err := l.Run(t.Context(), s)
		require.NoError(t, err)
		s.Fill = 4000
		r, err := l.Run(t.Context(), s)
		require.NoError(t, err)
		require.NoError(t, r.Identities.Err())
		require.False(t, r.Build.Reused)
		require.Equal(t, bare.Keys.Present+4000, r.Keys.Present)
		require.EqualValues(t, r.Keys.Present, r.Shape.Total().Entries)
		require.Equal(t, bare.Existing.Lookups, r.Existing.Lookups)
		require.Contains(t, r.Notes[1], "4000 like them that are never looked up")
		require.Greater(t, r.Metric(StoreKind, "bytes").Value, 2*bare.Metric(StoreKind, "bytes").Value)
		s.Workload = Uniform
		require.ErrorIs(t, s.Check(), engine.ErrUnsupported)
	})
	l, err := NewLab(t.TempDir(), nil, progress.New(io.Discard, "none"))
	require.NoError(t, err)
	defer func() { require.NoError(t, l.Close()) }()
	s := Default()
	s.Keys, s.Workload = "100", Replay
	_, err = l.Run(t.Context(), s)
	require.ErrorIs(t, err, bench.ErrUsage)
}
