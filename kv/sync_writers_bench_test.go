package kv

import (
	"encoding/binary"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/internal/harness"
	"github.com/siftkv/siftkv/internal/manifest"
	sift "github.com/siftkv/siftkv/internal/vfs"
)

// A slowSyncs is a file system of which the sync of a log takes a set time.
type slowSyncs struct {
	sift.FS
	takes time.Duration
}

func (s slowSyncs) Create(name string) (sift.WriteFile, error) {
	f, err := s.FS.Create(name)
	if kind, _ := manifest.ParseFileName(filepath.Base(name)); err != nil || kind != manifest.FileWAL {
		return f, err
	}
	return slowLog{f, s.takes}, nil
}

type slowLog struct {
	sift.WriteFile
	takes time.Duration
}

func (l slowLog) Sync() error {
	time.Sleep(l.takes)
	return nil
}

// BenchmarkBesideSync measures what needs no sync: alone, and while two other goroutines
// write with Sync, each of which takes 10 ms: one of them is always under way. The median is
// what to look at: beside a sync it is at most twice that of alone.
func BenchmarkBesideSync(b *testing.B) {
	for _, op := range []struct {
		name string
		do   func(db *DB, key, value []byte) error
	}{
		{"NoSync", func(db *DB, key, value []byte) error { return db.Set(key, value, NoSync) }},
		{"Async", func(db *DB, key, value []byte) error { return db.Set(key, value, Async) }},
		{"Get", func(db *DB, _, _ []byte) error { _, err := db.Get([]byte("beside")); return err }},
	} {
		for _, beside := range []bool{false, true} {
			name := map[bool]string{false: "alone", true: "beside"}[beside]
			b.Run(op.name+"/"+name, func(b *testing.B) { benchBesideSync(b, beside, op.do) })
		}
	}
}

func benchBesideSync(b *testing.B, beside bool, do func(db *DB, key, value []byte) error) {
	db := openDir(b, b.TempDir(), &Options{harness: harness.Harness{FS: slowSyncs{sift.OS, 10 * time.Millisecond}},
		MemtableSize: 64 << 20})
	require.NoError(b, db.Set([]byte("beside"), make([]byte, 100), NoSync))
	var other sync.WaitGroup
	var stop atomic.Bool
	for range map[bool]int{true: 2}[beside] {
		other.Go(func() {
			for !stop.Load() {
				if err := db.Set([]byte("beside"), make([]byte, 100), Sync); err != nil {
					b.Error(err)
				}
			}
		})
	}
	took := make([]time.Duration, 0, 1<<20)
	key, value := make([]byte, 16), make([]byte, 100)
	rng := rand.New(rand.NewPCG(1, 2))
	for b.Loop() {
		binary.BigEndian.PutUint64(key, rng.Uint64())
		start := time.Now()
		if err := do(db, key, value); err != nil {
			b.Fatal(err)
		}
		if d := time.Since(start); len(took) < cap(took) {
			took = append(took, d)
		}
	}
	slices.Sort(took)
	b.ReportMetric(float64(took[len(took)/2]), "median-ns")
	b.ReportMetric(float64(took[len(took)*999/1000]), "p99.9-ns")
	stop.Store(true)
	other.Wait()
	require.NoError(b, db.Close())
}
