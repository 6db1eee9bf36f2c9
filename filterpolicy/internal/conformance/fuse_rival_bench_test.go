package conformance

import (
	"strconv"
	"testing"
	"time"

	"github.com/FastFilter/xorfilter"
)

// BenchmarkFuseAgainstXorfilter takes turns with FastFilter/xorfilter's binary fuse filters of the
// same keys. Figures are nanoseconds per probe of an absent key in the fastest round, as
// other load on the machine can only add to it.
func BenchmarkFuseAgainstXorfilter(b *testing.B) {
	for _, n := range []int{10_000, 1_000_000} {
		in := Good(1)
		hashes := make([]uint64, n+1<<14)
		for i := range hashes {
			hashes[i] = in.At(uint64(i))
		}
		present, absent := hashes[:n], hashes[n:]
		names := []string{"xorfilter:8", "xorfilter:16", "xorfilter:32"}
		probes := []func(uint64) bool{fuseRival[uint8](b, present), fuseRival[uint16](b, present),
			fuseRival[uint32](b, present)}
		for _, spec := range []string{"fuse:8", "fuse:16", "fuse:32", "fuse:9", "fuse:12", "fuse:8,4", "fuse:16,4"} {
			names = append(names, spec)
			probes = append(probes, Open(b, spec, Build(b, spec, in, n)).MayContainHash)
		}
		b.Run(strconv.Itoa(n), func(b *testing.B) {
			best := make([]time.Duration, len(probes))
			for b.Loop() {
				for i, mayContain := range probes {
					if d := fuseTimeProbes(absent, mayContain); best[i] == 0 || d < best[i] {
						best[i] = d
					}
				}
			}
			for i, name := range names {
				b.ReportMetric(float64(best[i])/float64(len(absent)), name)
			}
		})
	}
}

func fuseRival[T xorfilter.Unsigned](b *testing.B, keys []uint64) func(uint64) bool {
	b.Helper()
	f, err := xorfilter.NewBinaryFuse[T](keys)
	if err != nil {
		b.Fatal(err)
	}
	return f.Contains
}

func fuseTimeProbes(hashes []uint64, mayContain func(uint64) bool) time.Duration {
	begin, maybe := time.Now(), 0
	for _, h := range hashes {
		if mayContain(h) {
			maybe++
		}
	}
	if maybe == len(hashes) {
		return time.Hour // a filter that rules nothing out
	}
	return time.Since(begin)
}
