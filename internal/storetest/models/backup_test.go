package models

import (
	"bytes"
	"maps"
	"math/rand/v2"
	"testing"

	"github.com/siftkv/siftkv/internal/harness"
	"github.com/siftkv/siftkv/internal/manifest"
	"github.com/siftkv/siftkv/internal/scale"
	"github.com/siftkv/siftkv/internal/storetest"
	"github.com/siftkv/siftkv/internal/storetest/stores"
	"github.com/siftkv/siftkv/internal/version"
	"github.com/siftkv/siftkv/internal/vfs"
	"github.com/siftkv/siftkv/kv"
	"github.com/stretchr/testify/require"
)

// TestModelBackup makes a full backup and several since marks while a random history
// goes on, with snapshots and iterators open, and restores them one after the other.
func TestModelBackup(t *testing.T) {
	t.Parallel()
	fullBytes, moreBytes, separated := 0, 0, 0
	for seed := range uint64(scale.Count(scale.Fewer(4, 2), 10)) {
		rng := rand.New(rand.NewPCG(seed, 707))
		r := &modelRun{t: t, rng: rng, fs: vfs.NewMem(), opts: stores.RandomOptions(rng), m: modelStore{},
			clock:     &storetest.Clock{},
			separated: true}
		r.open()
		var streams bytes.Buffer
		var models []modelStore
		var mark kv.BackupMark
		for range 6 {
			for n := range 10 + rng.IntN(200) {
				if rng.IntN(30) == 0 {
					r.ingest(1000*len(models) + n)
				}
				r.step()
			}
			stream, m := stores.BackUp(t, r.db, mark)
			if mark.IsZero() {
				fullBytes += len(stream)
			} else {
				moreBytes += len(stream)
			}
			streams.Write(stream)
			models, mark = append(models, maps.Clone(r.m)), m
		}
		disk := vfs.NewMem()
		for _, m := range models { // one after the other, out of one reader
			require.NoError(
				t,
				kv.Restore(t.Context(), &streams, "restored", stores.With(harness.Harness{FS: disk}, &kv.Options{})),
				"seed %d",
				seed,
			)
			stores.RequireRestoredAt(t, disk, "restored", m.At(r.clock.Now()), r.clock)
		}
		require.Zero(t, streams.Len())
		names, err := disk.List("restored")
		require.NoError(t, err)
		stray := 0
		for _, name := range names {
			if kind, _ := manifest.ParseFileName(name); kind == manifest.FileTable || kind == manifest.FileBlob {
				stray++
			}
		}
		// so that nothing is compacted
		db, err := kv.Open(
			"restored",
			stores.With(harness.Harness{FS: disk}, &kv.Options{Clock: r.clock.Time, ReadOnly: true}),
		)
		require.NoError(t, err)
		files, release, err := harness.FilesOf(db)
		require.NoError(t, err)
		files.Version.All(func(int, *version.Table) { stray-- })
		blobs := files.Version.BlobTotals().Files
		release()
		separated += blobs
		stray -= blobs
		require.Zero(t, stray, "files of earlier backups are left")
		require.NoError(t, db.Close())
		db, err = kv.Open("restored", stores.With(harness.Harness{FS: disk}, &kv.Options{Clock: r.clock.Time}))
		require.NoError(t, err)
		require.NoError(t, db.Set([]byte("new"), []byte("write"), nil))
		models[len(models)-1].Set("new", "write")
		storetest.RequireContents(t, models[len(models)-1].At(r.clock.Now()), db)
		require.NoError(t, db.Close())
		r.release()
		require.NoError(t, r.db.Close())
	}
	require.Positive(t, separated)
	t.Logf("full backups have %d bytes, those since a mark %d; %d blob files were restored", fullBytes, moreBytes,
		separated)
}

// everything returns what a reader has.
func everything(t *testing.T, db kv.Reader) storetest.Model {
	t.Helper()
	all := storetest.Model{}
	it, err := db.NewIter(nil)
	require.NoError(t, err)
	for ok := it.First(); ok; ok = it.Next() {
		all[string(it.Key())] = string(it.Value())
	}
	require.NoError(t, it.Error())
	require.NoError(t, it.Close())
	return all
}

// TestModelBackupOfViews backs up views of a random history, and of the store after a crash: what the
// backups hold is what the views have, with operands, expiring values and range tombstones of the log.
func TestModelBackupOfViews(t *testing.T) {
	t.Parallel()
	logged, flushed := 0, 0
	seeds := scale.Count(scale.Fewer(5, 2), 10)
	for seed := range uint64(seeds) {
		rng := rand.New(rand.NewPCG(seed, 711))
		r := &modelRun{t: t, rng: rng, fs: vfs.NewMem(), opts: stores.RandomOptions(rng), m: modelStore{},
			clock:     &storetest.Clock{},
			separated: true}
		r.open()
		check := func(db *kv.DB, err error) {
			t.Helper()
			require.NoError(t, err)
			want := everything(t, db)
			var stream bytes.Buffer
			mark, err := db.Backup(t.Context(), &stream, kv.BackupMark{})
			require.NoError(t, err)
			if db.Metrics().Memtables < 2 {
				flushed++
			} else {
				logged++
			}
			verified, err := kv.VerifyBackup(bytes.NewReader(stream.Bytes()))
			require.NoError(t, err)
			require.Equal(t, mark, verified)
			require.Equal(t, want, everything(t, db), "the view is as it was")
			require.NoError(t, db.Close())
			disk := vfs.NewMem()
			require.NoError(
				t,
				kv.Restore(t.Context(), &stream, "restored", stores.With(harness.Harness{FS: disk}, &kv.Options{})),
				"seed %d",
				seed,
			)
			stores.RequireRestoredAt(t, disk, "restored", want, r.clock)
			again, err := kv.Open("restored", stores.With(harness.Harness{FS: disk}, &kv.Options{Clock: r.clock.Time}))
			require.NoError(t, err)
			require.Equal(t, want, everything(t, again))
			require.NoError(t, again.Close())
		}
		o := kv.Options{Clock: r.clock.Time, Merger: r.opts.Merger, CacheSize: 1 << 20}
		harness.Of(&o).FS = r.fs
		for range 6 {
			for range rng.IntN(200) {
				r.step()
			}
			check(kv.OpenReadOnly("db", &o))
			if rng.IntN(2) == 0 {
				require.NoError(t, r.db.Flush(t.Context()))
				check(kv.OpenReadOnly("db", &o))
			}
		}
		dir := "db"
		r.release()
		require.NoError(t, r.db.Close())
		o.ReadOnly = true
		check(kv.Open(dir, &o))
	}
	require.Greater(t, logged, seeds)
	require.Greater(t, flushed, seeds/2)
}
