package sstable

import (
	"bytes"
	"encoding/binary"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/filterpolicy"
	"github.com/siftkv/siftkv/internal/base"
)

// stepsKeys is how many keys the file of BenchmarkSteps has: its blocks, index and
// filter are far larger than the processor's caches.
const stepsKeys = 1_000_000

// BenchmarkSteps times a lookup in one file as it grows, step by step; the cost of a
// step is the difference to the one before. Keys come in random order, so that every
// step pays its cache misses: the limit is one dependent load from memory for the
// filter's line, one or two for the index, one for the slot, and three for the block
// (its footer, its bucket, its entries). Everything is in the cache of blocks.
func BenchmarkSteps(b *testing.B) {
	r := rand.New(rand.NewPCG(1, 2))
	key := func() []byte {
		return binary.BigEndian.AppendUint64(binary.BigEndian.AppendUint64(nil, r.Uint64()), r.Uint64())
	}
	keys, absent := make([][]byte, stepsKeys), make([][]byte, stepsKeys)
	for i := range keys {
		keys[i], absent[i] = key(), key()
	}
	sorted := slices.Clone(keys)
	slices.SortFunc(sorted, bytes.Compare)
	value := make([]byte, 100)
	var file bytes.Buffer
	w := NewWriter(&file, &WriterOptions{Compression: NoCompression, Filter: mustParse("blocked:10")})
	for _, k := range sorted {
		require.NoError(b, w.Add(base.MakeKey(k, 0, base.KindSet), value))
	}
	_, err := w.Finish()
	require.NoError(b, err)
	f := openBytes(b, file.Bytes(), &ReaderOptions{CacheSize: 256 << 20})
	for _, k := range sorted {
		_, err := f.get(k)
		require.NoError(b, err)
	}

	next, at := 0, base.MaxSeqNum
	dst := make([]byte, 0, len(value))
	step := func(name string, keys [][]byte, do func(key []byte) bool) {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if next++; next == stepsKeys {
					next = 0
				}
				if !do(keys[next]) {
					b.Fatal("a wrong answer")
				}
			}
		})
	}
	step("hash", keys, func(k []byte) bool { return filterpolicy.Hash(k) != 0 })
	var maybes int
	step("absent/filter", absent, func(k []byte) bool {
		if f.passesFilter(k, filterpolicy.Hash(k)) {
			maybes++
		}
		return true
	})
	step("present/filter", keys, func(k []byte) bool { return f.passesFilter(k, filterpolicy.Hash(k)) })
	step("present/filter+index", keys, func(k []byte) bool {
		_, ok, err := f.locate(k, true, nil, &Probe{})
		return f.passesFilter(k, filterpolicy.Hash(k)) && ok && err == nil
	})
	step("present/filter+index+pin", keys, func(k []byte) bool {
		var p Probe
		if !f.passesFilter(k, filterpolicy.Hash(k)) {
			return false
		}
		loc, _, err := f.locate(k, true, nil, &p)
		if err != nil {
			return false
		}
		h, err := f.hold(dataBlock, loc, true, &p)
		h.release()
		return err == nil && p.BlocksFromCache == 1
	})
	step("present/find", keys, func(k []byte) bool {
		var p Probe
		v, _, ok, err := f.Find(dst, k, filterpolicy.Hash(k), at, &p)
		return ok && err == nil && len(v) == len(value)
	})
}
