package conformance

import "testing"

func BenchmarkFuseBuild(b *testing.B) {
	benchmarkBuild(b, "fuse:8", "fuse:9", "fuse:16", "fuse:8,4")
}

func BenchmarkFuseProbe(b *testing.B) {
	benchmarkProbe(b, "fuse:8", "fuse:9", "fuse:16", "fuse:8,4")
}

func BenchmarkXorBuild(b *testing.B) { benchmarkBuild(b, "xor:8", "xor:9", "xor:16") }

func BenchmarkXorProbe(b *testing.B) { benchmarkProbe(b, "xor:8", "xor:9", "xor:16") }

func BenchmarkRibbonVersusBlocked(b *testing.B) {
	Versus(b, "blocked:10", "ribbon:7", "ribbon:rate=0.01")
}
