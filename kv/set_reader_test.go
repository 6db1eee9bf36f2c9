package kv

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"testing/iotest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/internal/harness"
	"github.com/siftkv/siftkv/internal/storetest"
	"github.com/siftkv/siftkv/internal/vfs"
	"github.com/siftkv/siftkv/internal/vfs/vfstest"
)

// setReader stores a value by SetReader.
func setReader(t *testing.T, db *DB, k, v string, o *WriteOptions) {
	t.Helper()
	require.NoError(t, db.SetReader(t.Context(), []byte(k), int64(len(v)), strings.NewReader(v), o))
}

// requireStreamed requires that a store has what a model has, however it is asked.
func requireStreamed(t *testing.T, db *DB, m storetest.Model) {
	t.Helper()
	requireContents(t, m, db)
	var keys [][]byte
	for i := range 20 {
		keys = append(keys, fmt.Appendf(nil, "key%03d", i))
	}
	values, err := db.MultiGet(keys)
	require.NoError(t, err)
	for i, key := range keys {
		want, ok := m[string(key)]
		require.Equal(t, ok, values[i] != nil, "%s", key)
		require.True(t, want == string(values[i]), "%s", key)
		has, err := db.Has(key)
		require.NoError(t, err)
		require.Equal(t, ok, has)
		if !ok {
			continue
		}
		size, err := db.GetSize(key)
		require.NoError(t, err)
		require.Equal(t, len(want), size)
		r, err := db.GetReader(key)
		require.True(t, want == readValue(t, r, err))
	}
	it, err := db.NewIter(&IterOptions{KeysOnly: true})
	require.NoError(t, err)
	n := 0
	for ok := it.First(); ok; ok = it.Next() {
		if v := m[string(it.Key())]; !strings.Contains(v, ",") { // operands are not combined
			require.Equal(t, len(v), it.ValueSize())
		}
		n++
	}
	require.NoError(t, it.Close())
	require.Len(t, m, n)
}

// Values of SetReader, beside others, under operands, overwritten and deleted: in memtables, after a new start
// with the log alone, after a flush and after a compaction.
func TestSetReader(t *testing.T) {
	t.Parallel()
	fsys := vfs.NewMem()
	o := &Options{harness: harness.Harness{FS: fsys, MinStreamed: 10}, Merger: Append(",")}
	db, err := Open("db", o)
	require.NoError(t, err)
	m := storetest.Model{}
	rng := rand.New(rand.NewPCG(1, 2))
	for i := range 20 {
		k, v := fmt.Sprintf("key%03d", i), string(randomBytes(rng, 1<<(i%20)))
		v = strings.ReplaceAll(v, ",", ".")
		setReader(t, db, k, v, []*WriteOptions{Sync, NoSync, Async}[i%3])
		m[k] = v
		switch i % 7 {
		case 1:
			require.NoError(t, db.Merge([]byte(k), []byte("more"), NoSync))
			m[k] += ",more"
		case 2:
			require.NoError(t, db.Set([]byte(k), []byte("inline"), NoSync))
			m[k] = "inline"
		case 3:
			require.NoError(t, db.Delete([]byte(k), NoSync))
			delete(m, k)
		case 4:
			setReader(t, db, k, "once again, as it is read", NoSync)
			m[k] = "once again, as it is read"
		}
	}
	require.NoError(t, db.DeleteRange([]byte("key013"), []byte("key015"), NoSync))
	m.DeleteRange([]byte("key013"), []byte("key015"))
	check := func() {
		t.Helper()
		requireStreamed(t, db, m)
		requireBlobs(t, db)
	}
	check()
	require.NoError(t, db.Close())
	read, err := Open("db", &Options{harness: harness.Harness{FS: fsys}, ReadOnly: true})
	require.NoError(t, err)
	requireStreamed(t, read, m)
	require.NoError(t, read.Close())
	db, err = Open("db", o)
	require.NoError(t, err)
	check()
	files := requireBlobs(t, db)
	require.Greater(t, files, 5)
	for i := range 10 {
		k := fmt.Sprintf("key%03d", i*2)
		m[k] = strings.Repeat("second ", 5+i)
		setReader(t, db, k, m[k], NoSync)
	}
	check()
	require.NoError(t, db.Flush(t.Context()))
	check()
	require.NoError(t, db.Compact(t.Context(), nil, nil))
	check()
	require.NoError(t, db.Compact(t.Context(), nil, nil))
	require.NoError(t, db.Close())
	db, err = Open("db", o)
	require.NoError(t, err)
	check()
	require.NoError(t, db.Close())
}

