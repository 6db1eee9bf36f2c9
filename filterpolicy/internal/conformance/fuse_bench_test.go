package conformance

import (
	"testing"
)

func BenchmarkFuseBuild(b *testing.B) {
	benchmarkBuild(b, "fuse:8", "fuse:9", "fuse:16", "fuse:8,4")
}

func BenchmarkFuseProbe(b *testing.B) {
	benchmarkProbe(b, "fuse:8", "fuse:9", "fuse:16", "fuse:8,4")
}
