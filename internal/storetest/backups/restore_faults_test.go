package backups

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/internal/harness"
	"github.com/siftkv/siftkv/internal/scale"
	"github.com/siftkv/siftkv/internal/storetest"
	"github.com/siftkv/siftkv/internal/storetest/stores"
	"github.com/siftkv/siftkv/internal/vfs/crashfs"
	"github.com/siftkv/siftkv/kv"
)

// TestPowerCutDuringRestore cuts the power before every call of a restore that changes
// the disk, of a full backup and of one since a mark. The directory then is no store,
// or a whole one: as of the backup before, or of this one. The restore goes on from
// there.
func TestPowerCutDuringRestore(t *testing.T) {
	stores.InTablesAndSeparated(t, testPowerCutDuringRestore)
}

func testPowerCutDuringRestore(t *testing.T, from int) {
	db, m0 := stores.OfTables(t, from)
	full, mark := stores.BackUp(t, db, kv.BackupMark{})
	m1 := stores.AddTables(t, db, m0, "second", 3)
	require.NoError(t, db.Compact(t.Context(), nil, nil))
	second, _ := stores.BackUp(t, db, mark)
	cuts, unfinished := 0, 0
	for round := range scale.Count(1, 5) {
		rng := rand.New(rand.NewPCG(uint64(round), 709))
		mem := crashfs.NewDisk()
		var disks []*crashfs.Disk
		o := stores.With(harness.Harness{FS: crashfs.New(mem, func() error {
			disks = append(disks, mem.Cut(rng))
			return nil
		})}, &kv.Options{})
		require.NoError(t, kv.Restore(t.Context(), bytes.NewReader(full), "dir", o))
		ofFull := len(disks)
		require.NoError(t, kv.Restore(t.Context(), bytes.NewReader(second), "dir", o))
		for i, disk := range disks {
			cuts++
			o := stores.With(harness.Harness{FS: crashfs.New(disk, storetest.Nothing)}, &kv.Options{})
			stream, want := full, m0
			if i >= ofFull {
				stream, want = second, m1
			}
			got, err := kv.Open("dir", stores.With(harness.Harness{FS: harness.Of(o).FS}, &kv.Options{ReadOnly: true}))
			switch {
			case errors.Is(err, kv.ErrRestoreUnfinished):
				unfinished++
			case err == nil && i >= ofFull: // before it began, or after its end
				_, missing := got.Get([]byte("second/2"))
				if missing != nil {
					storetest.RequireContents(t, m0, got)
				} else {
					storetest.RequireContents(t, m1, got)
				}
				require.NoError(t, got.Close())
			case err == nil:
				storetest.RequireContents(t, m0, got)
				require.NoError(t, got.Close())
			default:
				require.ErrorIs(t, err, kv.ErrNotExist, "cut %d of %d", i, len(disks))
			}
			require.NoError(t, kv.Restore(t.Context(), bytes.NewReader(stream), "dir", o),
				"cut %d of %d, the full backup has %d", i,
				len(disks), ofFull)
			stores.RequireRestored(t, harness.Of(o).FS, "dir", want)
		}
	}
	require.NotZero(t, unfinished)
	t.Logf("%d power cuts, %d of them left a restore unfinished", cuts, unfinished)
}

// TestRestoreWhenTheDiskFails lets every call of a restore that changes the disk fail
// in turn, and goes on.
func TestRestoreWhenTheDiskFails(t *testing.T) {
	stores.InTablesAndSeparated(t, testRestoreWhenTheDiskFails)
}

func testRestoreWhenTheDiskFails(t *testing.T, from int) {
	db, m0 := stores.OfTables(t, from)
	full, mark := stores.BackUp(t, db, kv.BackupMark{})
	m1 := stores.AddTables(t, db, m0, "second", 3)
	second, _ := stores.BackUp(t, db, mark)
	failures := 0
	for failAt := 1; ; failAt++ {
		mem := crashfs.NewDisk()
		calls := 0
		o := stores.With(harness.Harness{FS: crashfs.New(mem, func() error {
			if calls++; calls == failAt {
				return storetest.ErrDisk
			}
			return nil
		})}, &kv.Options{})
		for _, stream := range [][]byte{full, second} {
			err := kv.Restore(t.Context(), bytes.NewReader(stream), "dir", o)
			if err == nil {
				continue
			}
			failures++
			require.ErrorIs(t, err, storetest.ErrDisk)
			if unfinished, ok := errors.AsType[*kv.RestoreError](err); ok {
				stream = stream[unfinished.Offset:]
			}
			require.NoError(t, kv.Restore(t.Context(), bytes.NewReader(stream), "dir", o), "call %d", failAt)
		}
		stores.RequireRestored(t, crashfs.New(mem, storetest.Nothing), "dir", m1)
		if calls < failAt {
			break
		}
	}
	require.Greater(t, failures, 20)
	t.Logf("%d failures", failures)
}
