package remote

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

func sampleBodies() map[string]body {
	chunks := []chunk{{5, 100, []byte("abc")}, {6, 0, []byte("some records")}, {5, 103, []byte("d")}}
	return map[string]body{
		"chunks": {lists: 5, chunks: chunks},
		"both":   {lists: bodySlot, list: []byte("a list of files"), chunks: chunks[:1]},
		"edit":   {lists: bodySlot, edit: []byte("an edit of a list"), chunks: chunks[1:]},
		"first":  {lists: bodySlot, list: []byte{}},
		"none":   {},
	}
}

func TestGoldenBodies(t *testing.T) {
	for name, b := range sampleBodies() {
		golden.File(t, filepath.Join("testdata", "body-"+name+".golden"), b.encode())
		got, err := decodeBody(b.encode(), bodySlot, "k")
		require.NoError(t, err)
		require.Equal(t, b, got)
	}
}

func TestPartsThatCannotBe(t *testing.T) {
	list, chunks := sampleBodies()["both"], sampleBodies()["chunks"]
	later := list.encode()
	later[bodyHeader] = partEdit + 1
	_, err := decodeBody(later, bodySlot, "some/key")
	require.ErrorIs(t, err, manifest.ErrNewerFormat)
	require.ErrorContains(t, err, "some/key")
	missing := chunks
	missing.lists = bodySlot
	second := append(chunks.encode(), list.encode()[bodyHeader:]...)
	twice := list
	twice.edit = []byte("an edit of a list")
	upper := list.encode()
	upper[bodyHeader+4] = 1
	ahead := chunks
	ahead.lists = bodySlot + 1
	for name, b := range map[string][]byte{
		"nothing":               {},
		"no list":               missing.encode(),
		"a list behind a chunk": second,
		"a list and an edit":    twice.encode(),
		"an upper half":         upper,
		"a list to come":        ahead.encode(),
	} {
		_, err := decodeBody(b, bodySlot, "k")
		require.ErrorIs(t, err, base.ErrCorruption, name)
	}
	_, err = decodeBody(list.encode(), bodySlot+1, "k")
	require.ErrorIs(t, err, base.ErrCorruption, "a list of another slot")
}

// requireBody requires that a body is refused, or has one form.
func requireBody(tb testing.TB, b []byte) {
	tb.Helper()
	hostile.Bound{PerByte: 8, Fixed: 8 << 10}.Require(tb, len(b), func() { _, _ = decodeBody(b, bodySlot, "k") })
	got, err := decodeBody(b, bodySlot, "some/key")
	if err == nil {
		require.True(tb, bytes.Equal(b, got.encode()))
		return
	}
	require.True(tb, errors.Is(err, base.ErrCorruption) || errors.Is(err, manifest.ErrNewerFormat))
	require.ErrorContains(tb, err, "some/key")
}

func TestHostileBodies(t *testing.T) {
	for _, b := range sampleBodies() {
		for mutant := range hostile.Mutants(b.encode(), 500) {
			requireBody(t, mutant)
		}
	}
}

func FuzzHostileBody(f *testing.F) {
	for _, b := range sampleBodies() {
		f.Add(b.encode())
	}
	f.Fuzz(func(t *testing.T, b []byte) { requireBody(t, b) })
}
