package measure

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/cmd/kvbench/internal/engine"
	"github.com/siftkv/siftkv/cmd/kvbench/internal/keys"
)

// noted is a store that notes what is written.
type noted struct {
	engine.Store
	keys  []string
	value []byte
}

func (n *noted) Put(key, value []byte) error {
	n.keys, n.value = append(n.keys, string(key)), append(n.value[:0], value...)
	return nil
}

func TestFillWritesEveryKeyOnceInLoadOrder(t *testing.T) {
	const n = 2*ctxEvery + 5
	source, err := keys.NewGenerated(n, 16, 1)
	require.NoError(t, err)
	v, err := keys.NewValues(30, 1)
	require.NoError(t, err)
	db, told := &noted{}, 0
	whole := &Loader{Source: source, Values: v, Store: db, Keys: n}
	require.NoError(t, whole.Fill(t.Context(), func(keys int) { told += keys }))
	require.Equal(t, n, told)
	require.Len(t, db.keys, n)
	for i, key := range db.keys {
		require.Equal(t, string(source.AppendPresent(nil, i)), key)
	}
	require.Equal(t, v.Append(nil, []byte(db.keys[n-1])), db.value)

	ctx, cancel := context.WithCancel(t.Context())
	stopped := &noted{}
	l := &Loader{Source: source, Values: v, Store: stopped, Keys: n}
	require.ErrorIs(t, l.Fill(ctx, func(int) { cancel() }), context.Canceled)
	require.Len(t, stopped.keys, ctxEvery)
}