// A short reader, one that fails, a context that ends, limits and a full disk: nothing is written, no file is
// left, and the store goes on.
func TestSetReaderIsRefused(t *testing.T) {
	f := &vfstest.FaultFS{FS: vfs.NewMem()}
	db, err := Open("db", &Options{harness: harness.Harness{FS: f, MinStreamed: 10}})
	require.NoError(t, err)
	const size = 1 << 20
	value := bytes.Repeat([]byte("0123456789abcdef"), size/16)
	broken := errors.New("broken pipe")
	ended, cancel := context.WithCancel(t.Context())
	for _, short := range []int64{5, 9, 10, 300 << 10, size} { // in memory too
		at := short / 2
		require.ErrorIs(t, db.SetReader(t.Context(), []byte("k"), short, bytes.NewReader(value[:at]), nil),
			io.ErrUnexpectedEOF)
		failing := io.MultiReader(bytes.NewReader(value[:at]), iotest.ErrReader(broken))
		err := db.SetReader(t.Context(), []byte("k"), short, failing, nil)
		require.ErrorIs(t, err, broken)
		require.ErrorContains(t, err, fmt.Sprintf("%d bytes of %d", at, short))
	}
	require.ErrorIs(t, db.SetReader(t.Context(), []byte("k"), MaxReaderSize+1, nil, nil), ErrTooLarge)
	require.ErrorIs(t, db.SetReader(t.Context(), make([]byte, MaxKeySize+1), 100, nil, nil), ErrTooLarge)
	require.Error(t, db.SetReader(t.Context(), []byte("k"), -1, nil, nil))
	for _, short := range []int64{0, 10, size} {
		require.ErrorContains(t, db.SetReader(t.Context(), []byte("k"), short, nil, nil), "nil")
	}
	for _, short := range []int64{10, size} {
		for _, wrong := range []int{-1, 1} {
			lying := storetest.ReaderFunc(func(b []byte) (int, error) { return max(wrong*(len(b)+1), -1), nil })
			require.ErrorContains(t, db.SetReader(t.Context(), []byte("k"), short, lying, nil), "the reader returned")
		}
	}

	n := 0
	ending := storetest.ReaderFunc(func(b []byte) (int, error) {
		if n++; n == 3 {
			cancel()
		}
		return len(b), nil
	})
	require.ErrorIs(t, db.SetReader(ended, []byte("k"), size, ending, nil), context.Canceled)
	require.Equal(t, 3, n)

	for room := range 30 {
		f.Set(vfstest.Quota(room * 40_000))
		err := db.SetReader(t.Context(), []byte("k"), size, bytes.NewReader(value), nil)
		f.Set(nil)
		if err == nil {
			require.Equal(t, 27, room, "the value, and the log's record")
			break
		}
		require.ErrorIs(t, err, syscall.ENOSPC)
		require.NoError(t, db.writable(), "the store goes on")
	}
	got, err := db.Get([]byte("k"))
	require.NoError(t, err)
	require.True(t, bytes.Equal(value, got))
	require.Equal(t, 1, requireBlobs(t, db))
	for _, op := range []string{"sync", "create", "syncdir"} {
		failOnce(f, op)
		require.ErrorIs(t, db.SetReader(t.Context(), []byte("k"), size, bytes.NewReader(value), nil), errDisk, op)
		f.Set(nil)
		require.NoError(t, db.writable(), "the store goes on")
	}
	require.Equal(t, 1, requireBlobs(t, db))
	require.NoError(t, db.Close())
	require.ErrorIs(t, db.SetReader(t.Context(), []byte("k"), size, bytes.NewReader(value), nil), ErrClosed)
	read, err := Open("db", &Options{harness: harness.Harness{FS: f}, ReadOnly: true})
	require.NoError(t, err)
	require.ErrorIs(t, read.SetReader(t.Context(), []byte("k"), size, bytes.NewReader(value), nil), ErrReadOnly)
	require.NoError(t, read.Close())
}

