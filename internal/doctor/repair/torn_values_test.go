package repair

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/internal/compaction"
	"github.com/siftkv/siftkv/internal/doctor"
	"github.com/siftkv/siftkv/internal/harness"
	"github.com/siftkv/siftkv/internal/manifest"
	"github.com/siftkv/siftkv/internal/survey"
	"github.com/siftkv/siftkv/internal/vfs"
	"github.com/siftkv/siftkv/kv"
)

// large returns a value that a commit separates.
func large(tag string) string { return fmt.Sprintf("%s %0200d", tag, 0) }

// tornStore returns a copy of an open store in which the large values with the given tags are not whole. The key "a"
// has an older value in a table, and write writes to the log.
func tornStore(t *testing.T, write func(set func(k, v string), db *kv.DB), torn ...string) (dir string) {
	t.Helper()
	from := filepath.Join(t.TempDir(), "open")
	db, err := kv.Open(from, &kv.Options{SeparateFrom: 100, SeparateAtCommit: true})
	require.NoError(t, err)
	set := func(k, v string) { require.NoError(t, db.Set([]byte(k), []byte(v), kv.NoSync)) }
	set("a", large("older"))
	require.NoError(t, db.Flush(t.Context()))
	write(set, db)
	dir = filepath.Join(t.TempDir(), "store")
	copyOpen(t, from, dir)
	_ = db.Close() // it may be closed
	for _, tag := range torn {
		tear(t, dir, tag)
	}
	return dir
}

// tear puts zeros in the place of a large value, as a power cut does that kept the pages around it.
func tear(t *testing.T, dir, tag string) {
	t.Helper()
	for _, name := range filesOf(t, dir, manifest.FileBlob) {
		data, err := os.ReadFile(name)
		require.NoError(t, err)
		if at := bytes.Index(data, []byte(large(tag))); at >= 0 {
			clear(data[at : at+len(large(tag))])
			replace(t, name, data)
			return
		}
	}
	require.FailNow(t, "no blob file has the value", tag)
}

// requireEndsBeforeTorn checks that a repair into another directory loses nothing for certain, and returns what is in
// that: what was written before the torn value, and the older value of its key.
func requireEndsBeforeTorn(t *testing.T, dir string) (want map[string]string) {
	t.Helper()
	out := filepath.Join(t.TempDir(), "out")
	r, err := Run(t.Context(), dir, Options{Out: out})
	require.NoError(t, err)
	require.False(t, r.Needed)
	require.False(t, r.LostForSure(), "%+v", r)
	require.True(t, r.Covers([]byte("c")), "%+v", r)
	want = map[string]string{"a": large("older"), "b": large("before")}
	require.Equal(t, want, contents(t, out))
	return want
}

// A power cut may leave a record without its value, if it was not synced. Open ends the log there, and so does a
// repair: an older value of the key shows, and later writes are gone.
func TestALogEndsAtAValueThatIsNotWhole(t *testing.T) {
	t.Parallel()
	for name, write := range map[string]func(set func(k, v string), db *kv.DB){
		"the last record": func(set func(k, v string), _ *kv.DB) {
			set("b", large("before"))
			set("a", large("torn"))
		},
		"a record in the middle": func(set func(k, v string), _ *kv.DB) {
			set("b", large("before"))
			set("a", large("torn"))
			set("c", large("after"))
			set("b", "short")
		},
		"a value of a batch": func(set func(k, v string), db *kv.DB) {
			set("b", large("before"))
			b := db.NewBatch()
			require.NoError(t, b.Set([]byte("c"), []byte(large("whole"))))
			require.NoError(t, b.Set([]byte("a"), []byte(large("torn"))))
			require.NoError(t, b.Commit(kv.NoSync))
			set("c", large("after"))
		},
		"after what was synced": func(set func(k, v string), db *kv.DB) {
			set("b", large("before"))
			require.NoError(t, db.Sync(t.Context()))
			set("a", large("torn"))
			set("c", large("after"))
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := tornStore(t, write, "torn")
			s, err := doctor.Verify(t.Context(), dir, survey.Options{})
			require.NoError(t, err)
			require.Empty(t, s.Damage)
			require.Contains(t, fmt.Sprint(s.Notes), "is not whole")

			want := requireEndsBeforeTorn(t, dir)

			require.NoError(t, os.Remove(filepath.Join(dir, manifest.CurrentName)))
			lost := filepath.Join(t.TempDir(), "lost")
			copyDir(t, dir, lost)
			r, err := Run(t.Context(), dir, Options{})
			require.NoError(t, err)
			require.False(t, r.LostForSure(), "%+v", r)
			require.Equal(t, want, contents(t, dir))

			for _, f := range filesOf(t, lost, manifest.FileManifest) {
				require.NoError(t, os.Remove(f))
			}
			_, err = Run(t.Context(), lost, Options{})
			require.NoError(t, err)
			require.Equal(t, want, contents(t, lost))
		})
	}
}

