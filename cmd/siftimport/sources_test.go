package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2"
	"github.com/dgraph-io/badger/v4"
	"github.com/stretchr/testify/require"
	"go.etcd.io/bbolt"

	"github.com/siftkv/siftkv/cmd/siftimport/internal/frombbolt"
	"github.com/siftkv/siftkv/internal/cli/clitest"
	"github.com/siftkv/siftkv/kv"
)

// contentOf returns a content of keys and values in order.
func contentOf(pairs ...string) *content {
	c := &content{}
	for i := 0; i < len(pairs); i += 2 {
		c.keys, c.values = append(c.keys, []byte(pairs[i])), append(c.values, []byte(pairs[i+1]))
	}
	return c
}

// Expiries come over to the second, what has expired and older versions do not, and of metadata only how much there
// was.
func TestBadgerExpiryAndMetadata(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "badger")
	db, err := badger.Open(badger.DefaultOptions(dir).WithLogger(nil).WithNumVersionsToKeep(3))
	require.NoError(t, err)
	end := time.Now().Add(time.Hour).Truncate(time.Second)
	for _, value := range []string{"old", "new"} {
		require.NoError(t, db.Update(func(txn *badger.Txn) error {
			entry := func(key string) *badger.Entry { return badger.NewEntry([]byte(key), []byte(value)) }
			ends := entry("ends")
			ends.ExpiresAt = uint64(end.Unix())
			far := entry("far")
			far.ExpiresAt = math.MaxUint64
			ended := entry("ended")
			ended.ExpiresAt = uint64(time.Now().Add(-time.Hour).Unix())
			for _, e := range []*badger.Entry{ends, ended, far, entry("stays"), entry("meta").WithMeta(7)} {
				require.NoError(t, txn.SetEntry(e))
			}
			return nil
		}))
	}
	require.NoError(t, db.Update(func(txn *badger.Txn) error {
		require.NoError(t, txn.Set([]byte("large"), bytes.Repeat([]byte("value log"), 200_000)))
		return txn.Delete([]byte("never there"))
	}))
	require.NoError(t, db.Close())
	dest := filepath.Join(t.TempDir(), "dest")
	r := works(t, "badger:"+dir, dest)
	require.Contains(t, r.Stdout, "note: 1 keys had a byte of metadata")
	large := string(bytes.Repeat([]byte("value log"), 200_000))
	all := contentOf("ends", "new", "far", "new", "large", large, "meta", "new", "stays", "new")
	requireContent(t, all, dest)
	for _, at := range []struct {
		now  time.Time
		want *content
	}{
		{end.Add(-time.Microsecond), all},
		{end, contentOf("far", "new", "large", large, "meta", "new", "stays", "new")},
	} {
		store, err := kv.Open(dest, &kv.Options{ReadOnly: true, Clock: func() time.Time { return at.now }})
		require.NoError(t, err)
		for i, key := range at.want.keys {
			value, err := store.Get(key)
			require.NoError(t, err)
			require.Equal(t, at.want.values[i], value)
		}
		has, err := store.Has([]byte("ends"))
		require.NoError(t, err)
		require.Equal(t, len(at.want.keys) == 5, has)
		require.NoError(t, store.Close())
	}
}

// A value log may be in a directory of its own, and is not forgotten.
func TestBadgerValueLogElsewhere(t *testing.T) {
	dir, values := filepath.Join(t.TempDir(), "keys"), filepath.Join(t.TempDir(), "values")
	db, err := badger.Open(badger.DefaultOptions(dir).WithValueDir(values).WithValueThreshold(10).WithLogger(nil).
		WithValueLogFileSize(1 << 20))
	require.NoError(t, err)
	c := &content{}
	for i := range 2000 {
		c.keys, c.values = append(c.keys, fmt.Appendf(nil, "%05d", i)), append(c.values, fmt.Appendf(nil, "%0100d", i))
		require.NoError(t, db.Update(func(txn *badger.Txn) error { return txn.Set(c.keys[i], c.values[i]) }))
	}
	require.NoError(t, db.Close())
	dest := filepath.Join(t.TempDir(), "dest")
	r := siftimport(t, "badger:"+dir, dest)
	require.Equal(t, 4, r.Status, r.Stderr)
	require.NoDirExists(t, dest)
	works(t, "badger:"+dir, dest, "--badger-value-dir", values)
	requireContent(t, c, dest)
}