// While a value is read others write, what they write is seen, and the value is not; a store that closes does
// not wait for the reader, and leaves no file behind.
func TestSetReaderKeepsNobodyWaiting(t *testing.T) {
	fsys := vfs.NewMem()
	db, err := Open("db", &Options{harness: harness.Harness{FS: fsys, MinStreamed: 10}})
	require.NoError(t, err)
	reading, goOn, done := make(chan bool), make(chan bool), make(chan error, 2)
	n := 0
	slow := storetest.ReaderFunc(func(b []byte) (int, error) {
		if n++; n == 2 {
			reading <- true
			<-goOn
		}
		return min(len(b), 1000), nil
	})
	go func() { done <- db.SetReader(t.Context(), []byte("k"), 1<<20, slow, Sync) }()
	<-reading
	for i := range 100 {
		require.NoError(t, db.Set([]byte("k"), []byte{byte(i)}, Sync))
	}
	require.NoError(t, db.Flush(t.Context()))
	require.NoError(t, db.Compact(t.Context(), nil, nil))
	goOn <- true
	require.NoError(t, <-done)
	size, err := db.GetSize([]byte("k"))
	require.NoError(t, err)
	require.Equal(t, 1<<20, size)

	n = 0
	go func() { done <- db.SetReader(t.Context(), []byte("other"), 1<<20, slow, Sync) }()
	<-reading
	require.NoError(t, db.Close())
	require.Len(t, blobsOnDisk(t, fsys, "db"), 1, "that of k")
	db, err = Open("db", &Options{harness: harness.Harness{FS: fsys}})
	require.NoError(t, err)
	goOn <- true
	require.ErrorIs(t, <-done, ErrClosed)
	require.Equal(t, 1, requireBlobs(t, db))
	has, err := db.Has([]byte("other"))
	require.NoError(t, err)
	require.False(t, has)
	require.NoError(t, db.Close())
}

// Many write and read at once; iterators and readers that were made before see what was there.
func TestSetReaderBesideOthers(t *testing.T) {
	fsys := vfs.NewMem()
	db, err := Open("db", &Options{harness: harness.Harness{FS: fsys, MinStreamed: 10}, MemtableSize: 64 << 10})
	require.NoError(t, err)
	besideEachOther(t, 4, func(w int) error {
		rng := rand.New(rand.NewPCG(uint64(w), 3))
		k := fmt.Appendf(nil, "key%d", w)
		for i := range 60 {
			v := randomBytes(rng, 10+rng.IntN(5000))
			if err := db.SetReader(t.Context(), k, int64(len(v)), bytes.NewReader(v), NoSync); err != nil {
				return err
			}
			r, err := db.GetReader(k)
			if err == nil && i%10 == 0 {
				err = db.Flush(t.Context())
			}
			if err == nil {
				_ = db.Set(k, nil, NoSync)
				var got []byte
				if got, err = io.ReadAll(r); err == nil && !bytes.Equal(v, got) {
					err = fmt.Errorf("writer %d reads %d bytes for its %d", w, len(got), len(v))
				}
				err = errors.Join(err, r.Close())
			}
			if err != nil {
				return err
			}
		}
		return nil
	})
	require.NoError(t, db.Flush(t.Context()))
	require.NoError(t, db.Compact(t.Context(), nil, nil))
	require.Zero(t, requireBlobs(t, db), "all was overwritten")
	require.NoError(t, db.Close())
}