// A value that is not whole although it was synced is damage: it is lost, its key shows nothing older, and every record
// of the log counts.
func TestAValueThatWasSyncedDoesNotEndALog(t *testing.T) {
	t.Parallel()
	for name, write := range map[string]func(set func(k, v string), db *kv.DB){
		"a later record says so": func(set func(k, v string), db *kv.DB) {
			set("a", large("torn"))
			require.NoError(t, db.Sync(t.Context()))
			set("b", "short")
			set("c", large("unsynced"))
			set("d", "last")
		},
		"the store was closed": func(set func(k, v string), db *kv.DB) {
			set("b", "short")
			set("d", large("before"))
			require.NoError(t, db.Sync(t.Context()))
			set("d", "last")
			set("a", large("torn"))
			set("c", large("unsynced"))
			require.NoError(t, db.Close())
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := tornStore(t, write, "torn", "unsynced")
			s, err := doctor.Verify(t.Context(), dir, survey.Options{})
			require.NoError(t, err)
			require.NotEmpty(t, s.Damage)
			require.Equal(t, manifest.FileBlob, kindOf(s.Damage[0].File), "%v", s.Damage)
			_, err = kv.Open(dir, &kv.Options{ReadOnly: true})
			require.ErrorIs(t, err, kv.ErrCorruption)

			r, err := Run(t.Context(), dir, Options{})
			require.NoError(t, err)
			require.True(t, r.Needed)
			require.True(t, r.LostForSure())
			require.True(t, r.Covers([]byte("a")))
			require.True(t, r.Covers([]byte("c")))
			require.Equal(t, map[string]string{"b": "short", "d": "last"}, contents(t, dir))
		})
	}
}

// Each value of a batch that was synced and is not whole is named.
func TestEachDamagedValueOfABatchIsNamed(t *testing.T) {
	t.Parallel()
	dir := tornStore(t, func(set func(k, v string), db *kv.DB) {
		b := db.NewBatch()
		for _, k := range []string{"first", "whole", "last"} {
			require.NoError(t, b.Set([]byte(k), []byte(large(k))))
		}
		require.NoError(t, b.Commit(kv.NoSync))
		require.NoError(t, db.Sync(t.Context()))
		set("b", "short")
	}, "first", "last")
	s, err := doctor.Verify(t.Context(), dir, survey.Options{})
	require.NoError(t, err)
	require.Len(t, s.Damage, 2)
	require.Equal(t, s.Damage[0].File, s.Damage[1].File)
	require.Less(t, s.Damage[0].Offset, s.Damage[1].Offset)
}