// Operands of a merge operator are not taken for values; once they are merged they are one.
func TestBadgerMergeOperands(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "badger")
	open := func() *badger.DB {
		db, err := badger.Open(badger.DefaultOptions(dir).WithLogger(nil))
		require.NoError(t, err)
		return db
	}
	join := func(a, b []byte) []byte { return append(bytes.Clone(a), b...) }
	db := open()
	m := db.GetMergeOperator([]byte("k"), join, time.Hour)
	require.NoError(t, m.Add([]byte("a")))
	require.NoError(t, m.Add([]byte("b")))
	require.NoError(t, db.Close()) // the operator is not stopped
	dest := filepath.Join(t.TempDir(), "dest")
	r := siftimport(t, "badger:"+dir, dest)
	require.Equal(t, 1, r.Status, r.Stderr)
	require.Contains(t, r.Stderr, "has operands of a merge operator")

	db = open()
	m = db.GetMergeOperator([]byte("k"), join, time.Hour)
	m.Stop()
	require.NoError(t, db.Close())
	works(t, "badger:"+dir, dest)
	requireContent(t, contentOf("k", "ab"), dest)
}

// A store that was not closed, and one that is encrypted, are said to be that.
func TestBadgerStoresThatAreNotReadable(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "badger")
	db, err := badger.Open(badger.DefaultOptions(dir).WithLogger(nil).WithMemTableSize(1 << 20).
		WithValueThreshold(1000).WithValueLogFileSize(1 << 20))
	require.NoError(t, err)
	require.NoError(t, db.Update(func(txn *badger.Txn) error { return txn.Set([]byte("k"), []byte("v")) }))
	killed := filepath.Join(t.TempDir(), "killed")
	copyTree(t, dir, killed) // as a kill would leave it
	require.NoError(t, db.Close())
	before := files(t, "badger:"+killed)
	r := siftimport(t, "badger:"+killed, filepath.Join(t.TempDir(), "dest"))
	require.Equal(t, 4, r.Status, r.Stderr)
	require.Contains(t, r.Stderr, "was not closed")
	require.Equal(t, before, files(t, "badger:"+killed))

	secret := filepath.Join(t.TempDir(), "secret")
	db, err = badger.Open(badger.DefaultOptions(secret).WithLogger(nil).WithEncryptionKey(make([]byte, 32)).
		WithIndexCacheSize(1 << 20))
	require.NoError(t, err)
	require.NoError(t, db.Close())
	r = siftimport(t, "badger:"+secret, filepath.Join(t.TempDir(), "dest"))
	require.Equal(t, 1, r.Status, r.Stderr)
	require.Contains(t, r.Stderr, "it is encrypted")
}

// Pebble's own merger is applied; operands of a program's are refused, and a store that has none is imported.
func TestPebbleMergers(t *testing.T) {
	for name, c := range map[string]struct {
		merger *pebble.Merger
		merge  bool
		want   string
	}{
		"own":     {pebble.DefaultMerger, true, ""},
		"unused":  {&pebble.Merger{Name: "theirs", Merge: pebble.DefaultMerger.Merge}, false, ""},
		"theirs":  {&pebble.Merger{Name: "theirs", Merge: pebble.DefaultMerger.Merge}, true, `own merger "theirs"`},
		"default": {nil, true, ""},
	} {
		dir := filepath.Join(t.TempDir(), "pebble")
		db, err := pebble.Open(dir, &pebble.Options{Merger: c.merger, Logger: quiet{}})
		require.NoError(t, err)
		require.NoError(t, db.Set([]byte("k"), []byte("a"), nil))
		if c.merge {
			require.NoError(t, db.Merge([]byte("k"), []byte("b"), nil))
		}
		require.NoError(t, db.Close())
		dest := filepath.Join(t.TempDir(), "dest")
		r := siftimport(t, "pebble:"+dir, dest)
		if c.want != "" {
			require.Equal(t, 1, r.Status, name)
			require.Contains(t, r.Stderr, c.want)
			continue
		}
		require.Zero(t, r.Status, "%s: %s", name, r.Stderr)
		requireContent(t, contentOf("k", map[bool]string{true: "ab", false: "a"}[c.merge]), dest)
	}
}

// Range keys are refused, and range deletes have happened.
func TestPebbleRanges(t *testing.T) {
	for _, rangeKeys := range []bool{false, true} {
		dir := filepath.Join(t.TempDir(), "pebble")
		db, err := pebble.Open(dir, &pebble.Options{Logger: quiet{}, FormatMajorVersion: pebble.FormatNewest})
		require.NoError(t, err)
		for _, key := range []string{"a", "b", "c"} {
			require.NoError(t, db.Set([]byte(key), []byte("v"), nil))
		}
		require.NoError(t, db.DeleteRange([]byte("b"), []byte("c"), nil))
		if rangeKeys {
			require.NoError(t, db.RangeKeySet([]byte("x"), []byte("y"), nil, []byte("v"), nil))
		}
		require.NoError(t, db.Close())
		dest := filepath.Join(t.TempDir(), "dest")
		r := siftimport(t, "pebble:"+dir, dest)
		if rangeKeys {
			require.Equal(t, 1, r.Status)
			require.Contains(t, r.Stderr, `range keys, the first at "x"`)
			continue
		}
		require.Zero(t, r.Status, r.Stderr)
		requireContent(t, contentOf("a", "v", "c", "v"), dest)
	}
}

