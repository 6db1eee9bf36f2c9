package cuckootable

import (
	"bytes"
	"encoding/hex"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// slotOf reads a slot of a shard the slow way: bit by bit, as the format says.
func slotOf(s Shape, shard []byte, slot uint32) (value uint32) {
	for b := range s.Bits {
		at := headerSize*8 + slot*s.Bits + b
		value = value<<1 | uint32(shard[at/8]>>(7-at%8)&1)
	}
	return value
}

func TestTableAgreesWithASlice(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for bits := uint32(minBits); bits <= maxBits; bits++ {
		s := Shape{Bits: bits, Buckets: 6, Shards: 1}
		table, model := s.NewTable(), make([]uint32, 6*slots)
		for range 300 {
			bucket, slot, value := random.Uint32N(6), random.Uint32N(slots), uint32(random.Uint64N(1+s.values()))
			require.Equal(t, model[bucket*slots+slot], table.at(bucket, slot))
			table.set(bucket, slot, value)
			model[bucket*slots+slot] = value
		}
		for slot, want := range model {
			require.Equal(t, want, slotOf(s, table.Bytes(), uint32(slot)))
		}
		_, err := s.Open(table.Bytes(), 0)
		require.NoError(t, err, "header and mark are as they were")
	}
}

func TestBlankNeverChanges(t *testing.T) {
	s := Shape{Bits: 13, Buckets: 2, Shards: 5}
	require.Equal(t, "7369667401020d04"+"02000000"+"00000000"+strings.Repeat("00", 13)+"7369667401020d04",
		hex.EncodeToString(s.Blank()))
	table := s.NewTable()
	require.NoError(t, table.Add(Place{Fingerprint: 0x1fff, I: 1, J: 0}))
	require.NoError(t, table.Add(Place{Fingerprint: 1, I: 1, J: 0}))
	require.Equal(t, "0000000000000fff8004000000", hex.EncodeToString(table.Bytes()[16:29]))
}

func TestOpenRefusesWhatIsNotOurs(t *testing.T) {
	s := Shape{Bits: 13, Buckets: 8, Shards: 5}
	blank := s.Blank()
	table, err := s.Open(bytes.Clone(blank), 0)
	require.NoError(t, err)
	require.Zero(t, table.Used())
	for at := range blank {
		_, err := s.Open(blank[:at], 0)
		require.ErrorIs(t, err, ErrLost)
		if at < headerSize || at >= s.markAt() {
			damaged := bytes.Clone(blank)
			damaged[at] ^= 1
			_, err = s.Open(damaged, 0)
			require.ErrorIs(t, err, ErrLost)
		}
	}
	for _, other := range []Shape{{12, 8, 5}, {13, 10, 5}, {26, 4, 5}} {
		_, err := s.Open(other.Blank(), 0)
		require.ErrorIs(t, err, ErrLost)
	}
}

func TestCheckRefusesImpossibleShapes(t *testing.T) {
	for _, s := range []Shape{{}, {7, 8, 1}, {33, 8, 1}, {12, 0, 1}, {12, 7, 1}, {12, 8, 0}, {12, 8, 1<<24 + 1},
		{12, 1 << 31, 1}, {32, 4096, 1}, {8, 1<<32 - 2, 1}} {
		require.ErrorIs(t, s.Check(), ErrShape, "%+v", s)
	}
	require.NoError(t, Shape{32, 4094, 1 << 24}.Check())
}

// A table takes keys until it is full. A refusal changes nothing.
func TestTableFills(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for _, bits := range []uint32{8, 13, 32} {
		s := Shape{Bits: bits, Buckets: 400, Shards: 1}
		table := s.NewTable()
		var keys []Place
		for {
			p, before := s.Place(random.Uint64()), bytes.Clone(table.Bytes())
			if err := table.Add(p); err != nil {
				require.Equal(t, ErrFull, err)
				require.Equal(t, before, table.Bytes())
				break
			}
			keys = append(keys, p)
		}
		require.Greater(t, len(keys), s.Slots()*94/100)
		require.Equal(t, len(keys), table.Used())
		for _, p := range keys {
			require.NotZero(t, table.Copies(p))
			require.True(t, table.Remove(p))
		}
		require.Equal(t, s.Blank(), table.Bytes())
	}
}

func TestCopiesAreLimited(t *testing.T) {
	s := Shape{Bits: 12, Buckets: 100, Shards: 1}
	table, p := s.NewTable(), s.Place(77)
	for n := range copies {
		require.Equal(t, n, table.Copies(p))
		require.NoError(t, table.Add(p))
	}
	require.Equal(t, ErrTooManyCopies, table.Add(p))
	require.Equal(t, copies, table.Copies(p))
	for range copies {
		require.True(t, table.Remove(p))
	}
	require.False(t, table.Remove(p))
}
