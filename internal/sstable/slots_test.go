package sstable

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/filterpolicy"
	"github.com/siftkv/siftkv/internal/base"
)

// probed returns the restarts that slots give for a key.
func probed(s slots, key []byte) (restarts []int) {
	for p := s.probe(filterpolicy.Hash(key)); ; {
		r, ok := p.next()
		if !ok {
			return restarts
		}
		restarts = append(restarts, r)
	}
}

func TestSlotsLeadStraightToAKey(t *testing.T) {
	const interval = 16
	w := blockWriter{restartInterval: interval, hashIndex: true}
	var keys [][]byte
	for i := range 1000 {
		k := fmt.Appendf(nil, "key%04d", i)
		shared := 0
		if i > 0 {
			shared = base.CommonPrefix(keys[i-1], k)
		}
		keys = append(keys, k)
		w.add(base.MakeKey(k, 1, base.KindSet), k, filterpolicy.Hash(k), shared, false)
	}
	size := w.size()
	data := slices.Clone(w.finish())
	require.Len(t, data, size)
	require.NoError(t, checkBlock(data))
	b := viewBlock(data)
	others := 0
	for i, k := range keys {
		restarts := probed(b.slots, k)
		require.Contains(t, restarts, i/interval)
		others += len(restarts) - 1
		f, err := b.find(k, filterpolicy.Hash(k), base.MaxSeqNum)
		require.NoError(t, err)
		require.Equal(t, k, f.value)
	}
	require.Less(t, others, len(keys)/25, "of the keys before one in its run, one in 256 has its fingerprint")
	led := 0
	for i := range 100_000 {
		led += len(probed(b.slots, fmt.Appendf(nil, "absent%d", i)))
	}
	require.InDelta(t, 0.014, float64(led)/100_000, 0.005,
		"an absent key passes 3.5 keys, each with a fingerprint of eight bits")
}

// However full it is, and whatever is in it, a probe ends.
func TestAFullTableEndsAProbe(t *testing.T) {
	full := slots(slices.Repeat([]byte{0, fingerprintOf(filterpolicy.Hash([]byte("k")))}, 3))
	require.Equal(t, []int{0, 0, 0}, probed(full, []byte("k")))
	require.Empty(t, probed(full, []byte("l")))

	// A slot that leads past the last restart is damage.
	w := blockWriter{restartInterval: 16, hashIndex: true}
	w.add(base.MakeKey([]byte("k"), 1, base.KindSet), nil, filterpolicy.Hash([]byte("k")), 0, false)
	data := w.finish()
	b := viewBlock(data)
	for i := range b.slots {
		if b.slots[i] == 0 {
			b.slots[i] = 1
		}
	}
	require.NoError(t, checkBlock(data))
	_, err := b.find([]byte("k"), filterpolicy.Hash([]byte("k")), base.MaxSeqNum)
	require.ErrorIs(t, err, errBlock)
}

// One interval that begins before a key tells that the key is absent, so that bytes in
// which every slot has its fingerprint do not make a lookup walk the block 65,535 times.
func TestOneIntervalTellsThatAKeyIsAbsent(t *testing.T) {
	w := blockWriter{restartInterval: 1, hashIndex: true}
	for _, k := range []string{"a", "c", "e"} {
		w.add(base.MakeKey([]byte(k), 1, base.KindSet), nil, filterpolicy.Hash([]byte(k)), 0, false)
	}
	for key, want := range map[string]error{"0": errBlock, "b": nil, "d": nil, "f": nil} {
		data := slices.Clone(w.buf)
		for i := range 3 {
			data = binary.LittleEndian.AppendUint16(data, uint16(w.restarts[i]))
		}
		const n = 8
		hash := filterpolicy.Hash([]byte(key))
		table := slots(bytes.Repeat([]byte{3, fingerprintOf(hash)}, n)) // each leads out of the block
		at := slotOf(hash, n)
		for _, restart := range []byte{2, 1, 0} {
			table[slotSize*at] = restart
			at = (at + 1) % n
		}
		data = binary.LittleEndian.AppendUint16(append(data, table...), n)
		data = binary.LittleEndian.AppendUint32(data, slotsArePaired|narrowRestarts|3)
		require.NoError(t, checkBlock(data))
		f, err := viewBlock(data).find([]byte(key), hash, base.MaxSeqNum)
		require.ErrorIs(t, err, want, "%q", key)
		require.False(t, f.present)
	}
}

