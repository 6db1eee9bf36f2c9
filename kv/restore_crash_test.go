package kv

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/internal/vfs/crashfs"

	"github.com/siftkv/siftkv/internal/harness"
	"github.com/siftkv/siftkv/internal/scale"
)

// TestPowerCutDuringRestore cuts the power before every call of a restore that changes
// the disk, of a full backup and of one since a mark. The directory then is no store,
// or a whole one: as of the backup before, or of this one. The restore goes on from
// there.
func TestPowerCutDuringRestore(t *testing.T) { inTablesAndApart(t, testPowerCutDuringRestore) }

func testPowerCutDuringRestore(t *testing.T, from int) {
	db, m0 := backupStoreFrom(t, from)
	full, mark := backUp(t, db, BackupMark{})
	m1 := addTables(t, db, m0, "second", 3)
	require.NoError(t, db.Compact(t.Context(), nil, nil))
	second, _ := backUp(t, db, mark)
	cuts, unfinished := 0, 0
	for round := range scale.Count(1, 5) {
		rng := rand.New(rand.NewPCG(uint64(round), 709))
		mem := crashfs.NewDisk()
		var disks []*crashfs.Disk
		o := &Options{harness: harness.Harness{FS: crashfs.New(mem, func() error {
			disks = append(disks, mem.Cut(rng))
			return nil
		})}}
		require.NoError(t, Restore(t.Context(), bytes.NewReader(full), "dir", o))
		ofFull := len(disks)
		require.NoError(t, Restore(t.Context(), bytes.NewReader(second), "dir", o))
		for i, disk := range disks {
			cuts++
			o := &Options{harness: harness.Harness{FS: crashfs.New(disk, nothing)}}
			stream, want := full, m0
			if i >= ofFull {
				stream, want = second, m1
			}
			got, err := Open("dir", &Options{harness: harness.Harness{FS: o.harness.FS}, ReadOnly: true})
			switch {
			case errors.Is(err, ErrRestoreUnfinished):
				unfinished++
			case err == nil && i >= ofFull: // before it began, or after its end
				_, missing := got.Get([]byte("second/2"))
				if missing != nil {
					requireContents(t, m0, got)
				} else {
					requireContents(t, m1, got)
				}
				require.NoError(t, got.Close())
			case err == nil:
				requireContents(t, m0, got)
				require.NoError(t, got.Close())
			default:
				require.ErrorIs(t, err, ErrNotExist, "cut %d of %d", i, len(disks))
			}
			require.NoError(t, Restore(t.Context(), bytes.NewReader(stream), "dir", o),
				"cut %d of %d, the full backup has %d", i,
				len(disks), ofFull)
			requireRestored(t, o.harness.FS, "dir", want)
		}
	}
	require.NotZero(t, unfinished)
	t.Logf("%d power cuts, %d of them left a restore unfinished", cuts, unfinished)
}

// TestRestoreWhenTheDiskFails lets every call of a restore that changes the disk fail
// in turn, and goes on.
func TestRestoreWhenTheDiskFails(t *testing.T) { inTablesAndApart(t, testRestoreWhenTheDiskFails) }

func testRestoreWhenTheDiskFails(t *testing.T, from int) {
	db, m0 := backupStoreFrom(t, from)
	full, mark := backUp(t, db, BackupMark{})
	m1 := addTables(t, db, m0, "second", 3)
	second, _ := backUp(t, db, mark)
	failures := 0
	for failAt := 1; ; failAt++ {
		mem := crashfs.NewDisk()
		calls := 0
		o := &Options{harness: harness.Harness{FS: crashfs.New(mem, func() error {
			if calls++; calls == failAt {
				return errDisk
			}
			return nil
		})}}
		for _, stream := range [][]byte{full, second} {
			err := Restore(t.Context(), bytes.NewReader(stream), "dir", o)
			if err == nil {
				continue
			}
			failures++
			require.ErrorIs(t, err, errDisk)
			if unfinished, ok := errors.AsType[*RestoreError](err); ok {
				stream = stream[unfinished.Offset:]
			}
			require.NoError(t, Restore(t.Context(), bytes.NewReader(stream), "dir", o), "call %d", failAt)
		}
		requireRestored(t, crashfs.New(mem, nothing), "dir", m1)
		if calls < failAt {
			break
		}
	}
	require.Greater(t, failures, 20)
	t.Logf("%d failures", failures)
}
