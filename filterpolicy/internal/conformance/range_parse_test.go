package conformance

import (
	"encoding/hex"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/filterpolicy"
	"github.com/siftkv/siftkv/internal/golden"
)

func TestParseRange(t *testing.T) {
	for spec, want := range map[string]struct{ name, text string }{
		"none":          {"none", "none"},
		"cut:0":         {"cut", "cut:0"},
		"cut:6":         {"cut", "cut:6"},
		"cut:06":        {"cut", "cut:6"},
		"cut:16":        {"cut", "cut:16"},
		"cut:rate=0.01": {"cut", "cut:7"},
		"cut:rate=0.02": {"cut", "cut:6"},
		"cut:rate=0.5":  {"cut", "cut:1"},
	} {
		p, err := filterpolicy.ParseRange(spec)
		require.NoError(t, err, spec)
		require.Equal(t, want.name, p.Name(), spec)
		require.Equal(t, want.text, p.String(), spec)
		again, err := filterpolicy.ParseRange(p.String())
		require.NoError(t, err, spec)
		require.True(t, p == again, "%s is not equal to itself", spec)
	}
	require.False(t, RangePolicy(t, "cut:6") == RangePolicy(t, "cut:7"))
}

func TestParseRangeSaysWhatIsWrong(t *testing.T) {
	for spec, want := range map[string]string{
		"":           "unknown family; the families are none, cut:BITS",
		"blocked:10": "unknown family; the families are none, cut:BITS",
		"Cut:6":      "unknown family",
		"none:":      `its form is none; for example "none"`,
		"none:1":     "no filter has no parameters",
		"cut":        `its form is cut:BITS; for example "cut:6"`,
		"cut:":       `its form is cut:BITS; for example "cut:6"`,
		"cut:17":     `extra bits must be a whole number from 0 to 16, not "17"; for example "cut:6"`,
		"cut:-1":     "extra bits must be a whole number from 0 to 16",
		"cut:6.5":    "extra bits must be a whole number from 0 to 16",
		"cut:rate=2": `rate must be a decimal fraction from 1.11e-05 to 0.5, such as 0.01, not "2"`,
	} {
		p, err := filterpolicy.ParseRange(spec)
		require.Nil(t, p, spec)
		require.ErrorIs(t, err, filterpolicy.ErrBadSpec, spec)
		require.ErrorContains(t, err, want, spec)
		require.ErrorContains(t, err, "; for example ", spec)
	}
}

func TestDecodeRangeOfUnknownFamily(t *testing.T) {
	for _, name := range []string{"", "blocked", "Cut", "cut:6"} {
		f, err := filterpolicy.DecodeRange(name, nil)
		require.Nil(t, f)
		require.ErrorIs(t, err, filterpolicy.ErrUnknownFamily)
		require.NotErrorIs(t, err, filterpolicy.ErrCorrupt)
		require.ErrorContains(t, err, "this program has none, cut:BITS")
	}
}

func TestNoRangeFilterIsBuiltByNone(t *testing.T) {
	b := RangePolicy(t, "none").NewRangeBuilder()
	b.AddKey([]byte("a"))
	data, ok := b.Finish([]byte("x"))
	require.False(t, ok)
	require.Equal(t, "x", string(data))
	f, err := filterpolicy.DecodeRange("none", nil)
	require.NoError(t, err)
	require.True(t, f.MayContainRange([]byte("a"), []byte("b")))
	_, err = filterpolicy.DecodeRange("none", []byte("x"))
	require.ErrorIs(t, err, filterpolicy.ErrCorrupt)
}

// A difference means that files on disk can no longer be read.
func TestRangeGolden(t *testing.T) {
	eachRangeSpec(t, func(t *testing.T, spec string) {
		var text strings.Builder
		for _, kind := range []string{"random", "words", "alike", "every byte"} {
			for _, n := range []int{0, 1, 2, 100} {
				list := kindNamed(t, kind).sorted(rand.New(rand.NewPCG(1, uint64(n))), n)
				data := BuildRange(t, spec, list)
				neighbours(t, OpenRange(t, spec, data), list)
				fmt.Fprintf(&text, "%s, %s, %d keys, %d bytes\n%s", spec, kind, n, len(data), hex.Dump(data))
			}
		}
		dir := map[string]string{"cut": "cutkeys"}[RangePolicy(t, spec).Name()]
		golden.File(t, filepath.Join("..", "..", dir, "testdata", strings.ReplaceAll(spec, ":", "-")+".golden"),
			text.String())
	})
}

func kindNamed(t *testing.T, name string) keyKind {
	t.Helper()
	for _, kind := range keyKinds {
		if kind.name == name {
			return kind
		}
	}
	require.Fail(t, "no such kind of keys", name)
	return keyKind{}
}
