package manifest

import (
	"encoding/hex"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/internal/base"
	"github.com/siftkv/siftkv/internal/golden"
)

func slotsEdit() *Edit {
	return &Edit{Features: FeatureSlots, Slots: Kept{History: 0xfeed, From: 70, Parts: []KeptPart{
		{Log: 12, Last: 80, Bytes: 4096, Time: 1_700_000_000, Files: []uint64{14, 15}},
		{Last: 81, Bytes: 1 << 40, Time: 1_700_000_001, Files: []uint64{16}},
		{Log: 17, Copy: true, Last: 1 << 50, Bytes: 1},
	}}}
}

func TestGoldenSlots(t *testing.T) {
	e := slotsEdit()
	golden.File(t, filepath.Join("testdata", "slots.golden"), hex.Dump(e.Append(nil)))
	got, err := DecodeEdit(e.Append(nil))
	require.NoError(t, err)
	require.Equal(t, e, got)
	require.Equal(t, []uint64{tagFeatures, tagHistory, tagKeptLog, tagKeptIngest, tagKeptCopy}, tags(t, e.Append(nil)))
	var names []string
	for i := range e.Slots.Parts {
		names = append(names, e.Slots.Parts[i].Names()...)
	}
	require.Equal(t, []string{"000012.wal", "000014.blob", "000015.blob", "000016.sst", "000017.kept"}, names)
	for _, name := range names {
		require.True(t, e.Slots.Has(name))
	}
	for _, name := range []string{"000012.kept", "000014.kept", "000016.kept"} {
		require.True(t, e.Slots.Has(name), "it has this name when only slots need it")
	}
	for _, name := range []string{"000012.sst", "000018.kept", "000000.kept"} {
		require.False(t, e.Slots.Has(name))
	}
}

func TestWhatIsKeptMustBeInOrder(t *testing.T) {
	for name, change := range map[string]func(*Kept){
		"no number":     func(k *Kept) { k.Parts = []KeptPart{{Log: 1 << 20, Last: 3}}; k.Parts[0].Log = 0 },
		"twice":         func(k *Kept) { k.Parts = append(k.Parts, k.Parts[2]) },
		"back":          func(k *Kept) { slices.Reverse(k.Parts) },
		"beyond":        func(k *Kept) { k.Parts[2].Last = base.MaxSeqNum + 1 },
		"from beyond":   func(k *Kept) { k.From = base.MaxSeqNum + 1 },
		"without files": func(k *Kept) { k.Parts[1].Files = nil },
	} {
		e := slotsEdit()
		change(&e.Slots)
		_, err := DecodeEdit(e.Append(nil))
		require.ErrorIs(t, err, errEdit, name)
	}
	twice := slotsEdit()
	_, err := DecodeEdit(append(twice.Append(nil), twice.Append(nil)...))
	require.ErrorIs(t, err, errEdit)
}

func TestKeptChanges(t *testing.T) {
	var k Kept
	k.Apply(&slotsEdit().Slots)
	require.Equal(t, slotsEdit().Slots, k)
	before := k
	k.Apply(&Kept{From: 80, Parts: []KeptPart{{Log: 20, Last: 1 << 51}}})
	parts := append(before.Parts[1:3:3], KeptPart{Log: 20, Last: 1 << 51})
	require.Equal(t, Kept{History: 0xfeed, From: 80, Parts: parts}, k)
	require.Equal(t, slotsEdit().Slots, before)
	k.Apply(&Kept{History: 0xfeed, From: 79})
	require.EqualValues(t, 80, k.From)
	require.Len(t, k.Parts, 3)
	k.Apply(&Kept{History: 1, From: 5})
	require.Equal(t, Kept{History: 1, From: 5}, Kept{History: k.History, From: k.From})
	require.Empty(t, k.Parts)
}

func TestSlotNames(t *testing.T) {
	for _, name := range []string{"a", "index-2", "x_y", string(slices.Repeat([]byte("z"), 64))} {
		require.True(t, IsSlotName(name), name)
		kind, _ := ParseFileName(SlotName(name))
		require.Equal(t, FileSlot, kind)
		require.Equal(t, name, SlotOf(SlotName(name)))
		kind, _ = ParseFileName(SlotName(name) + ".tmp")
		require.Equal(t, FileTemp, kind)
	}
	for _, name := range []string{"", "A", "a b", "a/b", "..", "a.b", "é", string(slices.Repeat([]byte("z"), 65))} {
		require.False(t, IsSlotName(name), name)
		kind, _ := ParseFileName(SlotName(name))
		require.Equal(t, FileUnknown, kind, name)
	}
	kind, num := ParseFileName("000017.kept")
	require.Equal(t, FileKept, kind)
	require.EqualValues(t, 17, num)
}
