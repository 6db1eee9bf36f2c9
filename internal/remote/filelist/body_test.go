package filelist

import (
	"bytes"
	"errors"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/internal/base"
	"github.com/siftkv/siftkv/internal/golden"
	"github.com/siftkv/siftkv/internal/hostile"
	"github.com/siftkv/siftkv/internal/manifest"
)

// bodySlot is that of the sample bodies.
const bodySlot = 7

func sampleBodies() map[string]Body {
	chunks := []Chunk{{5, 100, []byte("abc")}, {6, 0, []byte("some records")}, {5, 103, []byte("d")}}
	return map[string]Body{
		"chunks": {ListSlot: 5, Chunks: chunks},
		"both":   {ListSlot: bodySlot, List: []byte("a list of files"), Chunks: chunks[:1]},
		"edit":   {ListSlot: bodySlot, Edit: []byte("an edit of a list"), Chunks: chunks[1:]},
		"first":  {ListSlot: bodySlot, List: []byte{}},
		"none":   {},
	}
}

func TestGoldenBodies(t *testing.T) {
	for name, b := range sampleBodies() {
		golden.File(t, filepath.Join("testdata", "body-"+name+".golden"), b.Encode())
		got, err := DecodeBody(b.Encode(), bodySlot, "k")
		require.NoError(t, err)
		require.Equal(t, b, got)
	}
}

func TestPartsThatCannotBe(t *testing.T) {
	list, chunks := sampleBodies()["both"], sampleBodies()["chunks"]
	later := list.Encode()
	later[bodyHeader] = partEdit + 1
	_, err := DecodeBody(later, bodySlot, "some/key")
	require.ErrorIs(t, err, manifest.ErrNewerFormat)
	require.ErrorContains(t, err, "some/key")
	missing := chunks
	missing.ListSlot = bodySlot
	second := append(chunks.Encode(), list.Encode()[bodyHeader:]...)
	twice := list
	twice.Edit = []byte("an edit of a list")
	upper := list.Encode()
	upper[bodyHeader+4] = 1
	ahead := chunks
	ahead.ListSlot = bodySlot + 1
	for name, b := range map[string][]byte{
		"nothing":               {},
		"no list":               missing.Encode(),
		"a list behind a chunk": second,
		"a list and an edit":    twice.Encode(),
		"an upper half":         upper,
		"a list to come":        ahead.Encode(),
	} {
		_, err := DecodeBody(b, bodySlot, "k")
		require.ErrorIs(t, err, base.ErrCorruption, name)
	}
	_, err = DecodeBody(list.Encode(), bodySlot+1, "k")
	require.ErrorIs(t, err, base.ErrCorruption, "a list of another slot")
}

// requireBody requires that a body is refused, or has one form.
func requireBody(tb testing.TB, b []byte) {
	tb.Helper()
	hostile.Bound{PerByte: 8, Fixed: 8 << 10}.Require(tb, len(b), func() { _, _ = DecodeBody(b, bodySlot, "k") })
	got, err := DecodeBody(b, bodySlot, "some/key")
	if err == nil {
		require.True(tb, bytes.Equal(b, got.Encode()))
		return
	}
	require.True(tb, errors.Is(err, base.ErrCorruption) || errors.Is(err, manifest.ErrNewerFormat))
	require.ErrorContains(tb, err, "some/key")
}

func TestHostileBodies(t *testing.T) {
	for _, b := range sampleBodies() {
		for mutant := range hostile.Mutants(b.Encode(), 500) {
			requireBody(t, mutant)
		}
	}
}

func FuzzHostileBody(f *testing.F) {
	for _, b := range sampleBodies() {
		f.Add(b.Encode())
	}
	f.Fuzz(func(t *testing.T, b []byte) { requireBody(t, b) })
}
