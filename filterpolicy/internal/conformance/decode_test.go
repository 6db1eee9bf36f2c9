package conformance

import (
	"bytes"
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/filterpolicy"
	"github.com/siftkv/siftkv/internal/base"
	"github.com/siftkv/siftkv/internal/hostile"
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
	eachFamily(t, func(t *testing.T, a string, _ []string) {
		eachSpec(t, func(t *testing.T, spec string) {
			data := Build(t, spec, Good(1), 100)
			f, err := filterpolicy.Decode(a, data)
			if Policy(t, spec).Name() == a {
				require.NoError(t, err)
				return
			}
			require.Nil(t, f)
			require.ErrorIs(t, err, filterpolicy.ErrCorrupt)
			require.ErrorIs(t, err, base.ErrCorruption)
			require.ErrorContains(t, err, a+": ")
			probe, ok := filterpolicy.Probe(a)
			require.True(t, ok)
			require.True(t, probe(data, 1))
		})
	})
}

func TestNoneBuildsNothing(t *testing.T) {
	p := Policy(t, "none")
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
	require.Equal(t, filterpolicy.Expectation{BitsPerKey: 0, FPR: 1, OK: true},
		filterpolicy.Expected(Policy(t, "none"), 1000))
	eachSpec(t, func(t *testing.T, spec string) {
		p := Policy(t, spec)
		require.Equal(t, filterpolicy.Expectation{OK: true}, filterpolicy.Expected(p, 0))
		require.Equal(t, filterpolicy.Expectation{FPR: 1, OK: true}, filterpolicy.Expected(p, math.MaxInt))
		require.False(t, filterpolicy.Expected(p, -1).OK)
		require.False(t, filterpolicy.Expected(foreign{p}, 1).OK)
		require.False(t, filterpolicy.Expected(nil, 1).OK)

		last := filterpolicy.Expected(p, 1).BitsPerKey
		for n := 10; n <= 100_000_000; n *= 10 {
			e := filterpolicy.Expected(p, n)
			require.Less(t, e.BitsPerKey, 1.002*last, "%d keys", n) // the index of gcs grows with their logarithm
			require.True(t, e.FPR > 0 && e.FPR < 0.02, "%d keys: %v", n, e.FPR)
			last = e.BitsPerKey
		}
	})
}

// Concurrent probes of one filter, and builders side by side that share the pool.
func TestConcurrentUse(t *testing.T) {
	eachSpec(t, func(t *testing.T, spec string) {
		keys := uint64(2 * Share(20_000))
		want := Build(t, spec, Good(1), int(keys))
		f := Open(t, spec, want)
		p := Policy(t, spec)
		for worker := range uint64(4) {
			t.Run("worker", func(t *testing.T) {
				t.Parallel()
				in, b := Good(1), p.NewBuilder()
				missing := 0
				for i := range keys {
					b.AddHash(in.At(i))
					if !f.MayContainHash(in.At((i + worker*keys/4) % keys)) {
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

// numbered is a policy of a family that the package does not have.
type numbered struct {
	filterpolicy.Policy
	name string
}

func (n numbered) Name() string { return n.name }

func (numbered) Decode(data []byte) (filterpolicy.Filter, error) {
	if len(data) != 1 {
		return nil, filterpolicy.ErrCorrupt
	}
	return only(data[0]), nil
}

type only uint64

func (o only) MayContainHash(h uint64) bool { return h == uint64(o) }

func TestDecodeWithAFamilyOfOnesOwn(t *testing.T) {
	f, err := filterpolicy.DecodeWith(numbered{name: "own"}, "own", []byte{7})
	require.NoError(t, err)
	require.True(t, f.MayContainHash(7))
	require.False(t, f.MayContainHash(8))
	_, err = filterpolicy.DecodeWith(numbered{name: "own"}, "own", nil)
	require.ErrorIs(t, err, filterpolicy.ErrCorrupt)
	require.ErrorContains(t, err, "own")
	for _, p := range []filterpolicy.Policy{nil, numbered{name: "another"}} {
		_, err = filterpolicy.DecodeWith(p, "own", []byte{7})
		require.ErrorIs(t, err, filterpolicy.ErrUnknownFamily)
	}
	_, err = filterpolicy.DecodeWith(numbered{name: "bloom"}, "bloom", []byte{7})
	require.ErrorIs(t, err, filterpolicy.ErrCorrupt, "a family of the package cannot be replaced")
}

func TestHostileFiltersOfAnyName(t *testing.T) {
	for _, name := range append(filterpolicy.Families(), "", "other") {
		for _, data := range [][]byte{nil, make([]byte, 32), bytes.Repeat([]byte{0xff}, 1000)} {
			hostile.Bound{Fixed: 8 << 10}.Require(t, len(data), func() {
				_, _ = filterpolicy.Decode(name, data)
				_, _ = filterpolicy.DecodeWith(nil, name, data)
			})
		}
	}
}
