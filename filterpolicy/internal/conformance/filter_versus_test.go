package conformance

import (
	"runtime"
	"testing"
	"time"
)

// Versus measures filters of a million keys that take turns, so that each figure stands
// beside the others of the same run: bits per key, and nanoseconds per key of a build and per
// probe of absent and of present keys with the hash known. Times are those of the fastest
// round, as other load on the machine can only add to them.
func Versus(b *testing.B, specs ...string) {
	b.Helper()
	const n = 1_000_000
	in := Good(1)
	absent, present := make([]uint64, n/8), make([]uint64, n/8)
	for i := range uint64(n / 8) {
		absent[i], present[i] = in.At(n+i), in.At(Good(2).At(i)%n)
	}
	fastest := make([][3]float64, len(specs))
	sizes := make([]int, len(specs))
	for b.Loop() {
		for i, spec := range specs {
			var data []byte
			builder := Policy(b, spec).NewBuilder()
			best(&fastest[i][0], n, func() { data, _ = tryBuild(builder, in, n) })
			sizes[i] = len(data)
			f := Open(b, spec, data)
			for kind, hashes := range [][]uint64{absent, present} {
				for range 5 {
					best(&fastest[i][1+kind], len(hashes), func() {
						maybe := 0
						for _, h := range hashes {
							if f.MayContainHash(h) {
								maybe++
							}
						}
						runtime.KeepAlive(maybe)
					})
				}
			}
		}
	}
	for i, spec := range specs {
		b.Logf("%-18s %7.3f bits per key; build %4.0f ns, absent %5.1f ns, present %5.1f ns",
			spec, 8*float64(sizes[i])/n, fastest[i][0], fastest[i][1], fastest[i][2])
	}
}

// best keeps in least the nanoseconds per step of the fastest run.
func best(least *float64, steps int, run func()) {
	begin := time.Now()
	run()
	ns := float64(time.Since(begin).Nanoseconds()) / float64(steps)
	if *least == 0 || ns < *least {
		*least = ns
	}
}
