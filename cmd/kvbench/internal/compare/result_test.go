package compare

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/cmd/kvbench/internal/engine"
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
