package bench

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/redisfilter/internal/redistest"
)

// BenchmarkClient is what calls cost in the program that makes them, allocations included, beside the
// getrange that go-redis sends for no filter. An op is a call of 1 or 1,000 keys; client-us is its time on
// processors, the server's not included.
func BenchmarkClient(b *testing.B) {
	server := redistest.Start(b)
	c, trips := openCounted(b, server.Addr)
	const n = 200_000
	fixed := openBenched(b, c, trips, "fixed", n, 0)
	growing := openBenched(b, c, trips, "growing", n/64, 10)
	keys := Keys(0, n)
	importAll(b, fixed.set, keys)
	addAll(b, growing.set, keys)
	bare := newBareRead(b, server.Addr, anyShard(b, server.Client(), "fixed"))
	for _, batch := range []int{1, 1000} {
		for _, s := range []struct {
			name    string
			subject Subject
			op      Op
		}{
			{"getrange", bare, Contains},
			{"contains-fixed", fixed, Contains},
			{"contains-growing", growing, Contains},
			{"add-fixed", fixed, Add},
		} {
			b.Run(fmt.Sprintf("%s/%d", s.name, batch), func(b *testing.B) {
				b.ReportAllocs()
				next, used := 0, CPU()
				for b.Loop() {
					_, err := s.subject.Do(b.Context(), s.op, keys[next:next+batch])
					require.NoError(b, err)
					next = (next + batch) % n
				}
				b.ReportMetric(float64(CPU()-used)/float64(b.N)/1e3, "client-us/op")
			})
		}
	}
}
