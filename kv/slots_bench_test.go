package kv

import (
	"context"
	"encoding/binary"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// How long after its commit a change is there, beside 50,000 writes a second.
func BenchmarkLatencyOfASlot(b *testing.B) {
	const perSecond, perBatch = 50_000, 10
	db := openDir(b, b.TempDir(), nil)
	ctx, cancel := context.WithCancel(b.Context())
	slot, snap, err := db.CreateSlot(ctx, "slot")
	require.NoError(b, err)
	require.NoError(b, snap.Close())
	began, done, waits := time.Now(), make(chan error, 1), []time.Duration(nil)
	go func() {
		var at stamp
		for c, err := range slot.Changes(ctx) {
			if err == nil {
				err = c.Replay(&at)
			}
			waits = append(waits, time.Since(began)-at.of)
			if err == nil && len(waits)%1000 == 0 {
				err = slot.Ack(c.Last())
			}
			if err != nil || len(waits) == b.N {
				done <- err
				return
			}
		}
	}()
	batch, value := db.NewBatch(), make([]byte, 100)
	b.ResetTimer()
	for i := range b.N {
		time.Sleep(time.Until(began.Add(time.Duration(i) * perBatch * time.Second / perSecond)))
		batch.Reset()
		for j := range perBatch {
			binary.BigEndian.PutUint64(value, uint64(time.Since(began)))
			key := binary.BigEndian.AppendUint64(nil, uint64(i*perBatch+j)*0x9e3779b97f4a7c15)
			require.NoError(b, batch.Set(key, value))
		}
		require.NoError(b, batch.Commit(NoSync))
	}
	require.NoError(b, <-done)
	b.StopTimer()
	cancel()
	slices.Sort(waits)
	b.ReportMetric(float64(waits[len(waits)/2].Microseconds()), "p50-us")
	b.ReportMetric(float64(waits[len(waits)*99/100].Microseconds()), "p99-us")
	require.NoError(b, db.Close())
}

// stamp takes the time that values begin with.
type stamp struct {
	listed
	of time.Duration
}

func (s *stamp) Set(_, value []byte) error {
	s.of = time.Duration(binary.BigEndian.Uint64(value))
	return nil
}

// Changes of commits that are all there already.
func BenchmarkReplayOfASlot(b *testing.B) {
	db := openDir(b, b.TempDir(), nil)
	slot, snap, err := db.CreateSlot(b.Context(), "slot")
	require.NoError(b, err)
	require.NoError(b, snap.Close())
	value := make([]byte, 100)
	for i := range b.N {
		require.NoError(b, db.Set(binary.BigEndian.AppendUint64(nil, uint64(i)), value, Async))
	}
	require.NoError(b, db.Sync(b.Context()))
	b.ResetTimer()
	n := 0
	var w counting
	for c, err := range slot.Changes(b.Context()) {
		require.NoError(b, err)
		require.NoError(b, c.Replay(&w))
		if n++; n == b.N {
			break
		}
	}
	b.StopTimer()
	require.EqualValues(b, b.N, w.n)
	require.NoError(b, slot.Close())
	require.NoError(b, db.Close())
}

// counting counts the writes of changes.
type counting struct {
	listed
	n int
}

func (w *counting) Set(_, _ []byte) error { w.n++; return nil }
