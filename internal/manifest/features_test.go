package manifest

import (
	"encoding/hex"
	"path/filepath"
	"testing"

	"github.com/siftkv/siftkv/internal/golden"
	"github.com/stretchr/testify/require"
)

func featuresEdit() *Edit {
	e := &Edit{Features: FeatureMerge | FeatureTTL, Merger: "a merger"}
	for _, a := range sampleEdit().Added {
		a.Table.Merges, a.Table.Expiring, a.Table.LastExpiry = 3, 2, 1<<50
		e.Added = append(e.Added, a)
	}
	e.Added = append(e.Added, sampleEdit().Added[0])
	return e
}

func TestGoldenFeatures(t *testing.T) {
	golden.File(t, filepath.Join("testdata", "features.golden"), hex.Dump(featuresEdit().Append(nil)))
	e, err := DecodeEdit(featuresEdit().Append(nil))
	require.NoError(t, err)
	require.Equal(t, featuresEdit(), e)
}

// tags returns the tags of an edit's fields. Version 1 of this program knew those up
// to 6.
func tags(t *testing.T, b []byte) (tags []uint64) {
	d := newDecoder(b)
	for len(d.Rest) > 0 {
		tags = append(tags, d.Uvarint())
		d.Bytes()
	}
	require.False(t, d.Bad)
	return tags
}

func TestNewFieldsAreWrittenOnlyIfNeeded(t *testing.T) {
	for _, tag := range tags(t, sampleEdit().Append(nil)) {
		require.LessOrEqual(t, tag, uint64(tagAdded))
	}
	require.Equal(t, []uint64{tagFeatures, tagMerger, tagAddedKinds, tagAddedKinds, tagAddedKinds, tagAdded},
		tags(t, featuresEdit().Append(nil)))
	restored := &Edit{StoreID: 1, Restored: 1 << 63}
	require.Equal(t, []uint64{tagStoreID, tagRestored}, tags(t, restored.Append(nil)))
	decoded, err := DecodeEdit(restored.Append(nil))
	require.NoError(t, err)
	require.Equal(t, restored, decoded)
}

func TestAnUnknownFeatureIsRefused(t *testing.T) {
	for bit := range 63 {
		f := Features(1) << bit
		_, err := DecodeEdit((&Edit{Features: f}).Append(nil))
		if f&knownFeatures != 0 {
			require.NoError(t, err)
		} else {
			require.ErrorIs(t, err, ErrNewerFormat)
		}
	}
}

func TestATableOfKindsHasSome(t *testing.T) {
	b := (&Edit{Added: []AddedTable{{Table: Table{Num: 1, Merges: 1}}}}).Append(nil)
	_, err := DecodeEdit(b)
	require.NoError(t, err)
	b[len(b)-3] = 0 // no operands, and nothing that expires
	_, err = DecodeEdit(b)
	require.ErrorIs(t, err, errEdit)
}
