package kv

import (
	"fmt"
	"strconv"
	"testing"
	"time"
)

// A counter that is merged, against one that is read, changed and written back. The
// latter also needs a lock of the caller's if there is more than one of them.
func BenchmarkCounter(b *testing.B) {
	const counters = 10_000
	keys := make([][]byte, counters)
	for i := range keys {
		keys[i] = fmt.Appendf(nil, "counter/%06d", i*7919%counters)
	}
	open := func(b *testing.B, cache int64) *DB {
		db := openMem(b, &Options{Merger: Int64Add, CacheSize: cache, MemtableSize: 1 << 20})
		for _, k := range keys {
			if err := db.Set(k, int64Value(0), Async); err != nil {
				b.Fatal(err)
			}
		}
		if err := db.Compact(b.Context(), nil, nil); err != nil {
			b.Fatal(err)
		}
		return db
	}
	one := int64Value(1)
	b.Run("merge", func(b *testing.B) {
		db := open(b, -1)
		n := 0
		for b.Loop() {
			n++
			if err := db.Merge(keys[n%counters], one, Async); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("merge/one key", func(b *testing.B) {
		db := open(b, -1)
		for b.Loop() {
			if err := db.Merge(keys[0], one, Async); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("get/100000 operands", func(b *testing.B) {
		db := openMem(b, &Options{Merger: Int64Add})
		for range 100_000 {
			if err := db.Merge(keys[0], one, Async); err != nil {
				b.Fatal(err)
			}
		}
		buf := make([]byte, 0, 8)
		for b.Loop() {
			var err error
			if buf, err = db.AppendGet(buf[:0], keys[0]); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("read-modify-write/uncached", func(b *testing.B) { readModifyWrite(b, open(b, -1), keys) })
	b.Run("read-modify-write/cached", func(b *testing.B) { readModifyWrite(b, open(b, 0), keys) })
}

func readModifyWrite(b *testing.B, db *DB, keys [][]byte) {
	var value []byte
	n := 0
	for b.Loop() {
		n++
		var err error
		if value, err = db.AppendGet(value[:0], keys[n%len(keys)]); err != nil {
			b.Fatal(err)
		}
		sum, err := Int64(value)
		if err != nil {
			b.Fatal(err)
		}
		if err := db.Set(keys[n%len(keys)], AppendInt64(value[:0], sum+1), Async); err != nil {
			b.Fatal(err)
		}
	}
}

// What a lookup pays for operands in the memtable, over a value in a table.
func BenchmarkGetOperands(b *testing.B) {
	for _, operands := range []int{0, 1, 10, 100, 1000} {
		b.Run(strconv.Itoa(operands), func(b *testing.B) {
			db := openMem(b, &Options{Merger: Int64Add})
			set(b, db, "n", string(int64Value(1)))
			if err := db.Compact(b.Context(), nil, nil); err != nil {
				b.Fatal(err)
			}
			for range operands {
				if err := db.Merge([]byte("n"), int64Value(1), Async); err != nil {
					b.Fatal(err)
				}
			}
			key, buf := []byte("n"), make([]byte, 0, 8)
			b.ReportAllocs()
			for b.Loop() {
				var err error
				if buf, err = db.AppendGet(buf[:0], key); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// What a lookup pays for an expiry.
func BenchmarkGetTTL(b *testing.B) {
	db := openMem(b, nil)
	set(b, db, "plain", "value")
	if err := db.SetTTL([]byte("ttl"), []byte("value"), time.Hour, nil); err != nil {
		b.Fatal(err)
	}
	for _, key := range []string{"plain", "ttl"} {
		b.Run(key, func(b *testing.B) {
			k, buf := []byte(key), make([]byte, 0, 8)
			b.ReportAllocs()
			for b.Loop() {
				buf, _ = db.AppendGet(buf[:0], k)
			}
		})
	}
}
