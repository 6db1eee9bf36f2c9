package base

import (
	"errors"
	"hash/crc32"
	"io"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestScanLine(t *testing.T) {
	for _, c := range []struct {
		line, form string
		want       []uint64 // nil: the line has another form
	}{
		{"store a=12 b=ff rest", "store a=%d b=%x", []uint64{12, 255}},
		{"store a=18446744073709551615", "store a=%d", []uint64{1<<64 - 1}},
		{"store a=18446744073709551616", "store a=%d", nil},
		{"7 end", "%d end", []uint64{7}},
		{"7 en", "%d end", nil},
		{"store a=", "store a=%d", nil},
		{"store a=-1", "store a=%d", nil},
		{"store a=+1", "store a=%d", nil},
		{"store a=1_0", "store a=%d b", nil},
		{"store  a=1", "store a=%d", nil},
		{"stor", "store a=%d", nil},
		{"", "%x", nil},
	} {
		numbers := make([]uint64, max(len(c.want), 1))
		to := []*uint64{&numbers[0]}
		if len(numbers) > 1 {
			to = append(to, &numbers[1])
		}
		require.Equal(t, c.want != nil, ScanLine(c.line, c.form, to...), c.line)
		if c.want != nil {
			require.Equal(t, c.want, numbers)
		}
	}
}

func TestCompareOrdersNewestFirst(t *testing.T) {
	sorted := []InternalKey{
		MakeKey(nil, 3, KindSet),
		MakeKey([]byte("a"), 9, KindSet),
		MakeKey([]byte("a"), 9, KindDelete),
		MakeKey([]byte("a"), 2, KindSet),
		MakeKey([]byte("a\x00"), 7, KindSet),
		MakeKey([]byte("b"), MaxSeqNum, KindRangeDelete),
	}
	shuffled := slices.Clone(sorted)
	rand.New(rand.NewPCG(1, 2)).Shuffle(len(shuffled), func(i, j int) {
		shuffled[i], shuffled[j] = shuffled[j], shuffled[i]
	})
	slices.SortFunc(shuffled, Compare)
	require.Equal(t, sorted, shuffled)
}

func TestTrailerRoundTrip(t *testing.T) {
	for _, seq := range []SeqNum{0, 1, 255, 256, MaxSeqNum} {
		for _, kind := range []Kind{KindDelete, KindSet, KindRangeDelete, KindMax} {
			tr := MakeTrailer(seq, kind)
			require.Equal(t, seq, tr.SeqNum())
			require.Equal(t, kind, tr.Kind())
		}
	}
}

func TestSearchKeyPrecedesEveryVisibleVersion(t *testing.T) {
	at := SearchKey([]byte("k"), 10)
	require.Negative(t, Compare(at, MakeKey([]byte("k"), 10, KindSet)))
	require.Positive(t, Compare(at, MakeKey([]byte("k"), 11, KindDelete)))
}

func TestChecksumIsBoundToItsPlace(t *testing.T) {
	data := []byte("a block of bytes")
	place := []byte{7, 0, 0, 0, 0, 0, 0, 0, 9, 1, 0, 0, 0, 0, 0, 0}
	want := crc32.Checksum(append(place, data...), castagnoli)
	require.Equal(t, want, Checksum(7, 265, data))
	require.NotEqual(t, want, Checksum(8, 265, data))
	require.NotEqual(t, want, Checksum(7, 264, data))
	require.Equal(t, want, ChecksumMore(Checksum(7, 265, data[:5]), data[5:]))
}

func TestCorruptionErrorNamesThePlaceAndMatches(t *testing.T) {
	err := error(&CorruptionError{File: "d/000007.sst", Offset: 512, What: "data block: bad checksum",
		Cause: io.ErrUnexpectedEOF, Hint: "siftkv verify d"})
	require.ErrorIs(t, err, ErrCorruption)
	require.ErrorIs(t, err, io.ErrUnexpectedEOF)
	require.EqualError(t, err, "siftkv: corruption in d/000007.sst at offset 512: data block: bad checksum: "+
		"unexpected EOF; run: siftkv verify d")

	var ce *CorruptionError
	require.True(t, errors.As(Corruptf("f", -1, "short by %d bytes", 3), &ce))
	require.Equal(t, "siftkv: corruption in f: short by 3 bytes", ce.Error())
}
