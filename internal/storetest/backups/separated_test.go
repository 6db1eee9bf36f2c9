package backups

import (
	"bytes"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/internal/backup"
	"github.com/siftkv/siftkv/internal/harness"
	"github.com/siftkv/siftkv/internal/manifest"
	"github.com/siftkv/siftkv/internal/storetest"
	"github.com/siftkv/siftkv/internal/storetest/stores"
	"github.com/siftkv/siftkv/internal/vfs"
	"github.com/siftkv/siftkv/kv"
	"github.com/siftkv/siftkv/sstable"
)

// blobFiles returns how many blob files the version of a store has.
func blobFiles(t *testing.T, db *kv.DB) int {
	t.Helper()
	f, release, err := harness.FilesOf(db)
	require.NoError(t, err)
	defer release()
	return f.Version.BlobTotals().Files
}

// An increment has no blob file that a backup before had, whatever was compacted since.
func TestIncrementsHaveEachBlobFileOnce(t *testing.T) {
	db, err := kv.Open("db", stores.With(harness.Harness{FS: vfs.NewMem()}, &kv.Options{SeparateFrom: 100,
		L0CompactionThreshold: 100,
		Compression:           sstable.NoCompression}))
	require.NoError(t, err)
	m, rng := storetest.Model{}, rand.New(rand.NewPCG(3, 3))
	write := func(from, to int) {
		for i := from; i < to; i++ {
			k := fmt.Sprintf("key%03d", i)
			m[k] = string(storetest.RandomBytes(rng, 10_000))
			require.NoError(t, db.Set([]byte(k), []byte(m[k]), kv.NoSync))
		}
		require.NoError(t, db.Flush(t.Context()))
	}
	write(0, 100)
	disk := vfs.NewMem()
	o := stores.With(harness.Harness{FS: disk}, &kv.Options{})
	restore := func(stream []byte) {
		require.NoError(t, kv.Restore(t.Context(), bytes.NewReader(stream), "restored", o))
		stores.RequireRestored(t, disk, "restored", m)
		view, err := kv.Open("restored", stores.With(harness.Harness{FS: disk}, &kv.Options{ReadOnly: true}))
		require.NoError(t, err)
		require.Equal(t, blobFiles(t, db), storetest.RequireBlobs(t, view), "files of earlier backups are gone")
		require.NoError(t, view.Close())
	}
	full, mark := stores.BackUp(t, db, kv.BackupMark{})
	t.Logf("full: %d bytes", len(full))
	require.Greater(t, len(full), 1_000_000)
	restore(full)

	write(100, 102)
	require.NoError(t, db.Compact(t.Context(), nil, nil))
	compacted, mark := stores.BackUp(t, db, mark)
	t.Logf("two values more, and compacted: %d bytes", len(compacted))
	require.Less(t, len(compacted), 60_000, "two new values, and tables of 40 bytes for each")
	restore(compacted)

	require.NoError(t, db.DeleteRange([]byte("key000"), []byte("key100"), nil))
	for i := range 100 {
		delete(m, fmt.Sprintf("key%03d", i))
	}
	require.NoError(t, db.Compact(t.Context(), nil, nil))
	require.Equal(t, 1, blobFiles(t, db))
	deleted, mark := stores.BackUp(t, db, mark)
	require.Less(t, len(deleted), 10_000)
	restore(deleted)
	same, _ := stores.BackUp(t, db, mark)
	require.Less(t, len(same), 1_000)
	restore(same)
	require.NoError(t, db.Close())
}

