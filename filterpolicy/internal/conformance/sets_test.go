package conformance

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/filterpolicy"
	"github.com/siftkv/siftkv/filterpolicy/blocked"
	"github.com/siftkv/siftkv/filterpolicy/bloom"
	"github.com/siftkv/siftkv/filterpolicy/counting"
	"github.com/siftkv/siftkv/filterpolicy/cuckoo"
	"github.com/siftkv/siftkv/filterpolicy/quotient"
	"github.com/siftkv/siftkv/filterpolicy/scalable"
)

// The sets are siblings: what two of them can do has the same name and form.
type (
	adder interface { // never refuses a key
		Adder
		Filled
	}
	remover interface { // nor this; and gives keys back
		adder
		Remover
	}
	table interface { // refuses keys when it is full, and gives them back
		Refuser
		Loaded
		Remover
	}
	immutable interface {
		Set
		Loaded
	}
	merger[S any] interface{ Merge(o S) error }
)

var (
	_ adder     = (*bloom.Set)(nil)
	_ adder     = (*bloom.ConcurrentSet)(nil)
	_ adder     = (*blocked.Set)(nil)
	_ adder     = (*scalable.Set)(nil)
	_ remover   = (*counting.Set)(nil)
	_ table     = (*cuckoo.Set)(nil)
	_ table     = (*quotient.Set)(nil)
	_ immutable = (*filterpolicy.Set)(nil)

	_ merger[*bloom.Set]    = (*bloom.Set)(nil)
	_ merger[*blocked.Set]  = (*blocked.Set)(nil)
	_ merger[*counting.Set] = (*counting.Set)(nil)
	_ merger[*quotient.Set] = (*quotient.Set)(nil)
)

// families are the sets that keys are added to. All are made for a number of keys
// and a rate, and those that have options for options, of which nil are none.
var families = map[string]Family[Set]{
	"bloom":      Of(bloom.New).Any(),
	"concurrent": Of(bloom.NewConcurrent).Any(),
	"blocked":    Of(blocked.New).Any(),
	"counting":   With(counting.New, nil).Any(),
	"scalable":   With(scalable.New, nil).Any(),
	"cuckoo":     With(cuckoo.New, nil).Any(),
	"quotient":   With(quotient.New, nil).Any(),
}

// forEachFull runs a function over sets of every kind, those of the families and
// immutable ones of every policy, full with n keys at about 1 %.
func forEachFull(t *testing.T, n int, run func(t *testing.T, name string, s Set)) {
	t.Helper()
	for name, f := range families {
		run(t, name, f.Filled(t, n, 0.01))
	}
	for _, spec := range staticSpecs {
		run(t, spec, buildSet(t, spec, n))
	}
}

// The rate query of a well-known library resets the filter. Here it leaves every
// byte as it is, and so do the other questions.
func TestFaultRateQueryResetsTheFilter(t *testing.T) {
	const n = 1000
	forEachFull(t, n, func(t *testing.T, name string, s Set) {
		t.Helper()
		before, rate := Bytes(t, s), s.FalsePositiveRate()
		require.Positive(t, rate, name)
		for range 3 {
			require.Equal(t, rate, s.FalsePositiveRate(), name)
			require.NotZero(t, Fullness(s), name)
			require.NotZero(t, min(s.Len(), s.Cap(), s.Size()), name)
		}
		require.Equal(t, before, Bytes(t, s), name)
		Holds(t, s, n)
	})
}

// mostBits are the bits per key that sets of 1 % may take at any size from 8192
// keys on. Policies that build filters for files have rates of their own.
var mostBits = map[string]float64{
	"bloom": 9.65, "concurrent": 9.65, "blocked": 10.0, "counting": 38.5, "scalable": 13.0, "cuckoo": 10.7,
	"quotient": 9.9,
	"bloom:10": 10.1, "blocked:10": 10.15, "cuckoo:12": 12.75, "xor:8": 10.0, "fuse:8": 10.4, "ribbon:7": 7.2,
	"gcs:7": 8.65, "quotient:7": 9.9,
}

// Tables of a well-known library have a power of two of buckets and take 20 bits
// per key just above one. Here a key more costs no more than the key.
func TestFaultSizesAbovePowersOfTwo(t *testing.T) {
	for log := 13; 1<<log <= max(1<<13, Share(1<<16)); log++ {
		for _, n := range []int{1<<log - 1, 1 << log, 1<<log + 1, 1<<log + 1<<log/16, 1<<log + 1<<log/2} {
			forEachFull(t, n, func(t *testing.T, name string, s Set) {
				t.Helper()
				require.LessOrEqual(t, 8*float64(s.Size())/float64(n), mostBits[name], "%s, %d keys", name, n)
			})
		}
	}
}

// Sets of one kind do not take another's bytes, and say whose they are.
func TestSetsTellEachOtherApart(t *testing.T) {
	stored := map[string][]byte{}
	forEachFull(t, 20, func(t *testing.T, name string, s Set) {
		t.Helper()
		stored[name] = Bytes(t, s)
	})
	kind := func(name string) string {
		name = strings.Replace(name, "concurrent", "bloom", 1)
		if strings.Contains(name, ":") {
			return "immutable"
		}
		return name
	}
	for name, f := range families {
		for other, data := range stored {
			err := f.Zero().UnmarshalBinary(data)
			if kind(name) == kind(other) {
				require.NoError(t, err)
				continue
			}
			require.ErrorIs(t, err, filterpolicy.ErrCorrupt)
			require.ErrorContains(t, err, fmt.Sprintf("family is %q", data[4]))
		}
	}
}
