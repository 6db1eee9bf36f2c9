package xor_test

import (
	"testing"

	"github.com/siftkv/siftkv/filterpolicy/internal/filtertest"
)

func BenchmarkBuild(b *testing.B) { filtertest.BenchmarkBuild(b, "xor:8", "xor:9", "xor:16") }

func BenchmarkProbe(b *testing.B) { filtertest.BenchmarkProbe(b, "xor:8", "xor:9", "xor:16") }