// Values that are not whole end a log, unless something else of it was lost: then every record counts, however many
// values come before what shows it.
func TestEveryRecordCountsIfAStreamIsLostToo(t *testing.T) {
	t.Parallel()
	for _, n := range []int{1, 120} {
		var tags []string
		for i := range n {
			tags = append(tags, fmt.Sprintf("torn%03d", i))
		}
		dir := tornStore(t, func(set func(k, v string), db *kv.DB) {
			for _, tag := range tags {
				set(tag, large(tag))
			}
			stream := strings.Repeat("stream", 1<<18)
			require.NoError(t, db.SetReader(t.Context(), []byte("stream"), int64(len(stream)),
				strings.NewReader(stream), kv.NoSync))
			set("d", "last")
		}, tags...)
		for _, name := range filesOf(t, dir, manifest.FileBlob) {
			data, err := os.ReadFile(name)
			require.NoError(t, err)
			if !bytes.Contains(data, []byte(large("older"))) && !bytes.Contains(data, []byte(tags[0])) {
				require.NoError(t, os.Remove(name))
			}
		}
		s, err := doctor.Verify(t.Context(), dir, survey.Options{})
		require.NoError(t, err)
		require.Len(t, s.Damage, min(n, 100)+1, "each value, and the stream")
		require.Equal(t, n > 100, strings.Contains(fmt.Sprint(s.Notes), " 20 more values "), "%v", s.Notes)
		r, err := Run(t.Context(), dir, Options{})
		require.NoError(t, err)
		require.True(t, r.LostForSure(), "%d", n)
		require.Equal(t, "last", contents(t, dir)["d"], "%d", n)
	}
}

// Of many values that were synced and are not whole, a survey lists some, and counts the others. A blob file that is
// missing is listed once. What a device cannot read of one is damage of that file.
func TestDamagedValuesOfALogAreListedOnce(t *testing.T) {
	t.Parallel()
	var tags []string
	for i := range 120 {
		tags = append(tags, fmt.Sprintf("torn%03d", i))
	}
	dir := tornStore(t, func(set func(k, v string), db *kv.DB) {
		for _, tag := range tags {
			set(tag, large(tag))
		}
		require.NoError(t, db.Sync(t.Context()))
		set("b", "short")
	}, tags...)
	s, err := doctor.Verify(t.Context(), dir, survey.Options{})
	require.NoError(t, err)
	name := s.Damage[0].File
	require.Len(t, s.Damage, 100)
	require.Contains(t, fmt.Sprint(s.Notes), " 20 more values ")
	require.NoError(t, os.Remove(filepath.Join(dir, name)))
	r, err := Run(t.Context(), dir, Options{DryRun: true})
	require.NoError(t, err)
	require.Len(t, r.Damage, 1)

	dir = tornStore(t, func(set func(k, v string), db *kv.DB) {
		set("a", large("synced"))
		require.NoError(t, db.Sync(t.Context()))
		set("b", "short")
	})
	names := filesOf(t, dir, manifest.FileBlob)
	fsys := &unreadableFS{FS: vfs.OS, name: filepath.Base(names[len(names)-1])}
	r, err = Run(t.Context(), dir, Options{fs: fsys, Out: filepath.Join(t.TempDir(), "out")})
	require.NoError(t, err)
	require.True(t, fsys.hit)
	require.NotEmpty(t, r.Damage)
	for _, d := range r.Damage {
		require.Equal(t, fsys.name, d.File, "%v", r.Damage)
	}
}

// A failingDevice reads nothing but the header of one file.
type failingDevice struct {
	vfs.FS
	name string
}

func (d failingDevice) Open(name string) (vfs.ReadFile, error) {
	f, err := d.FS.Open(name)
	if err == nil && filepath.Base(name) == d.name {
		f = failingFile{f}
	}
	return f, err
}

type failingFile struct{ vfs.ReadFile }

func (f failingFile) ReadAt(b []byte, off int64) (int, error) {
	if off > 0 {
		return 0, syscall.EIO
	}
	return f.ReadFile.ReadAt(b, off)
}