// What overwrites hide in a memtable does not stay for good: the memtable is full before it fills the disk.
func TestMemtablesHoldOnlySoMuch(t *testing.T) {
	fsys := vfs.NewMem()
	db, err := Open("db", &Options{harness: harness.Harness{FS: fsys, MinStreamed: 1}})
	require.NoError(t, err)
	for range 3000 {
		setReader(t, db, "k", "v", NoSync)
	}
	db.settle()
	db.cleaner.Wait()
	require.LessOrEqual(t, len(blobsOnDisk(t, fsys, "db")), 1025)
	require.NoError(t, db.Close())
}

// A view in another process reads what a log has handles of, and keeps it from being removed.
func TestFollowersReadStreamedValues(t *testing.T) {
	dir := t.TempDir()
	db, err := Open(dir, &Options{harness: harness.Harness{MinStreamed: 10}})
	require.NoError(t, err)
	m := storetest.Model{}
	for i := range 5 {
		k := fmt.Sprintf("key%03d", i)
		m[k] = strings.Repeat(k, 100)
		setReader(t, db, k, m[k], NoSync)
	}
	view, err := OpenReadOnly(dir, nil)
	require.NoError(t, err)
	requireStreamed(t, view, m)
	require.NoError(t, db.DeleteRange(nil, nil, NoSync))
	setReader(t, db, "key007", "the one that is left", NoSync)
	require.NoError(t, db.Flush(t.Context()))
	require.NoError(t, db.Compact(t.Context(), nil, nil))
	db.cleaner.Wait()
	requireStreamed(t, view, m)
	require.NoError(t, view.Refresh(t.Context()))
	requireStreamed(t, view, storetest.Model{"key007": "the one that is left"})
	require.NoError(t, view.Close())
	db.cleaner.LookAgain()
	storetest.Until(func() bool { return len(blobsOnDisk(t, vfs.OS, dir)) == 1 })
	require.NoError(t, db.Close())
}

// A blob file that a log needs and that is missing, cut off, another's or damaged is an error that names it, in
// every mode but the one that passes over what is damaged.
func TestLogsWhoseBlobFilesAreDamaged(t *testing.T) {
	t.Parallel()
	for what, damage := range map[string]func(t *testing.T, a, b string){
		"missing": func(t *testing.T, a, _ string) { require.NoError(t, vfs.OS.Remove(a)) },
		"cut off": func(t *testing.T, a, _ string) { rewrite(t, a, func(b []byte) []byte { return b[:len(b)-1] }) },
		"empty":   func(t *testing.T, a, _ string) { rewrite(t, a, func([]byte) []byte { return nil }) },
		"another": func(t *testing.T, a, b string) { require.NoError(t, vfs.OS.Rename(b, a)) },
		"flipped": func(t *testing.T, a, _ string) { rewrite(t, a, flip(40)) },
	} {
		t.Run(what, func(t *testing.T) {
			dir := t.TempDir()
			o := &Options{harness: harness.Harness{MinStreamed: 10}}
			db, err := Open(dir, o)
			require.NoError(t, err)
			setReader(t, db, "a", "a value that is read", Sync)
			setReader(t, db, "b", "another one that is read", Sync)
			require.NoError(t, db.Set([]byte("c"), nil, Sync))
			require.NoError(t, db.Close())
			names := blobsOnDisk(t, vfs.OS, dir)
			require.Len(t, names, 2)
			damage(t, filepath.Join(dir, names[0]), filepath.Join(dir, names[1]))
			_, err = Open(dir, o)
			require.ErrorIs(t, err, ErrCorruption)
			require.ErrorContains(t, err, names[0])
			o.RecoveryMode = SkipCorrupt
			db, err = Open(dir, o)
			require.NoError(t, err)
			_, err = db.Get([]byte("a"))
			require.ErrorIs(t, err, ErrNotFound)
			_, err = db.Get([]byte("c"))
			require.NoError(t, err)
			require.NoError(t, db.Close())
		})
	}
}

