package conformance

import (
	"bytes"
	"iter"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/filterpolicy"
	"github.com/siftkv/siftkv/filterpolicy/internal/frame"
)

// staticSpecs are policies of every family that builds anything.
var staticSpecs = []string{"bloom:10", "blocked:10", "cuckoo:12", "xor:8", "fuse:8", "ribbon:7", "gcs:7", "quotient:7"}

func hashes(n int) iter.Seq[uint64] {
	return func(yield func(uint64) bool) {
		for i := range uint64(n) {
			if !yield(Hash(1, i)) {
				return
			}
		}
	}
}

func buildSet(tb testing.TB, spec string, n int) *filterpolicy.Set {
	tb.Helper()
	s, err := filterpolicy.BuildHashes(Policy(tb, spec), hashes(n))
	require.NoError(tb, err)
	return s
}

func zeroImmutable() Set { return &filterpolicy.Set{} }

func TestSetOfEveryFamily(t *testing.T) {
	for _, spec := range staticSpecs {
		for _, n := range []int{0, 1, 2, 100, Share(50_000)} {
			s := buildSet(t, spec, n)
			require.Equal(t, n, s.Len())
			require.Equal(t, n, s.Cap())
			require.Equal(t, n != 0, s.LoadFactor() == 1)
			require.Equal(t, len(s.Bytes()), s.Size())
			require.True(t, s.Policy() == Policy(t, spec))
			Holds(t, s, n)
			f, err := filterpolicy.Decode(s.Policy().Name(), s.Bytes())
			require.NoError(t, err)
			for i := range uint64(1000) {
				h := Hash(Absent, i)
				require.Equal(t, f.MayContainHash(h), s.ContainsHash(h))
			}
			if n > 1000 {
				KeepsPromise(t, s.ContainsHash, 50_000, 1.05*s.FalsePositiveRate())
			}
			RoundTrip(t, s, zeroImmutable)
		}
		DamageSet(t, buildSet(t, spec, 5), zeroImmutable)
	}
}

func TestBuildTakesKeysInAnyOrderAndRepeated(t *testing.T) {
	words := strings.Fields("apple pear apple plum quince apple medlar pear")
	keys := func(words []string) iter.Seq[[]byte] {
		return func(yield func([]byte) bool) {
			buf := make([]byte, 0, 16) // the iterator may use its bytes again
			for _, w := range words {
				if buf = append(buf[:0], w...); !yield(buf) {
					return
				}
			}
		}
	}
	for _, spec := range staticSpecs {
		p := Policy(t, spec)
		s, err := filterpolicy.Build(p, keys(words))
		require.NoError(t, err)
		require.Equal(t, 5, s.Len())
		for _, w := range words {
			require.True(t, s.Contains([]byte(w)))
			require.True(t, s.ContainsHash(filterpolicy.Hash([]byte(w))))
		}
		sorted := slices.Compact(slices.Sorted(slices.Values(words)))
		again, err := filterpolicy.Build(p, keys(sorted))
		require.NoError(t, err)
		require.Equal(t, Bytes(t, s), Bytes(t, again))
	}
}

func TestBuildDeclines(t *testing.T) {
	s, err := filterpolicy.BuildHashes(Policy(t, "none"), hashes(3))
	require.Nil(t, s)
	require.ErrorIs(t, err, filterpolicy.ErrDeclined)
	require.EqualError(t, err, "filterpolicy: the policy made no filter: none, of 3 keys")

	_, err = filterpolicy.BuildHashes(renamed{Policy(t, "bloom:10")}, hashes(3))
	require.ErrorIs(t, err, filterpolicy.ErrUnknownFamily)
}

// renamed is a policy that this package does not have.
type renamed struct{ filterpolicy.Policy }

func (renamed) Name() string { return "renamed" }