// Slots of smaller keys come first, so that what has a key's fingerprint by chance never
// leads in between the versions of the key.
func TestALookupComesToTheNewestVersionFirst(t *testing.T) {
	key := []byte("k")
	hash := filterpolicy.Hash(key)
	const n = 7 // slots of three or four keys
	alike := func(prefix string) []byte {
		for i := 0; ; i++ {
			k := fmt.Appendf(nil, "%s%d", prefix, i)
			if h := filterpolicy.Hash(k); fingerprintOf(h) == fingerprintOf(hash) && slotOf(h, n) == slotOf(hash, n) {
				return k
			}
		}
	}
	w := blockWriter{restartInterval: 4, hashIndex: true}
	add := func(k []byte, seq base.SeqNum, again bool) {
		w.add(base.MakeKey(k, seq, base.KindSet), nil, filterpolicy.Hash(k), 0, again)
	}
	add(alike("a"), 1, false)
	add(alike("b"), 1, false)
	for seq := base.SeqNum(9); seq > 1; seq-- {
		add(key, seq, seq < 9)
	}
	add(alike("z"), 1, false)
	require.Equal(t, n, w.numSlots())
	b := viewBlock(w.finish())
	require.Equal(t, []int{0, 0, 0, 2}, probed(b.slots, key))
	for at := base.SeqNum(9); at > 1; at-- {
		f, err := b.find(key, hash, at)
		require.NoError(t, err)
		require.True(t, f.ok)
		require.Equal(t, at, f.trailer.SeqNum())
	}
}

// Blocks with too many keys or restarts for a table, and those whose restarts need 32
// bits, are searched.
func TestBlocksThatOutgrowTheirTable(t *testing.T) {
	for _, c := range []struct {
		name           string
		keys, interval int
		value          int
		slots, narrow  bool
	}{
		{"small", 10, 4, 10, true, true},
		{"as many restarts as slots can tell", slotRestarts, 1, 0, true, true},
		{"one more", slotRestarts + 1, 1, 0, false, true},
		{"more than 64 KiB", 1000, 16, 100, true, false},
		{"too many keys", 44_000, 1024, 0, false, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := blockWriter{restartInterval: c.interval, hashIndex: true}
			keyOf := func(i int) []byte { return fmt.Appendf(nil, "%06d", i) }
			for i := range c.keys {
				w.add(base.MakeKey(keyOf(i), 1, base.KindSet), make([]byte, c.value), filterpolicy.Hash(keyOf(i)),
					base.CommonPrefix(keyOf(max(i-1, 0)), keyOf(i)), false)
			}
			data := w.finish()
			require.NoError(t, checkBlock(data))
			b := viewBlock(data)
			require.Equal(t, c.slots, len(b.slots) > 0)
			require.Equal(t, c.narrow, b.narrow)
			for i := 0; i < c.keys; i += 1 + c.keys/500 {
				f, err := b.find(keyOf(i), filterpolicy.Hash(keyOf(i)), base.MaxSeqNum)
				require.NoError(t, err)
				require.True(t, f.ok)
			}
			absent := []byte("absent")
			f, err := b.find(absent, filterpolicy.Hash(absent), base.MaxSeqNum)
			require.NoError(t, err)
			require.False(t, f.present)
		})
	}
}

// What a block promises is more than it has, and more than 32 bits count.
func TestABlockCannotHoldAllRestartsThatItMayPromise(t *testing.T) {
	for _, flags := range []uint32{1, restartsMask, narrowRestarts | restartsMask, slotsArePaired | restartsMask,
		math.MaxUint32} {
		for _, nSlots := range []uint16{0, 1, maxSlots} {
			data := binary.LittleEndian.AppendUint16(make([]byte, 3), nSlots)
			data = binary.LittleEndian.AppendUint32(data, flags)
			require.ErrorIs(t, checkBlock(data), errBlock)
		}
	}
}
