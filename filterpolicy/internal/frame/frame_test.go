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
	require.Equal(t, "0300000000000000"+"0807060504030201"+"09000000"+"06070809"+"5346"+"6c"+"01", hex.EncodeToString(data[5:33]))
	require.Equal(t, crc32.Checksum(data[:33], crc32.MakeTable(crc32.Castagnoli)), binary.LittleEndian.Uint32(data[33:]))
}

func TestOpenAndPeekAgree(t *testing.T) {
	cells, f, err := Open(sealed(), Blocked)
	require.NoError(t, err)
	require.Equal(t, "cells", string(cells))
	require.Equal(t, sample, Description{f.Keys(), f.Units(), f.Seed(), f.Params()})

	peeked, g := Peek(sealed(), Blocked)
	require.NotNil(t, g)
	require.Equal(t, cells, peeked)
	require.Equal(t, f, g)
	require.Equal(t, len(peeked), cap(peeked), "a view must not reach the footer")
}

func TestOpenSaysWhatIsWrong(t *testing.T) {
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
		_, _, err := Open(c.data, Blocked)
		require.ErrorIs(t, err, ErrCorrupt)
		require.ErrorIs(t, err, base.ErrCorruption)
		require.ErrorContains(t, err, c.want)
	}
}
