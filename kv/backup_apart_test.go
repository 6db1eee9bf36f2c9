package kv

import (
	"bytes"
	"fmt"
	"io"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/internal/backup"
	"github.com/siftkv/siftkv/internal/harness"
	"github.com/siftkv/siftkv/internal/manifest"
	"github.com/siftkv/siftkv/internal/storetest"
	"github.com/siftkv/siftkv/internal/vfs"
	"github.com/siftkv/siftkv/sstable"
)

// blobNames returns the paths of a store's blob files.
func blobNames(db *DB) (names []string) {
	for b := range db.current.Blobs() {
		names = append(names, filepath.Join(db.dir, b.Name()))
	}
	return names
}

// An increment has no blob file that a backup before had, whatever was compacted since.
func TestIncrementsHaveEachBlobFileOnce(t *testing.T) {
	db, err := Open("db", &Options{harness: harness.Harness{FS: vfs.NewMem()}, SeparateFrom: 100,
		L0CompactionThreshold: 100,
		Compression:           sstable.NoCompression})
	require.NoError(t, err)
	m, rng := storetest.Model{}, rand.New(rand.NewPCG(3, 3))
	write := func(from, to int) {
		for i := from; i < to; i++ {
			k := fmt.Sprintf("key%03d", i)
			m[k] = string(randomBytes(rng, 10_000))
			require.NoError(t, db.Set([]byte(k), []byte(m[k]), NoSync))
		}
		require.NoError(t, db.Flush(t.Context()))
	}
	write(0, 100)
	disk := vfs.NewMem()
	o := &Options{harness: harness.Harness{FS: disk}}
	restore := func(stream []byte) {
		require.NoError(t, Restore(t.Context(), bytes.NewReader(stream), "restored", o))
		requireRestored(t, disk, "restored", m)
		view, err := Open("restored", &Options{harness: harness.Harness{FS: disk}, ReadOnly: true})
		require.NoError(t, err)
		require.Equal(t, db.current.BlobTotals().Files, requireBlobs(t, view), "files of earlier backups are gone")
		require.NoError(t, view.Close())
	}
	full, mark := backUp(t, db, BackupMark{})
	t.Logf("full: %d bytes", len(full))
	require.Greater(t, len(full), 1_000_000)
	restore(full)

	write(100, 102)
	require.NoError(t, db.Compact(t.Context(), nil, nil))
	compacted, mark := backUp(t, db, mark)
	t.Logf("two values more, and compacted: %d bytes", len(compacted))
	require.Less(t, len(compacted), 60_000, "two new values, and tables of 40 bytes for each")
	restore(compacted)

	require.NoError(t, db.DeleteRange([]byte("key000"), []byte("key100"), nil))
	for i := range 100 {
		delete(m, fmt.Sprintf("key%03d", i))
	}
	require.NoError(t, db.Compact(t.Context(), nil, nil))
	require.Equal(t, 1, db.current.BlobTotals().Files)
	deleted, mark := backUp(t, db, mark)
	require.Less(t, len(deleted), 10_000)
	restore(deleted)
	same, _ := backUp(t, db, mark)
	require.Less(t, len(same), 1_000)
	restore(same)
	require.NoError(t, db.Close())
}

// A backup ends at a blob file that is damaged, missing or another one, by name, and goes on once it is whole.
func TestADamagedBlobFileIsNotBackedUp(t *testing.T) {
	t.Parallel()
	fsys := vfs.NewMem()
	db, clock, m := apartStore(t, fsys)
	names := blobNames(db)
	require.NoError(t, db.Close())
	o := &Options{harness: harness.Harness{FS: fsys}, Merger: Append(","), Clock: clock.Time, ReadOnly: true}
	refuse := func(name string) {
		t.Helper()
		db, err := Open("db", o)
		if err == nil {
			_, err = db.Backup(t.Context(), io.Discard, BackupMark{})
			require.NoError(t, db.Close())
		}
		require.ErrorIs(t, err, ErrCorruption)
		require.ErrorContains(t, err, name)
	}
	for n, name := range names[:3] {
		whole := readAll(t, fsys, name)
		for at := n; at < len(whole); at += 211 {
			bad := bytes.Clone(whole)
			bad[at] ^= 1 << (at % 8)
			require.NoError(t, vfs.ReplaceFile(fsys, name, bad))
			refuse(name)
		}
		require.NoError(t, vfs.ReplaceFile(fsys, name, readAll(t, fsys, names[3])))
		refuse(name)
		require.NoError(t, fsys.Remove(name))
		refuse(name)
		require.NoError(t, vfs.ReplaceFile(fsys, name, whole))
	}
	db, err := Open("db", o)
	require.NoError(t, err)
	stream, _ := backUp(t, db, BackupMark{})
	require.NoError(t, db.Close())
	disk := vfs.NewMem()
	require.NoError(t, Restore(t.Context(), bytes.NewReader(stream), "dir",
		&Options{harness: harness.Harness{FS: disk}}))
	o.harness.FS = disk
	db, err = Open("dir", o)
	require.NoError(t, err)
	requireReads(t, db, m)
	require.NoError(t, db.Close())
}

