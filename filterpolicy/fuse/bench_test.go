package fuse_test

import (
	"testing"

	"github.com/siftkv/siftkv/filterpolicy/internal/filtertest"
)

func BenchmarkBuild(b *testing.B) {
	filtertest.BenchmarkBuild(b, "fuse:8", "fuse:9", "fuse:16", "fuse:8,4")
}

func BenchmarkProbe(b *testing.B) {
	filtertest.BenchmarkProbe(b, "fuse:8", "fuse:9", "fuse:16", "fuse:8,4")
}
