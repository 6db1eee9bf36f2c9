package manifest

import (
	"encoding/hex"
	"path/filepath"
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
