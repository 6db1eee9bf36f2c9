package sstable

import (
	"bytes"
	"encoding/binary"
	"io"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/internal/base"
)

// BenchmarkWriter measures one entry, of a random key of 16 bytes and a value of 100
// that compresses by half, on its way into a file that goes nowhere. The limit is
// what must be done to its bytes: copy, checksum, hash, and most of all compress,
// some 100 ns. Values of random bytes are the other case: their blocks are compressed in
// vain.
func BenchmarkWriter(b *testing.B) {
	const n = 50_000
	r := rand.New(rand.NewPCG(1, 2))
	keys, values := make([][]byte, n), make([][]byte, n)
	for i := range keys {
		keys[i] = binary.BigEndian.AppendUint64(binary.BigEndian.AppendUint64(nil, r.Uint64()), r.Uint64())
		for len(values[i]) < 50 {
			values[i] = append(values[i], byte(r.Uint32()))
		}
		values[i] = append(values[i], values[i]...)
	}
	slices.SortFunc(keys, bytes.Compare)
	flat := bytes.Join(keys, nil) // in order in memory too: cache misses are the reader's
	for i := range keys {
		keys[i] = flat[16*i : 16*i+16]
	}
	random := make([][]byte, n)
	for i := range random {
		for len(random[i]) < 100 {
			random[i] = binary.LittleEndian.AppendUint64(random[i], r.Uint64())
		}
	}
	for _, run := range []struct {
		name   string
		c      Compression
		values [][]byte
	}{{"none", NoCompression, values}, {"snappy", Snappy, values}, {"snappy/random", Snappy, random},
		{"zstd/random", Zstd, random}} {
		b.Run(run.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				w := NewWriter(io.Discard, &WriterOptions{Compression: run.c})
				for i, k := range keys {
					if err := w.Add(base.MakeKey(k, 0, base.KindSet), run.values[i]); err != nil {
						b.Fatal(err)
					}
				}
				_, err := w.Finish()
				require.NoError(b, err)
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(n*b.N), "ns/entry")
		})
	}
}
