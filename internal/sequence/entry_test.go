package sequence

import (
	"bytes"
	"context"
	"encoding/binary"
	"math"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/internal/base"
	"github.com/siftkv/siftkv/internal/golden"
	"github.com/siftkv/siftkv/internal/hostile"
	"github.com/siftkv/siftkv/internal/manifest"
	"github.com/siftkv/siftkv/objstore"
)

const (
	testTag   = 0x12345678
	testSlot  = 7
	testStore = 0xabcdef0123456789
)

func sampleEntries() map[string]Entry {
	e := Entry{Slot: testSlot, Epoch: 3, Store: testStore, nonce: [16]byte([]byte("0123456789abcdef"))}
	data, empty, fence := e, e, e
	data.Body = []byte("the whole state of a store")
	fence.Fence, fence.newest, fence.Epoch, fence.Store = true, 5, testSlot, 0
	return map[string]Entry{"data": data, "empty": empty, "fence": fence}
}

func TestGoldenEntries(t *testing.T) {
	for name, e := range sampleEntries() {
		b := e.encode(testTag)
		golden.File(t, filepath.Join("testdata", name+".golden"), b)
		got, err := decodeEntry(b, "k", testTag, testSlot)
		require.NoError(t, err)
		require.Equal(t, string(e.Body), string(got.Body))
		e.Body, got.Body = nil, nil
		require.Equal(t, e, got)
		require.Equal(t, name == "fence", len(b) == FenceSize, "a listing tells fences apart")
	}
}

func TestEveryDamagedByteIsNoticed(t *testing.T) {
	for _, e := range sampleEntries() {
		b := e.encode(testTag)
		for i := range b {
			for _, flip := range []byte{1, 0x80, 0xff} {
				damaged := bytes.Clone(b)
				damaged[i] ^= flip
				_, err := decodeEntry(damaged, "some/key", testTag, testSlot)
				require.ErrorIs(t, err, base.ErrCorruption)
				require.ErrorContains(t, err, "some/key")
			}
			_, err := decodeEntry(b[:i], "some/key", testTag, testSlot)
			require.ErrorIs(t, err, base.ErrCorruption)
		}
		_, err := decodeEntry(append(b, 0), "some/key", testTag, testSlot)
		require.ErrorIs(t, err, base.ErrCorruption)
	}
}

func TestEntriesInTheWrongPlaceAreRefused(t *testing.T) {
	for _, e := range sampleEntries() {
		b := e.encode(testTag)
		_, err := decodeEntry(b, "k", testTag+1, testSlot)
		require.ErrorIs(t, err, base.ErrCorruption)
		require.ErrorContains(t, err, "another sequence")
		_, err = decodeEntry(b, "k", testTag, testSlot+1)
		require.ErrorIs(t, err, base.ErrCorruption)
		require.ErrorContains(t, err, "slot 7, not 8")
	}
	ctx, mem, other := t.Context(), objstore.NewMem(), objstore.NewMem()
	for _, store := range []objstore.Store{mem, other} {
		w, _ := open(t, newTestSequence(store))
		put(t, w, "a")
		put(t, w, "b")
	}
	s := newTestSequence(other)
	key := s.Key(3)
	b, err := objstore.ReadAll(ctx, mem, key, 0)
	require.NoError(t, err)
	require.NoError(t, other.Delete(ctx, key))
	require.NoError(t, other.PutIfAbsent(ctx, key, b))
	_, err = s.Get(ctx, 2)
	require.NoError(t, err)
	_, err = s.Get(ctx, 3)
	require.ErrorIs(t, err, base.ErrCorruption)
	require.ErrorContains(t, err, "of store")
	require.ErrorContains(t, err, key)
}