// Of many values that a device cannot read, a survey lists some, and counts the others.
func TestUnreadableValuesOfALogAreCounted(t *testing.T) {
	t.Parallel()
	dir := tornStore(t, func(set func(k, v string), db *kv.DB) {
		for i := range 200 {
			set(strconv.Itoa(i), large(strconv.Itoa(i)))
		}
		require.NoError(t, db.Sync(t.Context()))
		set("b", "short")
	})
	names := filesOf(t, dir, manifest.FileBlob)
	device := failingDevice{vfs.OS, filepath.Base(names[len(names)-1])}
	s, err := doctor.Verify(t.Context(), dir, survey.Options{FS: device, ReadAround: true})
	require.NoError(t, err)
	require.Len(t, s.Damage, 100)
	require.Contains(t, fmt.Sprint(s.Notes), " 100 more values ")
}

// A waitingFS creates no table while one waits.
type waitingFS struct {
	vfs.FS
	waits         atomic.Bool
	asked, goesOn chan struct{}
}

func (f *waitingFS) Create(name string) (vfs.WriteFile, error) {
	if kindOf(filepath.Base(name)) == manifest.FileTable && f.waits.CompareAndSwap(true, false) {
		close(f.asked)
		<-f.goesOn
	}
	return f.FS.Create(name)
}

// If a later log was synced, values that are not whole are damage, and are named or counted. The log before has its
// end.
func TestAValueBeforeALogThatWasSyncedIsNamed(t *testing.T) {
	t.Parallel()
	from := filepath.Join(t.TempDir(), "open")
	fsys := &waitingFS{FS: vfs.OS, asked: make(chan struct{}), goesOn: make(chan struct{})}
	o := &kv.Options{SeparateFrom: 100, SeparateAtCommit: true}
	*harness.Of(o) = harness.Harness{FS: fsys}
	db, err := kv.Open(from, o)
	require.NoError(t, err)
	var tags []string
	for i := range 120 {
		tags = append(tags, fmt.Sprintf("torn%03d", i))
		require.NoError(t, db.Set([]byte(tags[i]), []byte(large(tags[i])), kv.NoSync))
	}
	fsys.waits.Store(true)
	flushed := make(chan error, 1)
	go func() { flushed <- db.Flush(t.Context()) }()
	<-fsys.asked
	require.NoError(t, db.Set([]byte("b"), []byte("short"), kv.NoSync))
	require.NoError(t, db.Sync(t.Context()))
	require.NoError(t, db.Set([]byte("c"), []byte("short"), kv.NoSync))
	dir := filepath.Join(t.TempDir(), "store")
	copyDir(t, from, dir)
	close(fsys.goesOn)
	require.NoError(t, <-flushed)
	require.NoError(t, db.Close())
	for _, tag := range tags {
		tear(t, dir, tag)
	}
	s, err := doctor.Verify(t.Context(), dir, survey.Options{})
	require.NoError(t, err)
	require.Len(t, s.Damage, 100)
	for _, d := range s.Damage {
		require.Equal(t, manifest.FileBlob, kindOf(d.File), "%v", d)
	}
	require.Contains(t, fmt.Sprint(s.Notes), "which came later, was synced")
	require.Contains(t, fmt.Sprint(s.Notes), " 20 more values ")
}

// A tablelessFS creates no tables.
type tablelessFS struct {
	vfs.FS
	full atomic.Bool
}

func (f *tablelessFS) Create(name string) (vfs.WriteFile, error) {
	if f.full.Load() && kindOf(filepath.Base(name)) == manifest.FileTable {
		return nil, syscall.ENOSPC
	}
	return f.FS.Create(name)
}

