package manifest

import (
	"encoding/hex"
	"math"
	"path/filepath"
	"slices"
	"testing"

	"github.com/siftkv/siftkv/internal/golden"
	"github.com/stretchr/testify/require"
)

func blobsEdit() *Edit {
	e := &Edit{
		Features:     FeatureSeparated,
		AddedBlobs:   []BlobFile{{14, 0xb10b, 5000, 3, 4800}, {15, 1, 88, 1, 0}},
		DeletedBlobs: []uint64{3, 300},
		Added:        slices.Clone(sampleEdit().Added),
	}
	e.Added[0].Table.Blobs = []BlobRef{{9, 1, 70_000}, {14, 3, 4900}, {1 << 40, 46, 1 << 50}}
	e.Added[2].Table.Entries = 1
	e.Added[2].Table.Blobs = []BlobRef{{15, 1, 9}}
	return e
}

func TestGoldenBlobs(t *testing.T) {
	e := blobsEdit()
	golden.File(t, filepath.Join("testdata", "blobs.golden"), hex.Dump(e.Append(nil)))
	got, err := DecodeEdit(e.Append(nil))
	require.NoError(t, err)
	require.Equal(t, e, got)
	require.Equal(t, []uint64{tagFeatures, tagAdded, tagAdded, tagAdded, tagAddedBlob, tagAddedBlob, tagDeletedBlob,
		tagDeletedBlob, tagBlobRefs, tagBlobRefs}, tags(t, e.Append(nil)))
	require.Equal(t, "000014.blob", e.AddedBlobs[0].Name())
}

func TestReferencesAreOfATableThatHasThem(t *testing.T) {
	a := sampleEdit().Added[0] // 50 entries
	table, num := (&Edit{Added: []AddedTable{a}}).Append(nil), a.Table.Num
	decode := func(bodies ...[]uint64) error {
		b := slices.Clone(table)
		for _, body := range bodies {
			field := appendUvarints(nil, body...)
			b = append(append(b, tagBlobRefs, byte(len(field))), field...)
		}
		_, err := DecodeEdit(b)
		return err
	}
	require.NoError(t, decode([]uint64{num, 14, 50, 50}))
	for name, bodies := range map[string][][]uint64{
		"no such table":      {{num + 1, 14, 1, 9}},
		"nothing":            {{num}},
		"too short":          {{num, 14, 1}},
		"too long":           {{num, 14, 1, 9, 15}},
		"no number":          {{num, 0, 1, 9}},
		"no records":         {{num, 14, 0, 9}},
		"no bytes":           {{num, 14, 2, 1}},
		"twice":              {{num, 14, 1, 9, 14, 1, 9}},
		"not ascending":      {{num, 15, 1, 9, 14, 1, 9}},
		"more than entries":  {{num, 14, 51, 99}},
		"more in all":        {{num, 14, 50, 99, 15, 1, 9}},
		"more than a number": {{num, 14, 50, 99, 15, math.MaxUint64, math.MaxUint64}},
		"a second list":      {{num, 14, 1, 9}, {num, 15, 1, 9}},
	} {
		require.ErrorIs(t, decode(bodies...), errEdit, name)
	}
}

func TestABlobFileHasANumberAnIDAndRecords(t *testing.T) {
	for name, b := range map[string]BlobFile{
		"no number": {0, 1, 100, 1, 1}, "no id": {1, 0, 100, 1, 1}, "no records": {1, 1, 100, 0, 1},
		"no size": {1, 1, math.MinInt64, 1, 1},
	} {
		_, err := DecodeEdit((&Edit{AddedBlobs: []BlobFile{b}}).Append(nil))
		require.ErrorIs(t, err, errEdit, name)
	}
}
