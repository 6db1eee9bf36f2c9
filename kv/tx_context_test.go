package kv

import (
	"context"
	"errors"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/internal/storetest"
)

// A write that waits while the store is stalled by a flush that fails is told so, or gives up, whichever comes first.
func TestAStalledTransactionIsGivenUpWithItsContext(t *testing.T) {
	s := newStalledStore(t)
	leader := s.commit(t.Context(), "leader")
	s.queued(0)
	begin := func(ctx context.Context, read string) chan error {
		tx, err := s.db.Begin(true)
		require.NoError(t, err)
		_, err = tx.Has([]byte(read))
		require.NoError(t, err)
		require.NoError(t, tx.Set([]byte("tx"+read), nil))
		done := make(chan error, 1)
		go func() { done <- tx.CommitContext(ctx, NoSync) }()
		return done
	}
	ctx, cancel := context.WithCancel(t.Context())
	queued := begin(ctx, "q")
	s.queued(1)
	first := s.commit(t.Context(), "first")
	s.queued(2)
	given := begin(ctx, "given up")
	s.queued(3)
	kept := begin(t.Context(), "kept")
	s.queued(4)
	conflict := begin(t.Context(), "first")
	s.queued(5)
	cancel()
	require.ErrorIs(t, <-queued, context.Canceled)
	require.ErrorIs(t, <-given, context.Canceled)
	updated := s.db.UpdateContext(ctx, func(tx *Tx) error { return tx.Set([]byte("update"), nil) })
	require.ErrorIs(t, updated, context.Canceled)
	close(s.gate)
	require.NoError(t, <-leader)
	require.NoError(t, <-first)
	require.NoError(t, <-kept)
	require.ErrorIs(t, <-conflict, ErrConflict)
	require.Zero(t, s.db.Metrics().Transactions)
	s.want["txkept"] = ""
	s.finish("leader", "first")
}

// An update that conflicts again and again ends with its context.
func TestUpdateContextEndsBetweenAttempts(t *testing.T) {
	db := openMem(t, nil)
	ctx, cancel := context.WithCancel(t.Context())
	attempts := 0
	err := db.UpdateContext(ctx, func(tx *Tx) error {
		if attempts++; attempts == 3 {
			cancel()
		}
		_, err := tx.Has([]byte("k"))
		set(t, db, "k", strconv.Itoa(attempts))
		return errors.Join(err, tx.Set([]byte("never"), nil))
	})
	require.ErrorIs(t, err, context.Canceled)
	require.Equal(t, 3, attempts)
	requireContents(t, storetest.Model{"k": "3"}, db)
}
