package main

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/cockroachdb/pebble/v2"
	"github.com/dgraph-io/badger/v4"
	"github.com/stretchr/testify/require"
	"github.com/syndtr/goleveldb/leveldb"
	"go.etcd.io/bbolt"

	"github.com/siftkv/siftkv/internal/cli/clitest"
)

// TestMain is siftimport itself if a test has started it so.
func TestMain(m *testing.M) { clitest.Main(m, main) }

// kinds are the kinds of stores.
var kinds = []string{"pebble", "leveldb", "badger", "bbolt"}

// A writer puts entries into a store of some kind, and closes it. A nil value deletes.
type writer struct {
	put   func(key, value []byte) error
	close func() error
}

// inBatches returns a writer that calls begin for each batch of n writes, and commit at its end.
func inBatches[B any](n int, begin func() (B, error), put func(b B, key, value []byte) error,
	commit func(b B) error, closeStore func() error) writer {
	var batch B
	left := 0
	return writer{func(key, value []byte) (err error) {
		if left == 0 {
			if batch, err = begin(); err != nil {
				return err
			}
			left = n
		}
		if err = put(batch, key, value); err == nil {
			if left--; left == 0 {
				err = commit(batch)
			}
		}
		return err
	}, func() error {
		if left > 0 {
			if err := commit(batch); err != nil {
				return err
			}
		}
		return closeStore()
	}}
}

// bucketName is where the entries of a bbolt store are.
const bucketName = "all"

// create makes a store with the library that it belongs to.
func create(tb testing.TB, kind, path string) writer {
	tb.Helper()
	const batch = 20_000
	switch kind {
	case "pebble":
		db, err := pebble.Open(path, &pebble.Options{FormatMajorVersion: pebble.FormatNewest, Logger: quiet{},
			MemTableSize: 16 << 20})
		require.NoError(tb, err)
		return inBatches(batch, func() (*pebble.Batch, error) { return db.NewBatch(), nil },
			func(b *pebble.Batch, key, value []byte) error {
				if value == nil {
					return b.Delete(key, nil)
				}
				return b.Set(key, value, nil)
			}, func(b *pebble.Batch) error { return b.Commit(pebble.NoSync) }, db.Close)
	case "leveldb":
		db, err := leveldb.OpenFile(path, nil)
		require.NoError(tb, err)
		return inBatches(batch, func() (*leveldb.Batch, error) { return &leveldb.Batch{}, nil },
			func(b *leveldb.Batch, key, value []byte) error {
				if value == nil {
					b.Delete(key)
				} else {
					b.Put(key, value)
				}
				return nil
			}, func(b *leveldb.Batch) error { return db.Write(b, nil) }, db.Close)
	case "badger":
		db, err := badger.Open(badger.DefaultOptions(path).WithLogger(nil).WithValueLogFileSize(64 << 20))
		require.NoError(tb, err)
		return inBatches(batch, func() (*badger.WriteBatch, error) { return db.NewWriteBatch(), nil },
			func(b *badger.WriteBatch, key, value []byte) error {
				key = slices.Clone(key)
				if value == nil {
					return b.Delete(key)
				}
				return b.Set(key, slices.Clone(value))
			}, (*badger.WriteBatch).Flush, db.Close)
	}
	db, err := bbolt.Open(path, 0o600, &bbolt.Options{NoSync: true})
	require.NoError(tb, err)
	return inBatches(batch, func() (*bbolt.Tx, error) {
		tx, err := db.Begin(true)
		if err == nil {
			_, err = tx.CreateBucketIfNotExists([]byte(bucketName))
		}
		return tx, err
	}, func(tx *bbolt.Tx, key, value []byte) error {
		b := tx.Bucket([]byte(bucketName))
		if value == nil {
			return b.Delete(key)
		}
		return b.Put(slices.Clone(key), slices.Clone(value))
	}, (*bbolt.Tx).Commit, func() error { return db.Close() })
}

// quiet is a logger that drops what Pebble says.
type quiet struct{}

func (quiet) Infof(string, ...any)  {}
func (quiet) Errorf(string, ...any) {}
func (quiet) Fatalf(format string, args ...any) {
	panic(fmt.Sprintf(format, args...))
}

// A content is what a store should have: keys in order, with their values.
type content struct{ keys, values [][]byte }

// testContent has n keys of any bytes, some of which begin others, with values of no byte to a mebibyte.
func testContent(seed uint64, n int) *content {
	rng := rand.New(rand.NewPCG(seed, 0))
	c := &content{}
	large := []int{4 << 10, 70_000, 300_000, 1 << 20, 1<<20 + 1}
	noise := make([]byte, 2<<20)
	for i := range len(noise) / 8 {
		binary.LittleEndian.PutUint64(noise[8*i:], rng.Uint64())
	}
	key := make([]byte, 0, 32)
	for i := range n {
		key = binary.BigEndian.AppendUint64(key[:0], uint64(i)*0x1_0000_00ff+uint64(rng.IntN(1<<16)))
		switch rng.IntN(8) {
		case 0:
			key = append(key, 0)
		case 1:
			key = append(key, 0, 0xff, 0)
		case 2:
			key = append(key, noise[i%100:i%100+rng.IntN(12)]...)
		}
		size := rng.IntN(40)
		if i%5000 == 17 {
			size = large[i/5000%len(large)]
		}
		at := rng.IntN(len(noise) - size)
		c.keys = append(c.keys, slices.Clone(key))
		c.values = append(c.values, noise[at:at+size:at+size])
	}
	return c
}

// write puts a content into a store, out of order, with other keys that it deletes, and older values of some.
func (c *content) write(tb testing.TB, w writer) {
	tb.Helper()
	const parts = 16
	put := func(key, value []byte) { require.NoError(tb, w.put(key, value)) }
	for i, key := range c.keys {
		if i%50 == 3 {
			put(key, []byte("an older value"))
			put(append(slices.Clone(key), 'x'), []byte("to be deleted"))
		}
	}
	for part := range parts {
		for i := part; i < len(c.keys); i += parts {
			put(c.keys[i], c.values[i])
		}
	}
	for i, key := range c.keys {
		if i%50 == 3 {
			put(append(slices.Clone(key), 'x'), nil)
		}
	}
	require.NoError(tb, w.close())
}

// prefixed returns the content with something before each key.
func (c *content) prefixed(prefix []byte) *content {
	p := &content{values: c.values}
	for _, key := range c.keys {
		p.keys = append(p.keys, append(bytes.Clone(prefix), key...))
	}
	return p
}

// newStore makes a store with a content in a directory of its own, and returns the argument of siftimport for it.
func newStore(tb testing.TB, kind string, c *content) string {
	tb.Helper()
	path := filepath.Join(tb.TempDir(), kind)
	c.write(tb, create(tb, kind, path))
	return kind + ":" + path
}

// A file is what of a file must stay.
type file struct {
	mode    os.FileMode
	changed int64
	data    string
}

// files returns all there is to know of a path and what is below it.
func files(tb testing.TB, source string) map[string]file {
	tb.Helper()
	_, root := Source(source).cut()
	all := map[string]file{}
	require.NoError(tb, filepath.WalkDir(root, func(path string, _ os.DirEntry, err error) error {
		require.NoError(tb, err)
		info, err := os.Lstat(path)
		require.NoError(tb, err)
		f := file{info.Mode(), info.ModTime().UnixNano(), ""}
		if info.Mode().IsRegular() {
			data, err := os.ReadFile(path)
			require.NoError(tb, err)
			f.data = string(data)
		}
		all[path] = f
		return nil
	}))
	return all
}
