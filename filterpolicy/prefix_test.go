package filterpolicy

import (
	"bytes"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestParsePrefix(t *testing.T) {
	for name, want := range map[string]map[string]string{
		"fixed:3":       {"abcdef": "abc", "abc": "abc", "ab": "-", "": "-"},
		"delimiter:/":   {"a/b/c": "a/", "/": "/", "abc": "-", "": "-"},
		"delimiter:/,2": {"a/b/c": "a/b/", "a/b": "-", "//": "//"},
		"delimiter:,,3": {"1,2,3,4": "1,2,3,"},
	} {
		p, err := ParsePrefix(name)
		require.NoError(t, err, name)
		require.Equal(t, name, p.Name())
		for key, prefix := range want {
			got, ok := p.Prefix([]byte(key))
			require.Equal(t, prefix != "-", ok, "%s of %q", name, key)
			if ok {
				require.Equal(t, prefix, string(got))
			}
		}
	}
	for _, bad := range []string{"", "fixed", "fixed:0", "fixed:1025", "fixed:x", "delimiter", "delimiter:",
		"delimiter:é", "delimiter:/,", "delimiter:/,0", "delimiter:/2", "prefix:3"} {
		_, err := ParsePrefix(bad)
		require.ErrorIs(t, err, ErrBadSpec, "%q", bad)
	}
}

// TestWithinPrefix checks that a range within a prefix holds only keys that have
// it, against every key of a small alphabet.
func TestWithinPrefix(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	alphabet := []byte{0, '/', 'a', 0xff}
	random := func() []byte {
		k := make([]byte, rng.IntN(6))
		for i := range k {
			k[i] = alphabet[rng.IntN(len(alphabet))]
		}
		return k
	}
	for _, name := range []string{"fixed:1", "fixed:2", "delimiter:/", "delimiter:/,2"} {
		p, err := ParsePrefix(name)
		require.NoError(t, err)
		within := 0
		for range 60_000 {
			lo, hi := random(), random()
			prefix, ok := WithinPrefix(p, lo, hi)
			if !ok || bytes.Compare(lo, hi) >= 0 {
				continue
			}
			within++
			for range 20 {
				k := random()
				if bytes.Compare(k, lo) < 0 || bytes.Compare(k, hi) >= 0 {
					continue
				}
				got, ok := p.Prefix(k)
				require.True(t, ok && bytes.Equal(got, prefix), "%s: %q in [%q, %q) has not the prefix %q", name, k,
					lo, hi, prefix)
			}
		}
		require.Greater(t, within, 50, name)
		_, ok := WithinPrefix(p, nil, []byte("x"))
		require.False(t, ok)
		_, ok = WithinPrefix(p, []byte("a/b/c"), nil)
		require.False(t, ok)
	}
}
