package conformance

import (
	"testing"
)

func BenchmarkXorBuild(b *testing.B) { benchmarkBuild(b, "xor:8", "xor:9", "xor:16") }

func BenchmarkXorProbe(b *testing.B) { benchmarkProbe(b, "xor:8", "xor:9", "xor:16") }
