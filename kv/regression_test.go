package kv

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/siftkv/siftkv/internal/base"
	"github.com/siftkv/siftkv/internal/batchrepr"
	"github.com/siftkv/siftkv/internal/manifest"
	"github.com/siftkv/siftkv/internal/version"
	"github.com/siftkv/siftkv/internal/vfs"
	"github.com/stretchr/testify/require"
)

// TestNestedRangeDeletesStaySmall deletes overlapping ranges, in one batch and one
// by one: what they take must not grow with the square of their number.
func TestNestedRangeDeletesStaySmall(t *testing.T) {
	const n = 5000
	db, err := Open("", &Options{InMemory: true})
	require.NoError(t, err)
	defer db.Close()
	b := db.NewBatch()
	for i := range n {
		require.NoError(t, b.DeleteRange(nil, fmt.Appendf(nil, "k%05d", i)))
		require.NoError(t, b.Set(fmt.Appendf(nil, "k%05d", i), nil))
	}
	require.NoError(t, b.Commit(Async))
	for i := range 600 {
		require.NoError(t, db.DeleteRange(nil, fmt.Appendf(nil, "k%05d", i), Async))
		ok, err := db.Has(fmt.Appendf(nil, "k%05d", i))
		require.NoError(t, err)
		require.False(t, ok, "an earlier range of the batch came after the key")
	}
	ok, err := db.Has(fmt.Appendf(nil, "k%05d", n-1))
	require.NoError(t, err)
	require.True(t, ok)
	require.NoError(t, db.Flush())
	db.waitForBackground()
	var fragments uint64
	db.current.All(func(_ int, tb *version.Table) { fragments += tb.RangeDeletes })
	require.Less(t, fragments, uint64(3*n))
	require.NoError(t, db.Compact(nil, nil))
	require.EqualValues(t, 1, db.Metrics().Levels[lastLevel].Entries)
}

// lockHook runs a function when a store is about to be locked.
type lockHook struct {
	vfs.FS
	before func()
}

func (h *lockHook) Lock(name string, mode vfs.LockMode) (io.Closer, error) {
	if f := h.before; f != nil {
		h.before = nil
		f()
	}
	return h.FS.Lock(name, mode)
}

// TestAStoreThatIsCreatedMeanwhileIsNotOverwritten lets another process create the
// store between the look into the directory and the lock.
func TestAStoreThatIsCreatedMeanwhileIsNotOverwritten(t *testing.T) {
	mem := vfs.NewMem()
	hook := &lockHook{FS: mem, before: func() {
		db, err := Open("db", &Options{fs: mem})
		require.NoError(t, err)
		require.NoError(t, db.Set([]byte("k"), []byte("v"), Sync))
		require.NoError(t, db.Close())
	}}
	db, err := Open("db", &Options{fs: hook})
	require.NoError(t, err)
	requireContents(t, model{"k": "v"}, db)
	require.NoError(t, db.Close())
}

func TestAMissingLogIsAHoleAndAnError(t *testing.T) {
	dir := t.TempDir()
	db, err := Open(dir, &Options{MemtableSize: 64 << 10, MaxMemtables: 8})
	require.NoError(t, err)
	var first string
	db.mu.Lock()
	first = db.path(manifest.FileWAL, db.logNum)
	db.flushing = true // no flush takes the logs away
	db.mu.Unlock()
	for i := range 3000 {
		require.NoError(t, db.Set(fmt.Appendf(nil, "%06d", i), make([]byte, 50), NoSync))
	}
	db.mu.Lock()
	require.NotEmpty(t, db.imms)
	db.flushing = false
	db.mu.Unlock()
	require.NoError(t, db.Close())
	require.NoError(t, os.Remove(first))
	_, err = Open(dir, nil)
	require.ErrorIs(t, err, ErrCorruption)
	require.ErrorContains(t, err, first)
}

// TestNothingIsWrittenAfterAFailure keeps edits away from a manifest that may no
// longer be the one in force.
func TestNothingIsWrittenAfterAFailure(t *testing.T) {
	db, err := Open("", &Options{InMemory: true, backoff: backoff{time.Hour, time.Hour}})
	require.NoError(t, err)
	require.NoError(t, db.Set([]byte("k"), nil, nil))
	cause := errors.New("the disk is gone")
	require.ErrorIs(t, db.fail(brokenManifest, writingManifest, cause), cause)
	size := db.manifest.Size()
	err = db.applyEdit(func() *manifest.Edit { return &manifest.Edit{LogNum: 99} }, func() {})
	require.ErrorIs(t, err, cause)
	require.ErrorIs(t, err, ErrReadOnly)
	require.Equal(t, size, db.manifest.Size())
	ok, err := db.Has([]byte("k"))
	require.NoError(t, err)
	require.True(t, ok, "reads go on")
	require.NoError(t, db.Close())
}

// TestTheLastReaderClosesTheTables holds a reference of a read over Close.
func TestTheLastReaderClosesTheTables(t *testing.T) {
	db, err := Open("", &Options{InMemory: true})
	require.NoError(t, err)
	require.NoError(t, db.Set([]byte("k"), nil, nil))
	require.NoError(t, db.Compact(nil, nil))
	ok, err := db.Has([]byte("k"))
	require.NoError(t, err)
	require.True(t, ok)
	s := db.acquire(3)
	tb := s.version.Levels[lastLevel].Tables[0]
	require.NotNil(t, tb.Reader.Load())
	require.NoError(t, db.Close())
	require.NotNil(t, tb.Reader.Load(), "the reader is still reading")
	db.release(s, 3)
	require.Nil(t, tb.Reader.Load())
}

func TestRecordsThatCountBackwardsAreRefused(t *testing.T) {
	p := replayer{d: &DB{opts: Options{MemtableSize: 64 << 10}}, lastSeq: 5}
	empty := make([]byte, batchrepr.HeaderSize)
	require.ErrorIs(t, p.record(empty), batchrepr.ErrMalformed)
	b := &Batch{}
	require.NoError(t, b.Set([]byte("k"), nil))
	require.ErrorContains(t, p.record(b.repr.Seal(5)), "comes again")
	require.NoError(t, p.record(b.repr.Seal(6)))
	require.Equal(t, base.SeqNum(6), p.lastSeq)
}

func TestVerifyMentionsALogThatBreaksOff(t *testing.T) {
	dir := t.TempDir()
	db, err := Open(dir, nil)
	require.NoError(t, err)
	require.NoError(t, db.Set([]byte("k"), make([]byte, 1000), NoSync))
	crashed := t.TempDir()
	require.NoError(t, os.CopyFS(crashed, os.DirFS(dir)))
	require.NoError(t, db.Close())
	log := filepath.Join(crashed, manifest.FileName(manifest.FileWAL, db.logNum))
	size, err := os.Stat(log)
	require.NoError(t, err)
	require.NoError(t, os.Truncate(log, size.Size()-10))
	var out strings.Builder
	require.NoError(t, Verify(crashed, &out))
	require.Contains(t, out.String(), "breaks off")
}
