package layout

import (
	"bytes"
	"encoding/binary"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/siftkv/siftkv/filterpolicy/blocked"
	"github.com/siftkv/siftkv/internal/property"
)

// addTo sets the bits of a hash in a shard that is alone in its partition.
func addTo(shard []byte, l Layer, hash uint64) {
	spot := blocked.Locate(hash)
	_, within := spot.Split(1)
	_, line := l.Place(within)
	SetBits(shard, line, spot, l.Probes)
}

// A reader of single lines and a blocked.Set of all lines say the same of every key.
func TestLinesSayWhatALocalSetSays(t *testing.T) {
	property.Check(t, func(t *rapid.T) {
		lines := rapid.IntRange(1, 8).Draw(t, "lines")
		probes := rapid.IntRange(1, blocked.MaxProbes).Draw(t, "probes")
		l := Layer{Keys: 1, Shards: 1, Lines: lines, Probes: probes}
		local, err := blocked.FromLines(make([]byte, lines*blocked.LineLen), l.Probes, 0, 1)
		require.NoError(t, err)
		shard := l.Blank()
		hashes := rapid.SliceOfN(rapid.Uint64(), 0, 60).Draw(t, "hashes")
		for _, h := range hashes {
			local.AddHash(h)
			addTo(shard, l, h)
		}
		asked := append(rapid.SliceOfN(rapid.Uint64(), 50, 50).Draw(t, "others"), hashes...)
		exported, imported := bytes.Clone(shard), append(l.Blank()[:HeaderLen], local.Lines()...)
		for at := HeaderLen; at < len(exported); at += blocked.LineLen {
			UnfoldMark(exported[at:])
			FoldMark(imported[at:])
			imported[at+MarkByte] |= MarkBit // BITOP OR with a shard
		}
		out, err := blocked.FromLines(exported[HeaderLen:], l.Probes, 0, 1)
		require.NoError(t, err)
		require.Equal(t, shard, imported, "an import leads to the bits that adds lead to")
		for i, h := range asked {
			a := askShard(shard, l, h)
			require.NotEqual(t, Lost, a)
			if i >= 50 {
				require.Equal(t, Present, a)
				require.True(t, out.ContainsHash(h))
			}
			require.Equal(t, a == Present, out.ContainsHash(h))
			if a == Absent {
				require.False(t, local.ContainsHash(h), "a shard knows no fewer keys than a set")
			}
		}
	})
}

func askShard(shard []byte, l Layer, hash uint64) Answer {
	spot := blocked.Locate(hash)
	_, within := spot.Split(1)
	_, line := l.Place(within)
	at := LineOffset(line)
	if len(shard) < at {
		return Ask(nil, spot, l.Probes)
	}
	return Ask(shard[at:min(len(shard), at+blocked.LineLen)], spot, l.Probes)
}

// A shard that was cut, or that an add to nothing left, says no of nothing.
func TestWhatIsLostSaysNoOfNothing(t *testing.T) {
	property.Check(t, func(t *rapid.T) {
		l := Layer{Keys: 1, Shards: 1, Lines: rapid.IntRange(1, 8).Draw(t, "lines"), Probes: 7}
		shard := make([]byte, l.Len())
		for _, h := range rapid.SliceOfN(rapid.Uint64(), 0, 300).Draw(t, "hashes") {
			addTo(shard, l, h)
		}
		h := rapid.Uint64().Draw(t, "asked")
		require.NotEqual(t, Absent, askShard(shard, l, h))
		cut := rapid.IntRange(0, len(shard)).Draw(t, "cut")
		require.NotEqual(t, Absent, askShard(shard[:cut], l, h))
	})
}

// Redis counts the bits of a byte from the highest.
func TestRedisBit(t *testing.T) {
	for p := range 512 {
		var line [blocked.LineLen]byte
		line[p/8] |= 1 << (p % 8)
		q := RedisBit(p)
		require.NotZero(t, line[q/8]&(0x80>>(q%8)))
	}
}

func TestLayersOf(t *testing.T) {
	header := make([]byte, HeaderLen)
	for mask, want := range map[uint32]int{0: 1, 1: 2, 2: 1, 3: 3, 0b1011: 3, 0xffff_ffff: 16} {
		binary.LittleEndian.PutUint32(header[LayersAt:], mask)
		require.Equal(t, want, LayersOf(header, 16), "%b", mask)
	}
	for layer := 1; layer < 16; layer++ {
		bit := LayerBit(layer)
		header := make([]byte, HeaderLen)
		header[bit/8] |= 0x80 >> (bit % 8)
		require.Equal(t, uint32(1)<<(layer-1), binary.LittleEndian.Uint32(header[LayersAt:]))
	}
}

func FuzzHeader(f *testing.F) {
	l := Layer{Keys: 1, Shards: 1, Lines: 3, Probes: 7}
	f.Add(l.Blank(), uint64(1))
	f.Add([]byte("sift"), uint64(2))
	f.Add([]byte{}, uint64(3))
	f.Fuzz(func(t *testing.T, data []byte, hash uint64) {
		if valid := l.ValidHeader(data); valid {
			n := LayersOf(data, 16)
			require.True(t, n >= 1 && n <= 16)
			require.True(t, bytes.HasPrefix(data, l.Blank()[:LayersAt]))
		}
		a := askShard(data, l, hash)
		if len(data) < HeaderLen+l.Lines*blocked.LineLen && len(data) <= HeaderLen {
			require.Equal(t, Lost, a)
		}
	})
}