// The blob file of a log that has ended has a footer, but it may not be whole in the middle. A repair does not keep it
// as it is, and says that history ends in that log.
func TestALogThatHasEndedEndsAtAValueThatIsNotWhole(t *testing.T) {
	t.Parallel()
	from := filepath.Join(t.TempDir(), "open")
	fsys := &tablelessFS{FS: vfs.OS}
	o := &kv.Options{SeparateFrom: 100, SeparateAtCommit: true}
	*harness.Of(o) = harness.Harness{FS: fsys, Backoff: compaction.Backoff{First: time.Hour, Max: time.Hour}}
	db, err := kv.Open(from, o)
	require.NoError(t, err)
	require.NoError(t, db.Set([]byte("a"), []byte(large("older")), kv.NoSync))
	require.NoError(t, db.Flush(t.Context()))
	require.NoError(t, db.Set([]byte("b"), []byte(large("before")), kv.NoSync))
	require.NoError(t, db.Set([]byte("a"), []byte(large("torn")), kv.NoSync))
	require.NoError(t, db.Set([]byte("c"), []byte(large("after")), kv.NoSync))
	fsys.full.Store(true)
	require.ErrorIs(t, db.Flush(t.Context()), kv.ErrReadOnly)
	dir := filepath.Join(t.TempDir(), "store")
	copyDir(t, from, dir)
	fsys.full.Store(false)
	require.NoError(t, db.Close())
	tear(t, dir, "torn")

	want := requireEndsBeforeTorn(t, dir)
	require.Equal(t, want, contents(t, dir))
}

// A record of a log's blob file counts for nothing if the log has lost its own: it does not prove that an older value,
// whose table is damaged, was overwritten.
func TestARecordWithoutALogHidesNoOlderValue(t *testing.T) {
	t.Parallel()
	for _, without := range []string{"", manifest.CurrentName, "MANIFEST"} {
		dir := tornStore(t, func(set func(k, v string), _ *kv.DB) {
			set("b", large("before"))
			set("a", large("cut off"))
		})
		log := filesOf(t, dir, manifest.FileWAL)[0]
		data, err := os.ReadFile(log)
		require.NoError(t, err)
		replace(t, log, data[:len(data)-1])
		table := filesOf(t, dir, manifest.FileTable)[0]
		data, err = os.ReadFile(table)
		require.NoError(t, err)
		data[0] ^= 1
		replace(t, table, data)
		for _, name := range append(filesOf(t, dir, manifest.FileManifest), filesOf(t, dir, manifest.FileCurrent)...) {
			if without != "" && strings.HasPrefix(filepath.Base(name), without) {
				require.NoError(t, os.Remove(name))
			}
		}

		r, err := Run(t.Context(), dir, Options{})
		require.NoError(t, err)
		require.True(t, r.Needed)
		require.False(t, r.LostForSure(), "%s: %+v", without, r)
		require.Equal(t, map[string]string{"a": large("older"), "b": large("before")}, contents(t, dir), without)
	}
}

// A log may have lost its end after its writes had gone to a table. If the table refers to the log's blob file, its
// values are rebuilt, past the end of the log.
func TestValuesAfterTheEndOfALogThatWasFlushedAreRebuilt(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "store")
	db, err := kv.Open(dir, &kv.Options{SeparateFrom: 100, SeparateAtCommit: true})
	require.NoError(t, err)
	require.NoError(t, db.Set([]byte("a"), []byte(large("first")), kv.NoSync))
	require.NoError(t, db.Set([]byte("b"), []byte(large("second")), kv.NoSync))
	log := filesOf(t, dir, manifest.FileWAL)[0]
	open := filepath.Join(t.TempDir(), "open")
	copyOpen(t, dir, open)
	data, err := os.ReadFile(filepath.Join(open, filepath.Base(log)))
	require.NoError(t, err)
	require.NoError(t, db.Flush(t.Context()))
	require.NoError(t, db.Close())
	require.NoError(t, os.WriteFile(log, data[:len(data)-1], 0o600))
	for _, name := range append(filesOf(t, dir, manifest.FileManifest), filesOf(t, dir, manifest.FileCurrent)...) {
		require.NoError(t, os.Remove(name))
	}
	table := filesOf(t, dir, manifest.FileTable)[0]
	data, err = os.ReadFile(table)
	require.NoError(t, err)
	data[0] ^= 1
	replace(t, table, data)
	r, err := Run(t.Context(), dir, Options{})
	require.NoError(t, err)
	require.Equal(t, map[string]string{"a": large("first"), "b": large("second")}, contents(t, dir), "%+v", r.Lost)
}

func kindOf(name string) manifest.FileKind {
	kind, _ := manifest.ParseFileName(name)
	return kind
}