// A backup ends at a blob file that is damaged, missing or another one, by name, and goes on once it is whole.
func TestADamagedBlobFileIsNotBackedUp(t *testing.T) {
	t.Parallel()
	fsys := vfs.NewMem()
	db, clock, m := stores.Separated(t, fsys)
	names := storetest.BlobNames(t, db)
	require.NoError(t, db.Close())
	o := stores.With(harness.Harness{FS: fsys}, &kv.Options{Merger: kv.Append(","), Clock: clock.Time, ReadOnly: true})
	refuse := func(name string) {
		t.Helper()
		db, err := kv.Open("db", o)
		if err == nil {
			_, err = db.Backup(t.Context(), io.Discard, kv.BackupMark{})
			require.NoError(t, db.Close())
		}
		require.ErrorIs(t, err, kv.ErrCorruption)
		require.ErrorContains(t, err, name)
	}
	for n, name := range names[:3] {
		whole := storetest.ReadAll(t, fsys, name)
		for at := n; at < len(whole); at += 211 {
			bad := bytes.Clone(whole)
			bad[at] ^= 1 << (at % 8)
			require.NoError(t, vfs.ReplaceFile(fsys, name, bad))
			refuse(name)
		}
		require.NoError(t, vfs.ReplaceFile(fsys, name, storetest.ReadAll(t, fsys, names[3])))
		refuse(name)
		require.NoError(t, fsys.Remove(name))
		refuse(name)
		require.NoError(t, vfs.ReplaceFile(fsys, name, whole))
	}
	db, err := kv.Open("db", o)
	require.NoError(t, err)
	stream, _ := stores.BackUp(t, db, kv.BackupMark{})
	require.NoError(t, db.Close())
	disk := vfs.NewMem()
	require.NoError(t, kv.Restore(t.Context(), bytes.NewReader(stream), "dir",
		stores.With(harness.Harness{FS: disk}, &kv.Options{})))
	harness.Of(o).FS = disk
	db, err = kv.Open("dir", o)
	require.NoError(t, err)
	stores.RequireSeparated(t, db, m)
	require.NoError(t, db.Close())
}

// A forgery is what is to be in a stream.
type forgery struct {
	store *manifest.Edit
	files []backup.Sent
	data  [][]byte // of the files
}

// forged returns a stream whose frames are whole, of the backup in another stream as a function changes it.
func forged(t *testing.T, stream []byte, forge func(f *forgery)) []byte {
	t.Helper()
	r, err := backup.NewReader(bytes.NewReader(stream))
	require.NoError(t, err)
	sent := map[backup.Sent][]byte{}
	for {
		s, ok, err := r.NextFile()
		require.NoError(t, err)
		if !ok {
			break
		}
		for int64(len(sent[s])) < s.Size {
			chunk, err := r.Chunk()
			require.NoError(t, err)
			sent[s] = append(sent[s], chunk...)
		}
	}
	store, err := manifest.DecodeEdit(r.Description())
	require.NoError(t, err)
	f := forgery{store: store}
	add := func(kind manifest.FileKind, num, id uint64, size int64) {
		s := backup.Sent{File: backup.File{Num: num, ID: id}, Kind: kind, Size: size}
		require.Contains(t, sent, s)
		f.files, f.data = append(f.files, s), append(f.data, sent[s])
	}
	for _, b := range store.AddedBlobs {
		add(manifest.FileBlob, b.Num, b.ID, b.Size)
	}
	for _, a := range store.Added {
		add(manifest.FileTable, a.Table.Num, a.Table.ID, a.Table.Size)
	}
	require.Len(t, f.files, len(sent))
	forge(&f)
	h := r.Header()
	h.BackupID, h.Files, h.Bytes = 5, uint64(len(f.files)), 0
	for _, data := range f.data {
		h.Bytes += int64(len(data))
	}
	var b bytes.Buffer
	w, err := backup.NewWriter(&b, &h)
	require.NoError(t, err)
	for i, s := range f.files {
		require.NoError(t, w.File(s.Kind, s.File, int64(len(f.data[i]))))
		for data := range slices.Chunk(f.data[i], backup.MaxPayload) {
			require.NoError(t, w.Data(data))
		}
	}
	require.NoError(t, w.End(f.store.Append(nil)))
	return b.Bytes()
}

