package filterpolicy_test

import (
	"bytes"
	"encoding/binary"
	"hash/crc32"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/filterpolicy"
	"github.com/siftkv/siftkv/internal/golden"
)

func mustParse(t testing.TB, spec string) filterpolicy.Policy {
	t.Helper()
	p, err := filterpolicy.Parse(spec)
	require.NoError(t, err)
	return p
}

// numbers returns the hashes of n keys, from the first on.
func numbers(first uint64, n int) []uint64 {
	hashes := make([]uint64, n)
	for i := range hashes {
		hashes[i] = filterpolicy.Hash(binary.BigEndian.AppendUint64(nil, first+uint64(i)))
	}
	return hashes
}

func build(t testing.TB, b filterpolicy.Builder, hashes []uint64) []byte {
	t.Helper()
	for _, h := range hashes {
		b.AddHash(h)
	}
	data, ok := b.Finish(nil)
	require.True(t, ok)
	return data
}

func TestSaltedSpecs(t *testing.T) {
	for spec, text := range map[string]string{"salted:blocked:10": "salted:blocked:10",
		"salted:fuse:8,4": "salted:fuse:8,4", "salted:bloom:rate=0.01": "salted:bloom:9.593"} {
		p := mustParse(t, spec)
		require.Equal(t, filterpolicy.SaltedName, p.Name())
		require.Equal(t, text, p.String())
		require.True(t, p == mustParse(t, text))
		inner := mustParse(t, text[len("salted:"):])
		e, plain := filterpolicy.Expected(p, 1<<20), filterpolicy.Expected(inner, 1<<20)
		require.Equal(t, plain.FPR, e.FPR)
		require.InDelta(t, plain.BitsPerKey, e.BitsPerKey, 0.001)
	}
	for _, spec := range []string{"salted", "salted:", "salted:none", "salted:salted:blocked:10", "salted:sieve:3",
		"salted:bloom"} {
		_, err := filterpolicy.Parse(spec)
		require.ErrorIs(t, err, filterpolicy.ErrBadSpec, spec)
	}
	p, ok := filterpolicy.WithBits(mustParse(t, "salted:blocked:10"), 14)
	require.True(t, ok)
	require.Equal(t, "salted:blocked:14", p.String())
	_, ok = filterpolicy.WithBits(mustParse(t, "salted:fuse:8"), 1)
	require.False(t, ok)
	bits := filterpolicy.Spread(mustParse(t, "salted:blocked:10"), 12_500, []uint64{1000, 9000})
	require.Greater(t, bits[0], bits[1])
}

// No key that is there is denied, the rate is that of the family, and each file errs for keys of its own.
func TestSaltsErrForDifferentKeys(t *testing.T) {
	const n = 20_000
	for _, spec := range []string{"bloom:6", "blocked:6", "cuckoo:8", "fuse:6", "ribbon:6", "xor:6", "gcs:6",
		"quotient:6"} {
		keys, absent := numbers(0, n), numbers(1<<40, 4*n)
		b := mustParse(t, "salted:"+spec).NewBuilder()
		rate := filterpolicy.Expected(mustParse(t, spec), n).FPR
		var filters []filterpolicy.Filter
		for range 2 {
			f, err := filterpolicy.Decode(filterpolicy.SaltedName, build(t, b, keys))
			require.NoError(t, err)
			for _, h := range keys {
				require.True(t, f.MayContainHash(h), spec)
			}
			filters = append(filters, f)
		}
		first, both := 0, 0
		for _, h := range absent {
			if filters[0].MayContainHash(h) {
				first++
				if filters[1].MayContainHash(h) {
					both++
				}
			}
		}
		require.InEpsilon(t, rate, float64(first)/(4*n), 0.25, spec)
		require.Less(t, float64(both), 3*rate*float64(first), "%s: they err independently", spec)
	}
}

func TestSaltIsABijection(t *testing.T) {
	seen := map[uint64]bool{}
	for _, h := range numbers(0, 10_000) {
		for _, secret := range []uint64{1, 2} {
			seen[filterpolicy.Salt(h, secret)] = true
		}
	}
	require.Len(t, seen, 20_000)
	require.EqualValues(t, uint64(0xb456bcfc34c2cb2c), filterpolicy.Salt(0, 1), "it is part of the format")
}

