package kv

import (
	"encoding/binary"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"

	"github.com/siftkv/siftkv/internal/version"
)

// BenchmarkUpdate compares a read-modify-write of one key in a transaction with its plain parts.
func BenchmarkUpdate(b *testing.B) {
	key, value := []byte("key"), make([]byte, 100)
	run := func(name string, f func(db *DB) error) {
		b.Run(name, func(b *testing.B) {
			db := openMem(b, nil)
			if err := db.Set(key, value, NoSync); err != nil {
				b.Fatal(err)
			}
			b.ReportAllocs()
			for b.Loop() {
				if err := f(db); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
	run("Set", func(db *DB) error { return db.Set(key, value, NoSync) })
	run("GetAndSet", func(db *DB) error {
		if _, err := db.Get(key); err != nil {
			return err
		}
		return db.Set(key, value, NoSync)
	})
	run("Update", func(db *DB) error {
		return db.Update(func(tx *Tx) error {
			if _, err := tx.Get(key); err != nil {
				return err
			}
			return errors.Join(tx.Set(key, value), tx.Commit(NoSync))
		})
	})
	run("UpdateBlind", func(db *DB) error {
		return db.Update(func(tx *Tx) error { return errors.Join(tx.Set(key, value), tx.Commit(NoSync)) })
	})
	run("View", func(db *DB) error {
		return db.View(func(tx *Tx) error {
			_, err := tx.Get(key)
			return err
		})
	})
}

// BenchmarkSyncedCommits has 16 goroutines commit with Sync, each to keys of its
// own, on a real file system: transactions share syncs as plain writes do.
func BenchmarkSyncedCommits(b *testing.B) {
	value := make([]byte, 100)
	run := func(name string, f func(db *DB, key []byte, n uint64) error) {
		b.Run(name, func(b *testing.B) {
			db := openDir(b, b.TempDir(), nil)
			defer db.Close()
			var workers atomic.Uint64
			before := db.Metrics()
			b.SetParallelism(16)
			b.RunParallel(func(pb *testing.PB) {
				key := fmt.Appendf(nil, "key%02d", workers.Add(1))
				for n := uint64(0); pb.Next(); n++ {
					if err := f(db, key, n); err != nil {
						b.Error(err)
						return
					}
				}
			})
			m := db.Metrics()
			b.ReportMetric(float64(m.WALSyncs-before.WALSyncs)/float64(b.N), "syncs/commit")
			b.ReportMetric(float64(m.TxConflicts)/float64(b.N), "conflicts/commit")
		})
	}
	run("Set", func(db *DB, key []byte, _ uint64) error { return db.Set(key, value, Sync) })
	run("Update", func(db *DB, key []byte, n uint64) error {
		return db.Update(func(tx *Tx) error {
			if _, err := tx.Has(key); err != nil {
				return err
			}
			return tx.Set(key, binary.AppendUvarint(value, n))
		})
	})
}

// BenchmarkValidateRange validates a scan of 100,000 keys that are in the memtable:
// what other writers wait for if something was written since the first validation.
func BenchmarkValidateRange(b *testing.B) {
	const keys = 100_000
	db := openMem(b, nil)
	for i := range keys {
		if err := db.Set(fmt.Appendf(nil, "key%06d", i*7919%keys), make([]byte, 100), Async); err != nil {
			b.Fatal(err)
		}
	}
	reads := &txReads{db: db, since: db.seq()}
	reads.Limit = MaxBatchSize
	reads.AddSpan(version.Span{})
	for b.Loop() {
		if err := reads.Validate(reads.since + 1); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/keys, "ns/key")
}

// BenchmarkGetAndScan is for what transactions must not slow down.
func BenchmarkGetAndScan(b *testing.B) {
	db := openMem(b, nil)
	for i := range 10_000 {
		if err := db.Set(fmt.Appendf(nil, "key%06d", i), make([]byte, 100), Async); err != nil {
			b.Fatal(err)
		}
	}
	b.Run("AppendGet", func(b *testing.B) {
		var dst []byte
		key := []byte("key005000")
		b.ReportAllocs()
		for b.Loop() {
			var err error
			if dst, err = db.AppendGet(dst[:0], key); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("Next", func(b *testing.B) {
		it, err := db.NewIter(nil)
		if err != nil {
			b.Fatal(err)
		}
		defer it.Close()
		for b.Loop() {
			if !it.Next() {
				it.First()
			}
		}
	})
	b.Run("Set", func(b *testing.B) {
		key, value := []byte("key005000"), make([]byte, 100)
		b.ReportAllocs()
		for b.Loop() {
			if err := db.Set(key, value, Async); err != nil {
				b.Fatal(err)
			}
		}
	})
}