// nestedBuckets makes a bbolt store of buckets in buckets, with names of any bytes, and returns what is to come of it.
func nestedBuckets(t *testing.T) (path string, want *content) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "bbolt")
	db, err := bbolt.Open(path, 0o600, nil)
	require.NoError(t, err)
	want = &content{}
	names := []string{"\x00", "\x00\x00", "\x00\x01", "\x00\xff", "a", "a\x00", "a\x00b", "aa", "b", "\xff"}
	var put func(b *bbolt.Bucket, path [][]byte)
	put = func(b *bbolt.Bucket, path [][]byte) {
		for _, name := range names { // of keys, all before those of buckets in it
			key := []byte("key" + name)
			require.NoError(t, b.Put(key, []byte(strconv.Itoa(len(path)))))
			want.keys = append(want.keys, append(frombbolt.Prefix(path...), key...))
			want.values = append(want.values, []byte(strconv.Itoa(len(path))))
		}
		if len(path) == 3 {
			return
		}
		for _, name := range names {
			inner, err := b.CreateBucket([]byte(name))
			require.NoError(t, err)
			put(inner, append(slices.Clip(path), []byte(name)))
		}
	}
	require.NoError(t, db.Update(func(tx *bbolt.Tx) error {
		for _, name := range names {
			b, err := tx.CreateBucket([]byte(name))
			require.NoError(t, err)
			put(b, [][]byte{[]byte(name)})
		}
		_, err := tx.CreateBucket([]byte("empty"))
		require.NoError(t, err)
		_, err = tx.Bucket([]byte("a")).NextSequence()
		return err
	}))
	require.NoError(t, db.Close())
	return path, want
}

// All buckets come over, in an order that is that of the prefixes; a walk may begin at any key.
func TestNestedBuckets(t *testing.T) {
	path, want := nestedBuckets(t)
	for i := 1; i < len(want.keys); i++ {
		require.Negative(t, bytes.Compare(want.keys[i-1], want.keys[i]), "%q, %q", want.keys[i-1], want.keys[i])
	}
	dest := filepath.Join(t.TempDir(), "dest")
	r := works(t, "bbolt:"+path, dest)
	require.Contains(t, r.Stdout, "note: 1 buckets had a sequence number")
	requireContent(t, want, dest)

	args := []string{"bbolt:" + path, filepath.Join(t.TempDir(), "dest"), "--bucket", "a/\x00b"}
	require.Equal(t, 1, siftimport(t, args[0], args[1], "--bucket", "a/c").Status)
	args[3] = "a/aa"
	r = works(t, args...)
	require.Contains(t, r.Stdout, "note: 10 buckets in the one that was chosen are left out")
	chosen := &content{}
	prefix := frombbolt.Prefix([]byte("a"), []byte("aa"))
	for i, key := range want.keys {
		if bytes.HasPrefix(key, prefix) {
			chosen.keys, chosen.values = append(chosen.keys, key[len(prefix):]), append(chosen.values, want.values[i])
		}
	}
	require.Len(t, chosen.keys, 10)
	requireContent(t, chosen, args[1])
}

// The result in JSON has what the text has; without a comparison it says so.
func TestResultsInJSON(t *testing.T) {
	source := newStore(t, "leveldb", testContent(20, 1000))
	dest := filepath.Join(t.TempDir(), "dest")
	r := works(t, source, dest, "--json", "-q")
	require.Empty(t, r.Stderr)
	o := clitest.RequireJSON(t, r.Stdout)[0]
	require.Equal(t, json.Number("1000"), o["keys"])
	require.Equal(t, true, o["verified"])
	require.Regexp(t, "^[0-9a-f]{16}$", o["hash"])
	r = works(t, source, dest+"2", "--no-verify", "--compression", "zstd", "--filter", "none")
	require.Contains(t, r.Stdout, "not verified")
	requireContent(t, testContent(20, 1000), dest+"2")
	_, err := os.Stat(dest + "2.import")
	require.ErrorIs(t, err, os.ErrNotExist)
}
