package keyfilter

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/filterpolicy"
)

// A refusal is a builder whose builds fail.
type refusal struct{}

func (refusal) AddHash(uint64)                           {}
func (refusal) Finish(dst []byte) (data []byte, ok bool) { return dst, false }

func TestAFailedBuildSaysMaybe(t *testing.T) {
	w := Writer{refusal{}}
	w.AddKey([]byte("a"))
	data, ok := w.Build([]byte("before"))
	require.False(t, ok)
	require.Equal(t, "before", string(data))
	data = w.Finish([]byte("before"))
	require.Equal(t, "before\x00", string(data))
	for _, d := range Decoders() {
		require.True(t, d.MayContain(data[6:], []byte("b")), d.Name())
		require.True(t, d.MayContain(nil, []byte("b")), d.Name())
	}
	require.Len(t, Decoders(), len(filterpolicy.Families())-1)
}

func TestOnlyPoliciesOfThisModuleHaveThisForm(t *testing.T) {
	for _, spec := range []string{"bloom:10", "blocked:10", "cuckoo:12", "ribbon:7", "gcs:7", "quotient:7", "xor:8",
		"fuse:8"} {
		p, err := filterpolicy.Parse(spec)
		require.NoError(t, err)
		k, ok := New(p)
		require.True(t, ok, spec)
		require.Equal(t, Prefix+p.Name(), k.Name())
		_, ok = New(struct{ filterpolicy.Policy }{p})
		require.False(t, ok, "another policy of the same name: %s", spec)
	}
	p, err := filterpolicy.Parse("none")
	require.NoError(t, err)
	_, ok := New(p)
	require.False(t, ok)
}

func TestAllHasEachFamilyOnce(t *testing.T) {
	given, err := filterpolicy.Parse("cuckoo:16,2")
	require.NoError(t, err)
	no, err := filterpolicy.Parse("none")
	require.NoError(t, err)
	foreign := struct{ filterpolicy.Policy }{given}
	all := All([]filterpolicy.Policy{no, given, foreign})
	require.Len(t, all, len(filterpolicy.Families())-1)
	for name, p := range all {
		require.Equal(t, name, p.Name())
		require.Equal(t, name, Prefix+p.of.Name())
		if name == Prefix+"cuckoo" {
			require.Equal(t, given, p.of)
			continue
		}
		rate := filterpolicy.Expected(p.of, 100_000).FPR
		require.LessOrEqual(t, rate, 0.01, name)
		require.Greater(t, rate, 0.004, name)
	}
	require.ErrorContains(t, Unknown("siftkv.bloomy"), `"siftkv.bloomy"`)
	require.ErrorContains(t, Unknown(""), "siftkv.blocked")
}
