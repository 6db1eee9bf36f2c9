package sstable

import (
	"bytes"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/internal/base"
	"github.com/siftkv/siftkv/internal/rangedel"
)

// BenchmarkOpenTombstones opens a file of 100,000 range tombstones, as a flush may write.
// The limit: a checksum of its bytes and a comparison of neighbours.
func BenchmarkOpenTombstones(b *testing.B) {
	var file bytes.Buffer
	w := NewWriter(&file, nil)
	for i := range 100_000 {
		require.NoError(b, w.AddTombstone(rangedel.Tombstone{Start: fmt.Appendf(nil, "key%08d", 2*i),
			End: fmt.Appendf(nil, "key%08d", 2*i+1), Seq: base.SeqNum(i + 1)}))
	}
	_, err := w.Finish()
	require.NoError(b, err)
	b.ReportAllocs()
	for b.Loop() {
		r, err := NewReader(bytes.NewReader(file.Bytes()), int64(file.Len()), nil)
		if err != nil || r.Tombstones().Len() != 100_000 {
			b.Fatal(err)
		}
		if err := r.Close(); err != nil {
			b.Fatal(err)
		}
	}
}
