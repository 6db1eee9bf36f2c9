package owners

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/redisfilter/internal/redistest"
)

// BenchmarkWindow tells what keys cost the server when an owner has 900 keys in each of seven windows.
func BenchmarkWindow(b *testing.B) {
	redistest.RequireReal(b)
	s := redistest.Start(b)
	clock := &manualClock{}
	wt := setsTest{addrs: []string{s.Addr}, keys: 1000, rate: 0.01, clock: clock, period: time.Hour, keep: 7}
	f := wt.open(b, 0).Of("ada")
	for window := range 7 {
		clock.advance(time.Hour)
		require.NoError(b, f.MAdd(b.Context(), numbered(fmt.Sprint("w", window), 900)))
	}
	const together = 50 // keys of a batch
	contains := func(keys [][]byte) error { _, err := f.MContains(b.Context(), keys); return err }
	addNew := func(keys [][]byte) error { _, err := f.MAddNew(b.Context(), keys); return err }
	absent, current := numbered("absent", 900), numbered("w6", 900)
	for _, op := range []struct {
		name string
		keys [][]byte
		f    func(keys [][]byte) error
	}{
		{"contains/absent", absent, contains},
		{"contains/present", current, contains},
		{"addnew/present", current, addNew},
		{"add/present", current, func(keys [][]byte) error { return f.MAdd(b.Context(), keys) }},
		{"addnew/fresh", nil, addNew},
	} {
		b.Run(op.name, func(b *testing.B) {
			n := 0
			before := s.CPU(b.Context())
			for b.Loop() {
				keys := op.keys
				if keys == nil { // each batch in a window of its own
					clock.advance(time.Hour)
					keys = numbered(fmt.Sprint("fresh", n), together)
				}
				at := n * together % len(keys)
				require.NoError(b, op.f(keys[at:at+together]))
				n++
			}
			used := s.CPU(b.Context()) - before
			b.ReportMetric(float64(used.Nanoseconds())/float64(n*together)/1000, "server-µs/key")
		})
	}
}
