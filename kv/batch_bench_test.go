package kv

import (
	"encoding/binary"
	"testing"
	"time"
)

// BenchmarkBatchWrite fills batches of a thousand writes, which keep their memory.
func BenchmarkBatchWrite(b *testing.B) {
	db := openMem(b, &Options{Merger: Int64Add})
	value, key := make([]byte, 100), make([]byte, 16)
	for name, write := range map[string]func(batch *Batch) error{
		"Set":    func(batch *Batch) error { return batch.Set(key, value) },
		"Delete": func(batch *Batch) error { return batch.Delete(key) },
		"Merge":  func(batch *Batch) error { return batch.Merge(key, value[:8]) },
		"SetTTL": func(batch *Batch) error { return batch.SetTTL(key, value, time.Hour) },
	} {
		b.Run(name, func(b *testing.B) {
			batch := db.NewBatch()
			b.ReportAllocs()
			for n := uint64(0); b.Loop(); n++ {
				binary.BigEndian.PutUint64(key, n)
				if batch.Len() == 1000 {
					batch.Reset()
				}
				if err := write(batch); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