// An epoch is the slot of a fence: no entry has one that is yet to come, and none is so high that it keeps others out.
func TestHostileNumbersKeepNobodyOut(t *testing.T) {
	for name, hostile := range map[string]Entry{
		"epoch of data":           {Slot: 2, Epoch: math.MaxUint64, Store: 1},
		"epoch of data, later":    {Slot: 2, Epoch: 3, Store: 1},
		"epoch of a fence":        {Slot: 2, Epoch: math.MaxUint64, Fence: true},
		"epoch of a fence, early": {Slot: 2, Epoch: 1, Fence: true},
		"store of a fence":        {Slot: 2, Epoch: 2, Fence: true, Store: 1},
		"data after a fence":      {Slot: 2, Epoch: 2, Fence: true, newest: 2},
	} {
		_, err := decodeEntry(hostile.encode(testTag), "k", testTag, 2)
		require.ErrorIs(t, err, base.ErrCorruption, name)
	}
	mem := objstore.NewMem()
	s := newTestSequence(mem)
	w, _ := open(t, s)
	put(t, w, "a")
	for _, slot := range []uint64{endOfSlots, 1 << 63, math.MaxUint64} {
		fence := Entry{Slot: slot, Epoch: slot, Fence: true}
		require.NoError(t, mem.PutIfAbsent(t.Context(), s.Key(slot), fence.encode(s.tag)))
	}
	w, newest := open(t, newTestSequence(mem))
	require.Equal(t, "a", string(newest.Body))
	require.Equal(t, uint64(3), w.Epoch())
	last := Entry{Slot: endOfSlots - 1, Epoch: endOfSlots - 1, Fence: true}
	require.NoError(t, mem.PutIfAbsent(t.Context(), s.Key(last.Slot), last.encode(s.tag)))
	_, _, err := newTestSequence(mem).Open(t.Context())
	require.ErrorContains(t, err, "no free slot")
}

func TestANewerFormatIsToldFromDamage(t *testing.T) {
	for _, e := range sampleEntries() {
		b := e.encode(testTag)
		binary.LittleEndian.PutUint32(b[8:], FormatVersion+1)
		_, err := decodeEntry(resealed(b), "k", testTag, testSlot)
		require.ErrorIs(t, err, manifest.ErrNewerFormat)
		require.NotErrorIs(t, err, base.ErrCorruption)
	}
}

// resealed makes the header's checksum right.
func resealed(b []byte) []byte {
	b = slices.Clone(b)
	if len(b) >= HeaderSize {
		binary.LittleEndian.PutUint32(b[72:], base.Checksum(0, 0, b[:72]))
	}
	return b
}

// An error has a text and its parts.
var entryBound = hostile.Bound{PerByte: 1, Fixed: 8 << 10}

func requireBounded(tb testing.TB, b []byte) {
	tb.Helper()
	entryBound.Require(tb, len(b), func() { _, _ = decodeEntry(b, "k", testTag, testSlot) })
}

// What is read of an object is at most so much more than there is.
var readBound = hostile.Bound{PerByte: 4 * fetchGrowth, Fixed: 4*guess + 64<<10}

// requireReadBounded reads an object through a sequence, as one whose size nobody knows.
func requireReadBounded(tb testing.TB, b []byte) {
	tb.Helper()
	s := newTestSequence(objstore.NewMem())
	s.tag = testTag
	require.NoError(tb, s.store.PutIfAbsent(context.Background(), s.Key(testSlot), b))
	readBound.Require(tb, len(b), func() { _, _ = s.Get(context.Background(), testSlot) })
}

func TestHostileEntries(t *testing.T) {
	for _, e := range sampleEntries() {
		for mutant := range hostile.Mutants(e.encode(testTag), 300) {
			requireBounded(t, mutant)
			requireBounded(t, resealed(mutant))
			requireReadBounded(t, resealed(mutant))
		}
	}
}

func TestHostileLengthsOfLargeObjects(t *testing.T) {
	e := sampleEntries()["data"]
	e.Body = bytes.Repeat([]byte("x"), 2*guess)
	for _, claim := range []uint64{0, 1, guess, 1 << 30, 1 << 40, 1 << 62, 1<<63 - 1, 1 << 63, 1<<64 - 1} {
		b := e.encode(testTag)
		binary.LittleEndian.PutUint64(b[64:], claim)
		requireReadBounded(t, resealed(b))
		_, err := decodeEntry(resealed(b), "k", testTag, testSlot)
		require.ErrorIs(t, err, base.ErrCorruption)
	}
}

func FuzzHostileEntry(f *testing.F) {
	for _, e := range sampleEntries() {
		f.Add(e.encode(testTag))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		for _, b := range [][]byte{b, resealed(b)} {
			requireBounded(t, b)
			e, err := decodeEntry(b, "k", testTag, testSlot)
			if err == nil {
				require.Equal(t, b, e.encode(testTag), "an entry has one form")
			}
		}
	})
}
