package compare

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/cmd/kvbench/internal/engine"
	"github.com/siftkv/siftkv/cmd/kvbench/internal/environ"
	"github.com/siftkv/siftkv/cmd/kvbench/internal/tidy"
)

// nothing is a store for tests that do not ask it.
type nothing struct{ engine.Live }

func (nothing) Set(_, _ []byte) error { return nil }

func (nothing) NewReader(engine.Access, engine.Kind) (engine.Reader, error) { return nil, nil }

func TestAScanSeesWhatIsWrong(t *testing.T) {
	u := testKeyspace(t, 100)
	w := &worker{keyspace: u, start: &startTask{ValueSize: 100}}
	entry := func(rank int) (key, value []byte) {
		key = u.source.AppendInOrder(nil, rank)
		return key, u.loaded.Append(nil, key)
	}
	for name, ranks := range map[string][]int{"disorder": {3, 5, 4}, "twice": {3, 3}, "good": {3, 4, 5}} {
		s := newScans(w, 10, 0)
		for _, rank := range ranks {
			s.visit(entry(rank))
		}
		require.Equal(t, name != "good", s.disorder, name)
	}
	s := newScans(w, 10, 0)
	key, _ := entry(1)
	s.visit(key, []byte("too short"))
	require.True(t, s.disorder)
}

// TestEveryRepetitionHasARow has samples in which some numbers are 0 in some repetitions, and others in all.
func TestEveryRepetitionHasARow(t *testing.T) {
	x := &run{config: &Config{}, result: tidy.New("compare", "", nil, environ.Environment{})}
	for _, s := range []Sample{
		{Operations: 1, PerSecond: 10, CPUSeconds: 0.5, LongestBatch: 5},
		{Operations: 2, PerSecond: 20, Max: 3},
		{Operations: 3, PerSecond: 30, CPUSeconds: 0.5, LongestBatch: 7, Max: 4},
	} {
		x.add(Phase{Name: "heavy"}, "siftkv", "none", s)
		x.add(Phase{Name: "heavy"}, "pebble", "none", Sample{PerSecond: 1})
	}
	for metric, want := range map[string][]float64{
		PerSecond: {10, 20, 30}, "longest_batch_ns": {5, 0, 7}, "max_ns": {0, 3, 4}, PerCPU: {2, 0, 6},
		"cpu_seconds": {0.5, 0, 0.5}, Allocs: {0, 0, 0}, "heavy-batches": {0, 0, 0}, "files": nil,
	} {
		require.Equal(t, want, x.result.Values(Cell("heavy", "none", "siftkv"), metric), metric)
	}
	for i, row := range x.result.Rows {
		for _, other := range x.result.Rows[:i] {
			require.False(t, row.Metric == other.Metric && row.Repetition == other.Repetition &&
				row.Cell["engine"] == other.Cell["engine"], "%v is there twice", row)
		}
	}
	require.Nil(t, x.result.Values(Cell("heavy", "none", "pebble"), "max_ns"))
}

func TestFieldsHaveUnits(t *testing.T) {
	s := Sample{CPUSeconds: 1, MutexWait: 1, P50: 1, P99: 1, P999: 1, Max: 1, LongestBatch: 1, Written: 1, OnDisk: 1,
		Resident: 1, Peak: 1, Anon: 1, Base: 1, Heap: 1, BaseHeap: 1, BaseAnon: 1, Data: 1, Live: 1, PeakDisk: 1}
	for field := range s.fields() {
		require.Equal(t, field == "operations", unitOf(field) == "", field)
	}
	require.Equal(t, "bytes/op", unitOf("alloc_bytes_per_op"))
}
