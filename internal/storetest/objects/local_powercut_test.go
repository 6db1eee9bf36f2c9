package objects

import (
	"math/rand/v2"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/internal/storetest"
	"github.com/siftkv/siftkv/internal/storetest/stores"
	"github.com/siftkv/siftkv/internal/vfs/crashfs"
	"github.com/siftkv/siftkv/internal/wal"
	"github.com/siftkv/siftkv/kv"
	"github.com/siftkv/siftkv/kv/objects"
)

// The power fails at each call that changes the disk while logs are given up: the store is what it was, and no log is
// lost from the disk.
func TestPowerCutWhileALogIsAbandoned(t *testing.T) {
	bucket, disk := storetest.NewFrozenStore(), crashfs.NewDisk()
	on := func(bucket *storetest.FrozenStore, disk *crashfs.Disk, before func() error) *machines {
		return &machines{t, bucket, crashfs.New(disk, before), -1}
	}
	m := on(bucket, disk, storetest.Nothing)
	db := m.open("a", m.options())
	putDurably(t, db, "flushed", "1")
	require.NoError(t, db.Flush(t.Context()))
	putDurably(t, db, "logged", "2")
	stores.Crash(t, db)
	var logs []string // what they hold
	for _, name := range m.logs("a") {
		if b := m.read(filepath.Join("a", name)); len(b) > wal.HeaderSize {
			logs = append(logs, string(b))
		}
	}
	require.NotEmpty(t, logs)
	db = m.open("b", m.abandoning())
	putDurably(t, db, "b", "3")
	require.NoError(t, db.Close())
	want := storetest.Model{"flushed": "1", "b": "3"}

	rng := rand.New(rand.NewPCG(1, 77))
	for nth := 1; ; nth++ {
		calls, cutDisk := 0, (*crashfs.Disk)(nil)
		var cutBucket *storetest.FrozenStore
		var disks *crashfs.Disk
		before := bucket.Cut(func() {
			disks = disk.CutTo(100, rng)
		})
		m := on(before, disks, func() error {
			if calls++; calls == nth {
				cutBucket = before.Cut(func() { cutDisk = disks.Cut(rng) })
			}
			return nil
		})
		require.NoError(t, m.open("a", m.abandoning()).Close())
		if cutDisk == nil {
			require.Greater(t, nth, 10)
			return
		}
		m = on(cutBucket, cutDisk, storetest.Nothing)
		db, err := kv.Open("a", m.options())
		if err != nil {
			require.ErrorIs(t, err, objects.ErrLogAbandoned)
			db = m.open("a", m.abandoning())
		}
		storetest.RequireContents(t, want, db)
		require.NoError(t, db.Close())
		var left []string
		for _, name := range m.files("a") {
			left = append(left, string(m.read(filepath.Join("a", name))))
		}
		require.Subset(t, left, logs, "cut at call %d", nth)
	}
}
