package manifest

import (
	"encoding/hex"
	"path/filepath"
	"slices"
	"testing"

	"github.com/siftkv/siftkv/internal/base"
	"github.com/siftkv/siftkv/internal/golden"
	"github.com/stretchr/testify/require"
)

func wasteEdit() *Edit {
	e := &Edit{Added: append([]AddedTable(nil), sampleEdit().Added...)}
	e.Added[0].Table.Overwritten = 300
	e.Added[1].Table.ExpiryOctiles = base.Octiles{1, 1, 1 << 50, 1 << 50, 1 << 50, 1<<50 + 1, 1 << 62}
	return e
}

func TestGoldenWaste(t *testing.T) {
	e := wasteEdit()
	golden.File(t, filepath.Join("testdata", "waste.golden"), hex.Dump(e.Append(nil)))
	got, err := DecodeEdit(e.Append(nil))
	require.NoError(t, err)
	require.Equal(t, e, got)
	n := len(e.Added)
	require.Equal(t, []uint64{tagWaste, tagWaste}, tags(t, e.Append(nil))[n:])
}

func TestWasteIsOfATableAndSomething(t *testing.T) {
	table := (&Edit{Added: sampleEdit().Added[:1]}).Append(nil)
	num := sampleEdit().Added[0].Table.Num
	none := []uint64{0, 0, 0, 0, 0, 0, 0}
	for name, body := range map[string][]uint64{
		"no such table":    append([]uint64{num + 1, 1}, none...),
		"nothing":          append([]uint64{num, 0}, none...),
		"too short":        {num, 1},
		"too long":         append([]uint64{num, 1, 0}, none...),
		"moments overflow": {num, 1, 1 << 63, 1 << 63, 0, 0, 0, 0, 0},
	} {
		field := appendUvarints(nil, body...)
		b := append(append([]byte(nil), table...), tagWaste, byte(len(field)))
		_, err := DecodeEdit(append(b, field...))
		require.ErrorIs(t, err, errEdit, name)
	}
}

func TestGoldenDense(t *testing.T) {
	e := &Edit{Added: append([]AddedTable(nil), sampleEdit().Added...)}
	e.Added[0].Table.Deletes, e.Added[0].Table.DenseDeletes = 500, 300
	golden.File(t, filepath.Join("testdata", "dense.golden"), hex.Dump(e.Append(nil)))
	got, err := DecodeEdit(e.Append(nil))
	require.NoError(t, err)
	require.Equal(t, e, got)
	require.Equal(t, []uint64{tagDense}, tags(t, e.Append(nil))[len(e.Added):])
}

func TestDenseTombstonesAreOfATableThatHasThem(t *testing.T) {
	a := sampleEdit().Added[0]
	a.Table.Deletes = 5
	table, num := (&Edit{Added: []AddedTable{a}}).Append(nil), a.Table.Num
	decode := func(bodies ...[]uint64) error {
		b := append([]byte(nil), table...)
		for _, body := range bodies {
			field := appendUvarints(nil, body...)
			b = append(append(b, tagDense, byte(len(field))), field...)
		}
		_, err := DecodeEdit(b)
		return err
	}
	require.NoError(t, decode([]uint64{num, 5}))
	for name, bodies := range map[string][][]uint64{
		"no such table": {{num + 1, 1}},
		"nothing":       {{num, 0}},
		"too short":     {{num}},
		"too long":      {{num, 1, 0}},
		"too many":      {{num, 6}},
		"twice":         {{num, 1}, {num, 1}},
	} {
		require.ErrorIs(t, decode(bodies...), errEdit, name)
	}
}

func garbageEdit() *Edit {
	e := blobsEdit()
	for i := range e.Added {
		if t := &e.Added[i].Table; len(t.Blobs) > 0 {
			t.Garbage = Garbage{HiddenBytes: 5 << 20, Droppable: base.Droppable{Overwritten: 1, Expiring: t.BlobBytes(),
				LastExpiry: 1 << 62, Octiles: base.Octiles{1, 1, 1 << 50, 1 << 50, 1 << 50, 1<<50 + 1, 1 << 61}}}
		} else {
			t.Garbage.HiddenBytes = 1
		}
	}
	return e
}

func TestGoldenGarbage(t *testing.T) {
	e := garbageEdit()
	golden.File(t, filepath.Join("testdata", "garbage.golden"), hex.Dump(e.Append(nil)))
	got, err := DecodeEdit(e.Append(nil))
	require.NoError(t, err)
	require.Equal(t, e, got)
	n := 0
	for _, tag := range tags(t, e.Append(nil)) {
		if tag == tagGarbage {
			n++
		}
	}
	require.Len(t, e.Added, n)
}

func TestGarbageIsOfATableAndSomething(t *testing.T) {
	added := slices.IndexFunc(blobsEdit().Added, func(a AddedTable) bool { return len(a.Table.Blobs) > 0 })
	table := &blobsEdit().Added[added].Table
	edit := blobsEdit().Append(nil)
	none := make([]uint64, 7)
	for name, body := range map[string][]uint64{
		"no such table":    append([]uint64{table.Num + 1000, 1, 0, 0, 0}, none...),
		"nothing":          append([]uint64{table.Num, 0, 0, 0, 0}, none...),
		"too short":        {table.Num, 1, 0, 0, 0},
		"too long":         append([]uint64{table.Num, 1, 0, 0, 0, 0}, none...),
		"more than it has": append([]uint64{table.Num, 0, table.BlobBytes() + 1, 0, 0}, none...),
		"more that expire": append([]uint64{table.Num, 0, 0, table.BlobBytes() + 1, 1}, none...),
	} {
		field := appendUvarints(nil, body...)
		_, err := DecodeEdit(append(append(slices.Clip(edit), tagGarbage, byte(len(field))), field...))
		require.ErrorIs(t, err, errEdit, name)
	}
	field := appendUvarints(nil, append([]uint64{table.Num, 0, table.BlobBytes(), 0, 0}, none...)...)
	_, err := DecodeEdit(append(append(slices.Clip(edit), tagGarbage, byte(len(field))), field...))
	require.NoError(t, err)
}