// A forgery is what is to be in a stream.
type forgery struct {
	store *manifest.Edit
	files []backup.Sent
	data  [][]byte // of the files
}

// forged returns a stream whose frames are whole, of a store as a function has it.
func forged(t *testing.T, db *DB, forge func(f *forgery)) []byte {
	t.Helper()
	v, e := db.pinVersion()
	defer db.cleaner.Release(v)
	f := forgery{store: e}
	for i := range e.Added {
		t := &e.Added[i].Table
		t.Blobs = slices.Clone(t.Blobs)
	}
	for i := range e.AddedBlobs {
		f.files = append(f.files, sentBlob(&e.AddedBlobs[i]))
	}
	for i := range e.Added {
		f.files = append(f.files, sentTable(&e.Added[i].Table))
	}
	for _, s := range f.files {
		f.data = append(f.data, readAll(t, db.fs, manifest.Path(db.dir, s.Kind, s.Num)))
	}
	forge(&f)
	h := &backup.Header{StoreID: e.StoreID, BackupID: 5, LastSeq: e.LastSeq, Files: uint64(len(f.files)),
		HasBlobs: true}
	for _, data := range f.data {
		h.Bytes += int64(len(data))
	}
	var b bytes.Buffer
	w, err := backup.NewWriter(&b, h)
	require.NoError(t, err)
	for i, s := range f.files {
		require.NoError(t, w.File(s.Kind, s.File, int64(len(f.data[i]))))
		for data := range slices.Chunk(f.data[i], backup.MaxPayload) {
			require.NoError(t, w.Data(data))
		}
	}
	require.NoError(t, w.End(e.Append(nil)))
	return b.Bytes()
}

// Streams whose checksums are right and whose files and description do not fit each other become no store.
func TestStreamsThatDoNotMeanWhatTheySay(t *testing.T) {
	db, _, _ := apartStore(t, vfs.NewMem())
	require.NoError(t, db.Compact(t.Context(), nil, nil))
	restore := func(stream []byte) (restored, verified error) {
		disk := vfs.NewMem()
		restored = Restore(t.Context(), bytes.NewReader(stream), "dir", &Options{harness: harness.Harness{FS: disk}})
		_, verified = VerifyBackup(bytes.NewReader(stream))
		view, opened := Open("dir", &Options{harness: harness.Harness{FS: disk}, ReadOnly: true, Merger: Append(",")})
		if opened == nil {
			require.NoError(t, view.Close())
		}
		if restored != nil {
			require.ErrorIs(t, restored, ErrRestoreUnfinished)
			require.ErrorIs(t, opened, ErrRestoreUnfinished)
		}
		return restored, verified
	}
	restored, verified := restore(forged(t, db, func(*forgery) {}))
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
		restored, verified := restore(forged(t, db, forge))
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
		restored, verified := restore(forged(t, db, forge))
		require.ErrorIs(t, restored, ErrCorruption, what)
		require.Regexp(t, `\.blob|\.sst`, restored.Error(), what)
		require.NoError(t, verified, what)
	}
	require.NoError(t, db.Close())
}

// A copy of files out of an object store has blob files whole and verified.
func TestBlobFilesAreVerifiedAsTheyAreCopied(t *testing.T) {
	t.Parallel()
	fsys := vfs.NewMem()
	db, _, _ := apartStore(t, fsys)
	name := blobNames(db)[0]
	whole := readAll(t, fsys, name)
	w := backup.VerifiedFS{FS: fsys}
	require.Equal(t, whole, readAll(t, w, name))
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
