package conformance

import (
	"fmt"
	"testing"
)

// benchSizes are those of a small file, of a large one, and beyond the CPU's cache.
var benchSizes = []int{10_000, 100_000, 1_000_000}

// eachBench runs a benchmark for each size and spec.
func eachBench(b *testing.B, specs []string, run func(b *testing.B, spec string, n int)) {
	b.Helper()
	for _, n := range benchSizes {
		for _, spec := range specs {
			b.Run(fmt.Sprintf("%d/%s", n, spec), func(b *testing.B) { run(b, spec, n) })
		}
	}
}

// benchmarkBuild builds filters of a few sizes.
func benchmarkBuild(b *testing.B, specs ...string) {
	b.Helper()
	eachBench(b, specs, func(b *testing.B, spec string, n int) {
		size := 0
		for b.Loop() {
			size = len(Build(b, spec, Good(1), n))
		}
		b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(n), "ns/key")
		b.ReportMetric(8*float64(size)/float64(n), "bits/key")
	})
}

// benchmarkProbe asks for absent keys, first a decoded filter and then encoded
// bytes, as engines do that hand these over with each lookup.
func benchmarkProbe(b *testing.B, specs ...string) {
	b.Helper()
	eachBench(b, specs, func(b *testing.B, spec string, n int) {
		data := Build(b, spec, Good(1), n)
		b.Run("filter", func(b *testing.B) { ask(b, n, Open(b, spec, data).MayContainHash) })
		probe := prober(b, spec)
		b.Run("bytes", func(b *testing.B) { ask(b, n, func(h uint64) bool { return probe(data, h) }) })
	})
}

func ask(b *testing.B, n int, mayContain func(h uint64) bool) {
	b.Helper()
	in, maybe, i := Good(1), 0, uint64(n)
	for b.Loop() {
		if mayContain(in.At(i)) {
			maybe++
		}
		i++
	}
	b.ReportMetric(100*float64(maybe)/float64(b.N), "%maybe")
}
