package conformance

import (
	"encoding/binary"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/filterpolicy"
	"github.com/siftkv/siftkv/filterpolicy/gcs"
	"github.com/siftkv/siftkv/internal/base"
)

func gcsMergeable(tb testing.TB, bits string) Mergeable[*gcs.Filter] {
	tb.Helper()
	p, err := gcs.Parse(bits)
	require.NoError(tb, err)
	return Mergeable[*gcs.Filter]{
		NewBuilderFor: func(keys int) filterpolicy.Builder { return p.NewBuilderFor(keys) },
		Decode:        gcs.Decode, Merge: gcs.Merge, ErrUnlike: gcs.ErrUnlike,
	}
}

func TestGcsMerge(t *testing.T) {
	for _, bits := range []string{"1", "6.644", "32"} {
		t.Run(bits, gcsMergeable(t, bits).Check)
	}
}

// Merges may go beyond the number of keys that the range is for: the rate is then the
// sum of the parts'.
func TestGcsMergeBeyondTheRange(t *testing.T) {
	const n, parts, probes = 2000, 4, 50_000
	m := gcsMergeable(t, "6")
	all, _ := m.Build(t, n, 0, n)
	for part := uint64(1); part < parts; part++ {
		next, _ := m.Build(t, n, part*n, (part+1)*n)
		data, err := gcs.Merge(nil, all, next)
		require.NoError(t, err)
		all, err = gcs.Decode(data)
		require.NoError(t, err)
	}
	positives := 0
	for i := range uint64(probes) {
		if i < parts*n {
			require.True(t, all.MayContainHash(Good(1).At(i)))
		}
		if all.MayContainHash(Good(2).At(i)) {
			positives++
		}
	}
	require.InDelta(t, parts/64.0, float64(positives)/probes, 0.006)
}

// Values that are not of their bucket, which no builder writes, are refused and not
// carried on.
func TestGcsMergeRefusesDamage(t *testing.T) {
	sound, data := gcsMergeable(t, "7").Build(t, 300, 0, 300)
	narrow := slices.Clone(data)
	width := narrow[len(narrow)-32-24:]
	binary.LittleEndian.PutUint64(width, 2)
	a, err := gcs.Decode(Reseal(narrow))
	require.NoError(t, err, "the codes are not read before they are asked")
	got, err := gcs.Merge([]byte("x"), a, a)
	require.ErrorIs(t, err, filterpolicy.ErrCorrupt)
	require.ErrorIs(t, err, base.ErrCorruption)
	require.Equal(t, "x", string(got))

	binary.LittleEndian.PutUint64(width, 1<<63)
	wide, err := gcs.Decode(Reseal(narrow))
	require.NoError(t, err)
	_, err = gcs.Merge(nil, wide, wide)
	require.ErrorIs(t, err, filterpolicy.ErrCorrupt)
	_, err = gcs.Merge(nil, wide, sound)
	require.ErrorIs(t, err, gcs.ErrUnlike)
}

func TestGcsHostileMerges(t *testing.T) { gcsMergeable(t, "7").Hostile(t, "gcs:7") }

func FuzzGcsMerge(f *testing.F) { gcsMergeable(f, "7").Fuzz(f, "gcs:7") }
