package frame

import (
	"encoding/binary"
	"encoding/hex"
	"hash/crc32"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/internal/base"
)

var sample = Description{Keys: 3, Units: 0x0102030405060708, Seed: 9, Params: 0x09080706}

func sealed() []byte {
	return sample.Seal([]byte("beforecells"), len("before"), Blocked)[len("before"):]
}

func TestFooterIsAsDescribed(t *testing.T) {
	data := sealed()
	require.Len(t, data, len("cells")+FooterLen)
	require.Equal(t, "cells", string(data[:5]))
	require.Equal(t, "0300000000000000"+"0807060504030201"+"09000000"+"06070809"+"5346"+"6c"+"01",
		hex.EncodeToString(data[5:33]))
	require.Equal(t, crc32.Checksum(data[:33], crc32.MakeTable(crc32.Castagnoli)),
		binary.LittleEndian.Uint32(data[33:]))
}

// A view keeps what it is given, and refuses footers of other parameters than the
// sample's.
type view struct {
	cells  []byte
	footer *Footer
}

func (v *view) over(cells []byte, footer *Footer) bool {
	v.cells, v.footer = cells, footer
	return footer.Params() == sample.Params
}

func TestDecodeAndPeekAgree(t *testing.T) {
	v, err := Decode(sealed(), Blocked, (*view).over)
	require.NoError(t, err)
	f := v.footer
	require.Equal(t, "cells", string(v.cells))
	require.Equal(t, sample, Description{f.Keys(), f.Units(), f.Seed(), f.Params()})

	peeked, g := Peek(sealed(), Blocked)
	require.Equal(t, v.cells, peeked)
	require.Equal(t, f, g)
	require.Equal(t, len(peeked), cap(peeked), "a view must not reach the footer")
}

// Bytes that are no filter have no cells, and a footer out of all bounds.
func TestPeekOfNoFilter(t *testing.T) {
	for _, data := range [][]byte{nil, make([]byte, FooterLen-1), make([]byte, 100), sealed()[1 : FooterLen+1],
		Description{}.Seal(nil, 0, Fuse)} {
		cells, footer := Peek(data, Blocked)
		require.Empty(t, cells)
		require.Equal(t, uint32(0xffffffff), footer.Params())
		require.Equal(t, ^uint64(0), footer.Units())
		require.Equal(t, uint32(0xffffffff), footer.Seed())
	}
}

func TestDecodeNamesTheUnits(t *testing.T) {
	for family, units := range map[Family]string{
		Bloom: "bits", Blocked: "lines", Cuckoo: "buckets", Ribbon: "blocks", GCS: "buckets", Quotient: "blocks",
		Xor: "cells", Fuse: "cells",
	} {
		_, err := Decode(Description{Keys: 1, Units: 7, Params: 5}.Seal([]byte("abc"), 0, family), family, (*view).over)
		require.ErrorIs(t, err, ErrCorrupt)
		require.ErrorContains(t, err, "3 bytes do not hold 7 "+units+" with the parameters 0x5")
	}
}

func TestDecodeSaysWhatIsWrong(t *testing.T) {
	change := func(at int, to byte) []byte {
		data := slices.Clone(sealed())
		data[at] = to
		return data
	}
	for _, c := range []struct {
		data []byte
		want string
	}{
		{nil, "0 bytes are less than the 32 of a footer: the filter is cut short"},
		{sealed()[:31], "31 bytes are less than the 32 of a footer: the filter is cut short"},
		{sealed()[:36], "no footer at the end: the bytes are cut short or are not a filter"},
		{change(31, 'c'), `family is 'c', want 'l'`},
		{change(32, 2), "version is 2; this program reads version 1"},
		{change(0, 'C'), "checksum is "},
		{change(36, 0xee), ", the footer says ee"},
		{Description{Keys: 1}.Seal(nil, 0, Blocked), "1 keys in 0 units"},
		{Description{Units: 1}.Seal(nil, 0, Blocked), "0 keys in 1 units"},
	} {
		_, err := Decode(c.data, Blocked, (*view).over)
		require.ErrorIs(t, err, ErrCorrupt)
		require.ErrorIs(t, err, base.ErrCorruption)
		require.ErrorContains(t, err, c.want)
	}
}
