package kv

import (
	"context"
	"encoding/binary"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
)

// What a slot costs writers: its consumer takes each batch while the next are written. An acknowledgement comes with
// each thousand.
func BenchmarkWritesBesideASlot(b *testing.B) {
	for _, o := range []struct {
		name string
		o    *WriteOptions
	}{{"nosync", NoSync}, {"sync", Sync}} {
		for _, slots := range []int{0, 1} {
			b.Run(fmt.Sprintf("%s/slots=%d", o.name, slots), func(b *testing.B) {
				db := openDir(b, b.TempDir(), &Options{MemtableSize: 16 << 20})
				ctx, cancel := context.WithCancel(b.Context())
				done := make(chan struct{})
				if slots > 0 {
					slot, snap, err := db.CreateSlot(ctx, "slot")
					require.NoError(b, err)
					require.NoError(b, snap.Close())
					go func() {
						defer close(done)
						n := 0
						for c, err := range slot.Changes(ctx) {
							if err != nil {
								return
							}
							if n++; n%1000 == 0 {
								_ = slot.Ack(c.Last())
							}
						}
					}()
				} else {
					close(done)
				}
				batch, value := db.NewBatch(), make([]byte, 100)
				var key [16]byte
				b.ResetTimer()
				for i := range b.N {
					batch.Reset()
					for j := range 10 {
						binary.BigEndian.PutUint64(key[:], uint64(i*10+j)*0x9e3779b97f4a7c15)
						require.NoError(b, batch.Set(key[:], value))
					}
					require.NoError(b, batch.Commit(o.o))
				}
				b.StopTimer()
				cancel()
				<-done
				require.NoError(b, db.Close())
			})
		}
	}
}

// Changes of commits that are all there already, against BenchmarkWritesBesideASlot, which wrote as many.
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