// A value of SetReader expires as little as one of Set, and a snapshot keeps the one before.
func TestSnapshotsKeepStreamedValues(t *testing.T) {
	db, err := Open("db", &Options{harness: harness.Harness{FS: vfs.NewMem(), MinStreamed: 10}})
	require.NoError(t, err)
	setReader(t, db, "k", "the first of the two", NoSync)
	s := db.NewSnapshot()
	setReader(t, db, "k", "the second of the two", NoSync)
	expiry, err := db.Expiry([]byte("k"))
	require.NoError(t, err)
	require.Equal(t, time.Time{}, expiry)
	for range 2 {
		r, err := s.GetReader([]byte("k"))
		require.Equal(t, "the first of the two", readValue(t, r, err))
		require.Equal(t, 2, requireBlobs(t, db))
		require.NoError(t, db.Flush(t.Context()))
	}
	require.NoError(t, s.Close())
	require.NoError(t, db.Compact(t.Context(), nil, nil))
	require.Equal(t, 1, requireBlobs(t, db))
	require.NoError(t, db.Close())
}

// Verification knows the blob files that a log refers to alone, and names one that is missing or damaged.
func TestVerifyKnowsStreamedValues(t *testing.T) {
	dir := t.TempDir()
	db, err := Open(dir, &Options{harness: harness.Harness{MinStreamed: 10}})
	require.NoError(t, err)
	setReader(t, db, "k", "a value that is read", Sync)
	require.NoError(t, db.Close())
	name := blobsOnDisk(t, vfs.OS, dir)[0]
	var said bytes.Buffer
	require.NoError(t, Verify(t.Context(), dir, &said))
	require.Regexp(t, name+" .* 1 entries  ok", said.String())
	require.NotContains(t, said.String(), "does not use")
	rewrite(t, filepath.Join(dir, name), flip(60))
	err = Verify(t.Context(), dir, io.Discard)
	require.ErrorIs(t, err, ErrCorruption)
	require.ErrorContains(t, err, name)
	require.NoError(t, vfs.OS.Remove(filepath.Join(dir, name)))
	err = Verify(t.Context(), dir, io.Discard)
	require.ErrorIs(t, err, ErrCorruption)
	require.ErrorContains(t, err, name)
}

// Each call to the file system fails in turn, once and for good, while values are read, flushed and overwritten.
// What was acknowledged is there after the next open, and no blob file that nobody needs.
func TestSetReaderWhereEachCallFails(t *testing.T) {
	t.Parallel()
	for _, forever := range []bool{false, true} {
		failed := true
		for at := 1; failed; at++ {
			f := &vfstest.FaultFS{FS: vfs.NewMem()}
			o := &Options{harness: harness.Harness{FS: f, MinStreamed: 10, Backoff: quickBackoff}}
			db, err := Open("db", o)
			require.NoError(t, err)
			calls := 0
			f.Set(func(c vfstest.Call) (int, error) {
				if calls++; calls == at || forever && calls > at {
					return c.Bytes / 2, errDisk
				}
				return 0, nil
			})
			acked := -1
			for i := range 4 {
				v := fmt.Sprintf("value %d %s", i, strings.Repeat("x", 100))
				if db.SetReader(t.Context(), []byte("k"), int64(len(v)), strings.NewReader(v), Sync) == nil {
					acked = i
				}
				if i%2 == 1 {
					_ = db.Flush(t.Context()) // it may fail
				}
			}
			_ = db.Close()
			failed = calls >= at
			f.Set(nil)
			db, err = Open("db", o)
			require.NoError(t, err, "call %d", at)
			got, err := db.Get([]byte("k"))
			if acked >= 0 {
				require.NoError(t, err, "call %d", at)
			}
			n := -1
			if err == nil {
				_, err = fmt.Sscanf(string(got), "value %d ", &n)
				require.NoError(t, err)
			}
			require.GreaterOrEqual(t, n, acked, "call %d", at)
			require.LessOrEqual(t, requireBlobs(t, db), 3, "of each flush one")
			require.NoError(t, db.Close())
			require.Less(t, at, 1000)
		}
	}
}
