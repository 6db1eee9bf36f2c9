package filterpolicy_test

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/filterpolicy"
	"github.com/siftkv/siftkv/filterpolicy/internal/filtertest"
	"github.com/siftkv/siftkv/internal/base"
)

// The hash is part of the file format.
func TestHashIsXXHash64(t *testing.T) {
	require.Equal(t, uint64(0xef46db3751d8e999), filterpolicy.Hash(nil))
	require.Equal(t, uint64(0x44bc2cf5ad770999), filterpolicy.Hash([]byte("abc")))
}

func TestDecodeOfUnknownFamily(t *testing.T) {
	for _, name := range []string{"", "surf", "Bloom", "bloom:10"} {
		f, err := filterpolicy.Decode(name, nil)
		require.Nil(t, f)
		require.ErrorIs(t, err, filterpolicy.ErrUnknownFamily)
		require.NotErrorIs(t, err, filterpolicy.ErrCorrupt)
		require.ErrorContains(t, err, "this program has none, bloom:BITS, blocked:BITS, cuckoo:BITS,SLOTS")
		_, ok := filterpolicy.Probe(name)
		require.False(t, ok)
	}
}

// A filter of one family is not one of another, whatever the caller says.
func TestDecodeOfAnotherFamily(t *testing.T) {
	specs := []string{"bloom:10", "blocked:10", "cuckoo:12"}
	for _, a := range specs {
		for _, b := range specs {
			f, err := filterpolicy.Decode(filtertest.Policy(t, a).Name(), filtertest.Build(t, b, filtertest.Good(1), 100))
			if a == b {
				require.NoError(t, err)
				continue
			}
			require.Nil(t, f)
			require.ErrorIs(t, err, filterpolicy.ErrCorrupt)
			require.ErrorIs(t, err, base.ErrCorruption)
			require.ErrorContains(t, err, filtertest.Policy(t, a).Name()+": ")
		}
	}
}

func TestNoneBuildsNothing(t *testing.T) {
	p := filtertest.Policy(t, "none")
	b := p.NewBuilder()
	b.AddHash(1)
	data, ok := b.Finish([]byte("x"))
	require.False(t, ok)
	require.Equal(t, "x", string(data))

	f, err := filterpolicy.Decode("none", nil)
	require.NoError(t, err)
	require.True(t, f.MayContainHash(1))
	_, err = filterpolicy.Decode("none", []byte("x"))
	require.ErrorIs(t, err, filterpolicy.ErrCorrupt)
	probe, ok := filterpolicy.Probe("none")
	require.True(t, ok)
	require.True(t, probe(nil, 1))
}

type foreign struct{ filterpolicy.Policy }

func TestExpectedAtTheEdges(t *testing.T) {
	require.Equal(t, filterpolicy.Expectation{BitsPerKey: 0, FPR: 1, OK: true}, filterpolicy.Expected(filtertest.Policy(t, "none"), 1000))
	for _, spec := range []string{"bloom:10", "blocked:10", "cuckoo:12"} {
		p := filtertest.Policy(t, spec)
		require.Equal(t, filterpolicy.Expectation{OK: true}, filterpolicy.Expected(p, 0))
		require.Equal(t, filterpolicy.Expectation{FPR: 1, OK: true}, filterpolicy.Expected(p, math.MaxInt))
		require.False(t, filterpolicy.Expected(p, -1).OK)
		require.False(t, filterpolicy.Expected(foreign{p}, 1).OK)
		require.False(t, filterpolicy.Expected(nil, 1).OK)

		last := filterpolicy.Expected(p, 1).BitsPerKey
		for n := 10; n <= 100_000_000; n *= 10 {
			e := filterpolicy.Expected(p, n)
			require.Less(t, e.BitsPerKey, last, "%s, %d keys", spec, n)
			require.True(t, e.FPR > 0 && e.FPR < 0.02, "%s, %d keys: %v", spec, n, e.FPR)
			last = e.BitsPerKey
		}
	}
}

// Concurrent probes of one filter, and builders side by side that share the pool.
func TestConcurrentUse(t *testing.T) {
	for _, spec := range []string{"bloom:10", "blocked:10", "cuckoo:12"} {
		t.Run(spec, func(t *testing.T) {
			want := filtertest.Build(t, spec, filtertest.Good(1), 40_000)
			f := filtertest.Open(t, spec, want)
			p := filtertest.Policy(t, spec)
			for worker := range uint64(4) {
				t.Run("worker", func(t *testing.T) {
					t.Parallel()
					in, b := filtertest.Good(1), p.NewBuilder()
					missing := 0
					for i := range uint64(40_000) {
						b.AddHash(in.At(i))
						if !f.MayContainHash(in.At((i + worker*10_000) % 40_000)) {
							missing++
						}
					}
					require.Zero(t, missing)
					data, ok := b.Finish(nil)
					require.True(t, ok)
					require.Equal(t, want, data)
				})
			}
		})
	}
}
