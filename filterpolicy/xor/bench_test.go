package xor_test

import (
	"fmt"
	"testing"

	"github.com/siftkv/siftkv/filterpolicy/internal/filtertest"
	"github.com/siftkv/siftkv/filterpolicy/xor"
)

var benchSpecs = []string{"8", "9", "16"}

func BenchmarkBuild(b *testing.B) {
	for _, n := range []uint64{10_000, 100_000, 1_000_000} {
		for _, args := range benchSpecs {
			b.Run(fmt.Sprintf("%d/xor:%s", n, args), func(b *testing.B) {
				size := len(build(b, args, n))
				for b.Loop() {
					build(b, args, n)
				}
				b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(n), "ns/key")
				b.ReportMetric(8*float64(size)/float64(n), "bits/key")
			})
		}
	}
}

func build(b *testing.B, args string, n uint64) []byte {
	b.Helper()
	p, err := xor.Parse(args)
	if err != nil {
		b.Fatal(err)
	}
	builder, in := p.NewBuilder(), filtertest.Good(1)
	for i := range n {
		builder.AddHash(in.At(i))
	}
	data, ok := builder.Finish(nil)
	if !ok {
		b.Fatal("declined")
	}
	return data
}

// BenchmarkProbe asks for absent keys; present ones take the same time.
func BenchmarkProbe(b *testing.B) {
	in := filtertest.Good(1)
	for _, n := range []uint64{10_000, 100_000, 1_000_000} {
		for _, args := range benchSpecs {
			f, err := xor.Decode(build(b, args, n))
			if err != nil {
				b.Fatal(err)
			}
			b.Run(fmt.Sprintf("%d/xor:%s", n, args), func(b *testing.B) {
				maybe, i := 0, uint64(0)
				for b.Loop() {
					if f.MayContainHash(in.At(n + i)) {
						maybe++
					}
					i++
				}
				b.ReportMetric(100*float64(maybe)/float64(b.N), "%maybe")
			})
		}
	}
}