// Any bytes are safe, and what is cut short is damage or an unknown family.
func TestSaltedBytesOfOthers(t *testing.T) {
	data := build(t, mustParse(t, "salted:blocked:10").NewBuilder(), numbers(0, 100))
	for n := range data {
		_, err := filterpolicy.Decode(filterpolicy.SaltedName, data[:n])
		require.Error(t, err)
	}
	for i := range data {
		for _, flip := range []byte{1, 0x80, 0xff} {
			damaged := append([]byte{}, data...)
			damaged[i] ^= flip
			if f, err := filterpolicy.Decode(filterpolicy.SaltedName, damaged); err == nil {
				require.GreaterOrEqual(t, i, len(data)-8, "only another salt is a filter still")
				f.MayContainHash(1)
			}
		}
	}
	for _, bad := range [][]byte{nil, make([]byte, 9), append([]byte("salted\x06"), 1, 0, 0, 0, 0, 0, 0, 0),
		append([]byte("none\x04"), 1, 0, 0, 0, 0, 0, 0, 0)} {
		_, err := filterpolicy.Decode(filterpolicy.SaltedName, bad)
		require.ErrorIs(t, err, filterpolicy.ErrCorrupt)
	}
	_, err := filterpolicy.Decode(filterpolicy.SaltedName, append([]byte("later\x05"), 1, 0, 0, 0, 0, 0, 0, 0))
	require.ErrorIs(t, err, filterpolicy.ErrUnknownFamily, "of a later version, perhaps")
	require.NotContains(t, filterpolicy.Families(), filterpolicy.SaltedName)
	_, ok := filterpolicy.Probe(filterpolicy.SaltedName)
	require.False(t, ok, "engines that probe bytes have none")
}

func TestSaltedGolden(t *testing.T) {
	const secret = 0x0123456789abcdef
	b := mustParse(t, "blocked:10").NewBuilder()
	for _, h := range numbers(0, 40) {
		b.AddHash(filterpolicy.Salt(h, secret))
	}
	data, ok := b.Finish(nil)
	require.True(t, ok)
	data = binary.LittleEndian.AppendUint64(append(data, "blocked\x07"...), secret)
	golden.File(t, "testdata/salted-blocked-10.golden", data)
	f, err := filterpolicy.Decode(filterpolicy.SaltedName, data)
	require.NoError(t, err)
	require.EqualValues(t, uint64(secret), f.(*filterpolicy.SaltedFilter).Secret)
	for _, h := range numbers(0, 40) {
		require.True(t, f.MayContainHash(h))
	}
	own := build(t, mustParse(t, "salted:blocked:10").NewBuilder(), numbers(0, 40))
	require.Len(t, own, len(data))
	require.Equal(t, "blocked\x07", string(own[len(own)-16:len(own)-8]))
}

// another is a policy of a program's own with a name that this package has.
type another struct{ filterpolicy.Policy }

func (another) Name() string { return filterpolicy.SaltedName }

func (another) Decode([]byte) (filterpolicy.Filter, error) { return nil, filterpolicy.ErrCorrupt }

func TestSaltedIsAFamilyOfThePackage(t *testing.T) {
	data := build(t, mustParse(t, "salted:blocked:10").NewBuilder(), numbers(0, 40))
	_, err := filterpolicy.DecodeWith(another{}, filterpolicy.SaltedName, data)
	require.NoError(t, err, "a family of the package cannot be replaced")
}

// A stored set whose filter is of another family than its policy says is none, as without a salt.
func TestSaltedSets(t *testing.T) {
	keys := slices.Values(numbers(0, 100))
	set, err := filterpolicy.BuildHashes(mustParse(t, "salted:blocked:10"), keys)
	require.NoError(t, err)
	stored, err := set.MarshalBinary()
	require.NoError(t, err)
	var back filterpolicy.Set
	require.NoError(t, back.UnmarshalBinary(stored))
	require.Equal(t, set.Policy(), back.Policy())
	for h := range keys {
		require.True(t, back.ContainsHash(h))
	}
	of, err := filterpolicy.BuildHashes(mustParse(t, "salted:bloom:10"), keys)
	require.NoError(t, err)
	forged, err := of.MarshalBinary()
	require.NoError(t, err)
	spec := bytes.Replace(forged, []byte("salted:bloom:10"), []byte("salted:fuse:8,4"), 1)
	require.NotEqual(t, forged, spec)
	sum := crc32.Checksum(spec[:len(spec)-4], crc32.MakeTable(crc32.Castagnoli))
	binary.LittleEndian.PutUint32(spec[len(spec)-4:], sum)
	require.ErrorIs(t, back.UnmarshalBinary(spec), filterpolicy.ErrCorrupt)
	require.Equal(t, set.Policy(), back.Policy(), "it is as it was")
}

// FuzzDecodeSalted: any bytes are safe.
func FuzzDecodeSalted(f *testing.F) {
	f.Add(build(f, mustParse(f, "salted:blocked:10").NewBuilder(), numbers(0, 10)))
	f.Add(build(f, mustParse(f, "salted:fuse:8").NewBuilder(), numbers(0, 10)))
	f.Fuzz(func(_ *testing.T, data []byte) {
		if filter, err := filterpolicy.Decode(filterpolicy.SaltedName, data); err == nil {
			filter.MayContainHash(uint64(len(data)))
		}
	})
}

func BenchmarkSalt(b *testing.B) {
	h := uint64(1)
	for b.Loop() {
		h = filterpolicy.Salt(h, 42)
	}
	if h == 0 {
		b.Fatal("no hash of these is 0")
	}
}