func TestZeroSetHasNoKeys(t *testing.T) {
	Zero(t, zeroImmutable)
	s := buildSet(t, "bloom:10", 5)
	s.Reset()
	require.Equal(t, &filterpolicy.Set{}, s)
	require.Nil(t, s.Policy())
}

func TestSetGolden(t *testing.T) {
	for _, spec := range []string{"bloom:10", "blocked:10"} {
		GoldenSet(t, "./set-"+strings.ReplaceAll(spec, ":", "-")+".golden", buildSet(t, spec, 20))
	}
}

// forged is the stored filter of five keys with any spec, of which so many bytes count.
func forged(tb testing.TB, version byte, spec string, specLen byte) []byte {
	tb.Helper()
	tail := append([]byte(spec), 5, 0, 0, 0, 0, 0, 0, 0, specLen, 0, 0, 0)
	return envelope(nil, frame.Immutable, version, buildSet(tb, "bloom:10", 5).Bytes(), tail)
}

// A set of a family that this program does not have is sound: it is not called corrupt.
func TestSetOfAnUnknownFamily(t *testing.T) {
	for _, spec := range []string{"ewer:1", "ewer", "Bloom:10", ""} {
		data := forged(t, 1, spec, byte(len(spec)))
		s := buildSet(t, "bloom:10", 20)
		before := Bytes(t, s)
		err := s.UnmarshalBinary(data)
		n, streamErr := s.ReadFrom(bytes.NewReader(data))
		require.Equal(t, int64(len(data)), n)
		for _, err := range []error{err, streamErr} {
			require.ErrorIs(t, err, filterpolicy.ErrUnknownFamily)
			require.NotErrorIs(t, err, filterpolicy.ErrCorrupt)
			require.ErrorContains(t, err, "this program has none, bloom:BITS")
		}
		require.Equal(t, before, Bytes(t, s), "a refused set leaves no trace")
	}
}

func TestForgedSetsAreRefused(t *testing.T) {
	require.NoError(t, zeroImmutable().UnmarshalBinary(forged(t, 1, "bloom:10", 8)))
	for want, data := range map[string][]byte{
		"version is 2; this program reads version 1":                        forged(t, 2, "bloom:10", 8),
		`the policy is written "bloom:10.0", and must be "bloom:10"`:        forged(t, 1, "bloom:10.0", 10),
		`the policy cannot be: filterpolicy: bad spec "bloom:99": bits per`: forged(t, 1, "bloom:99", 8),
		"blocked: filterpolicy: not a valid filter":                         forged(t, 1, "blocked:10", 10),
		"bloom: filterpolicy: not a valid filter":                           forged(t, 1, "x"+"bloom:10", 8),
		"with a spec of 255 bytes in ":                                      forged(t, 1, "bloom:10", 255),
		"11 bytes are not a set": envelope(nil, frame.Immutable,
			1, make([]byte, 11)),
	} {
		err := zeroImmutable().UnmarshalBinary(data)
		require.ErrorIs(t, err, filterpolicy.ErrCorrupt)
		require.ErrorContains(t, err, want)
	}
}

func TestImmutableHostileSets(t *testing.T) {
	for _, spec := range staticSpecs {
		HostileSets(t, zeroImmutable, 0, Bytes(t, buildSet(t, spec, 5)))
	}
}

func FuzzImmutableSet(f *testing.F) {
	var seeds [][]byte
	for _, spec := range staticSpecs {
		seeds = append(seeds, Bytes(f, buildSet(f, spec, 5)))
	}
	fuzzSet(f, zeroImmutable, Use, seeds, filterpolicy.ErrUnknownFamily)
}

func BenchmarkBuildSet(b *testing.B) {
	const n = 1_000_000
	for _, spec := range staticSpecs {
		b.Run(spec, func(b *testing.B) {
			for b.Loop() {
				s := buildSet(b, spec, n)
				b.ReportMetric(8*float64(s.Size())/n, "bits/key")
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/n, "ns/key")
		})
	}
}