// Streams whose checksums are right and whose files and description do not fit each other become no store.
func TestStreamsThatDoNotMeanWhatTheySay(t *testing.T) {
	db, _, _ := stores.Separated(t, vfs.NewMem())
	require.NoError(t, db.Compact(t.Context(), nil, nil))
	restore := func(stream []byte) (restored, verified error) {
		disk := vfs.NewMem()
		restored = kv.Restore(t.Context(), bytes.NewReader(stream), "dir", stores.With(harness.Harness{FS: disk},
			&kv.Options{}))
		_, verified = kv.VerifyBackup(bytes.NewReader(stream))
		view, opened := kv.Open("dir", stores.With(harness.Harness{FS: disk},
			&kv.Options{ReadOnly: true, Merger: kv.Append(",")}))
		if opened == nil {
			require.NoError(t, view.Close())
		}
		if restored != nil {
			require.ErrorIs(t, restored, kv.ErrRestoreUnfinished)
			require.ErrorIs(t, opened, kv.ErrRestoreUnfinished)
		}
		return restored, verified
	}
	whole, _ := stores.BackUp(t, db, kv.BackupMark{})
	restored, verified := restore(forged(t, whole, func(*forgery) {}))
	require.NoError(t, restored)
	require.NoError(t, verified)
	for what, forge := range map[string]func(f *forgery){
		"a blob file is missing": func(f *forgery) { f.files, f.data = f.files[1:], f.data[1:] },
		"it is not described":    func(f *forgery) { f.store.AddedBlobs = f.store.AddedBlobs[1:] },
		"it is described twice": func(f *forgery) {
			f.store.AddedBlobs = append(f.store.AddedBlobs, f.store.AddedBlobs[0])
		},
		"it has another id":        func(f *forgery) { f.store.AddedBlobs[0].ID++ },
		"it has another size":      func(f *forgery) { f.store.AddedBlobs[0].Size++ },
		"it comes as a table":      func(f *forgery) { f.files[0].Kind = manifest.FileTable },
		"a table comes as one":     func(f *forgery) { f.files[len(f.files)-1].Kind = manifest.FileBlob },
		"a table refers to more":   func(f *forgery) { f.store.Added[0].Table.Blobs[0].Bytes += 1 << 20 },
		"a table refers to others": func(f *forgery) { f.store.Added[0].Table.Blobs[0].Num += 1000 },
		"it deletes one":           func(f *forgery) { f.store.DeletedBlobs = []uint64{77} },
	} {
		restored, verified := restore(forged(t, whole, forge))
		require.Error(t, restored, what)
		require.Error(t, verified, what)
	}
	// What files say of themselves is asked when all are there.
	for what, forge := range map[string]func(f *forgery){
		"it has more records":  func(f *forgery) { f.store.AddedBlobs[0].Records++ },
		"it has longer values": func(f *forgery) { f.store.AddedBlobs[0].ValueBytes++ },
		"a table refers to less": func(f *forgery) {
			f.store.Added[0].Table.Blobs[0].Records--
			f.store.Added[0].Table.Blobs[0].Bytes -= 20
		},
		"it is damaged": func(f *forgery) { f.data[0][len(f.data[0])-1] ^= 1 },
		"its id is another's": func(f *forgery) {
			f.files[0].ID++
			f.store.AddedBlobs[0].ID++
		},
	} {
		restored, verified := restore(forged(t, whole, forge))
		require.ErrorIs(t, restored, kv.ErrCorruption, what)
		require.Regexp(t, `\.blob|\.sst`, restored.Error(), what)
		require.NoError(t, verified, what)
	}
	require.NoError(t, db.Close())
}

// A copy of files out of an object store has blob files whole and verified.
func TestBlobFilesAreVerifiedAsTheyAreCopied(t *testing.T) {
	t.Parallel()
	fsys := vfs.NewMem()
	db, _, _ := stores.Separated(t, fsys)
	name := storetest.BlobNames(t, db)[0]
	whole := storetest.ReadAll(t, fsys, name)
	w := backup.VerifiedFS{FS: fsys}
	require.Equal(t, whole, storetest.ReadAll(t, w, name))
	for at := 0; at < len(whole); at += 7 {
		bad := bytes.Clone(whole)
		bad[at] ^= 4
		require.NoError(t, vfs.ReplaceFile(fsys, name, bad))
		_, err := w.Open(name)
		require.ErrorContains(t, err, name, "byte %d", at)
	}
	require.NoError(t, vfs.ReplaceFile(fsys, name, whole))
	require.NoError(t, db.Close())
}
