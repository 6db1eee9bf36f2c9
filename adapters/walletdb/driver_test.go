package siftwalletdb

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/btcsuite/btcwallet/walletdb"
	_ "github.com/btcsuite/btcwallet/walletdb/bdb" // to compare with
	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/kv"
	"github.com/siftkv/siftkv/kv/objects"
)

// create makes a database, which is closed when the test ends.
func create(t testing.TB, dir string, o *kv.Options) *db {
	t.Helper()
	d, err := Create(dir, o)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, d.Close()) })
	return d.(*db)
}

func inMemory(t testing.TB) *db { return create(t, "memory", &kv.Options{InMemory: true}) }

func update(t testing.TB, d walletdb.DB, f func(tx walletdb.ReadWriteTx)) {
	t.Helper()
	require.NoError(t, walletdb.Update(d, func(tx walletdb.ReadWriteTx) error {
		f(tx)
		return nil
	}))
}

func view(t testing.TB, d walletdb.DB, f func(tx walletdb.ReadTx)) {
	t.Helper()
	require.NoError(t, walletdb.View(d, func(tx walletdb.ReadTx) error {
		f(tx)
		return nil
	}))
}

func bucketOf(t testing.TB, tx walletdb.ReadWriteTx, name string) walletdb.ReadWriteBucket {
	t.Helper()
	b, err := tx.CreateTopLevelBucket([]byte(name))
	require.NoError(t, err)
	return b
}

func TestCreateAndOpen(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "wallet")
	for _, args := range [][]any{{dir}, {dir, &kv.Options{Objects: (*objects.Config)(nil)}}} {
		_, err := walletdb.Open(Name, args...)
		require.Equal(t, walletdb.ErrDbDoesNotExist, err)
		require.NoDirExists(t, dir)
	}
	d, err := walletdb.Create(Name, dir)
	require.NoError(t, err)
	update(t, d, func(tx walletdb.ReadWriteTx) {
		require.NoError(t, bucketOf(t, tx, "b").Put([]byte("k"), []byte("v")))
	})
	for _, args := range [][]any{{dir}, {dir, time.Millisecond}} {
		_, err = walletdb.Open(Name, args...)
		require.ErrorIs(t, err, walletdb.ErrDbAlreadyOpen)
		require.ErrorIs(t, err, kv.ErrLocked)
	}
	require.NoError(t, d.Close())
	require.NoError(t, d.Close())
	_, err = d.BeginReadTx()
	require.Equal(t, walletdb.ErrDbNotOpen, err)
	_, err = d.BeginReadWriteTx()
	require.Equal(t, walletdb.ErrDbNotOpen, err)
	require.Equal(t, walletdb.ErrDbNotOpen, d.Copy(&bytes.Buffer{}))
	require.Equal(t, walletdb.ErrDbNotOpen, d.(*db).Batch(func(walletdb.ReadWriteTx) error { return nil }))

	_, err = walletdb.Create(Name, dir)
	require.Equal(t, walletdb.ErrDbExists, err)
	d, err = walletdb.Open(Name, dir, true, time.Minute, &kv.Options{MemoryLimit: 16 << 20})
	require.NoError(t, err)
	view(t, d, func(tx walletdb.ReadTx) {
		require.Equal(t, "v", string(tx.ReadBucket([]byte("b")).Get([]byte("k"))))
	})
	require.NoError(t, d.Close())
}

// A wallet without options takes the memory of a small store.
func TestWalletsAreSmallByDefault(t *testing.T) {
	dir := t.TempDir()
	d, err := walletdb.Create(Name, dir, true, time.Minute)
	require.NoError(t, err)
	require.NoError(t, d.Close())
	text, err := os.ReadFile(filepath.Join(dir, "SIFTKV-OPTIONS"))
	require.NoError(t, err)
	require.Contains(t, string(text), "MemoryLimit = 32MiB\n")
}

func TestWaitForTheLock(t *testing.T) {
	dir := t.TempDir()
	d, err := Create(dir, nil)
	require.NoError(t, err)
	opened := make(chan error)
	go func() {
		d, err := walletdb.Open(Name, dir, time.Duration(0))
		if err == nil {
			err = d.Close()
		}
		opened <- err
	}()
	require.NoError(t, d.Close())
	require.NoError(t, <-opened)
}

func TestArguments(t *testing.T) {
	dir := t.TempDir()
	for _, args := range [][]any{
		nil, {1}, {""}, {nil}, {dir, dir}, {true, dir}, {dir, nil}, {dir, 5}, {dir, true, true},
		{dir, time.Second, time.Second}, {dir, kv.Options{}},
	} {
		for function, call := range map[string]func(string, ...any) (walletdb.DB, error){
			"siftkv.Create: ": walletdb.Create, "siftkv.Open: ": walletdb.Open,
		} {
			_, err := call(Name, args...)
			require.ErrorContains(t, err, function, args)
			require.ErrorContains(t, err, "want the directory of the store", args)
		}
	}
	_, err := Create(dir, &kv.Options{MemtableSize: 1})
	require.ErrorIs(t, err, kv.ErrInvalidOptions)
}

// TestWhatIsNoDatabase is refused, and left as it is.
func TestWhatIsNoDatabase(t *testing.T) {
	dir := t.TempDir()
	both := func(dir string, want error) {
		t.Helper()
		_, err := Open(dir, nil)
		require.ErrorIs(t, err, want)
		_, err = Create(dir, nil)
		require.ErrorIs(t, err, want)
	}
	file := filepath.Join(dir, "wallet.db")
	usual, err := walletdb.Create("bdb", file, true, time.Minute)
	require.NoError(t, err)
	require.NoError(t, usual.Close())
	both(file, walletdb.ErrInvalid)
	both(dir, walletdb.ErrInvalid) // it has a file in it
	usual, err = walletdb.Open("bdb", file, true, time.Minute)
	require.NoError(t, err)
	require.NoError(t, usual.Close())

	other := filepath.Join(dir, "other")
	store, err := kv.Open(other, nil)
	require.NoError(t, err)
	require.NoError(t, store.Set([]byte("k"), []byte("v"), nil))
	require.NoError(t, store.Close())
	both(other, walletdb.ErrInvalid)

	later := filepath.Join(dir, "later")
	store, err = kv.Open(later, nil)
	require.NoError(t, err)
	require.NoError(t, store.Set([]byte{kindFormat}, []byte{formatVersion + 1}, nil))
	require.NoError(t, store.Close())
	both(later, walletdb.ErrInvalid)

	empty := filepath.Join(dir, "empty") // as a crash in Create leaves it
	store, err = kv.Open(empty, nil)
	require.NoError(t, err)
	require.NoError(t, store.Close())
	_, err = Open(empty, nil)
	require.Equal(t, walletdb.ErrDbDoesNotExist, err)
	create(t, empty, nil)
}

func TestCopy(t *testing.T) {
	dir := t.TempDir()
	d := create(t, filepath.Join(dir, "wallet"), nil)
	update(t, d, func(tx walletdb.ReadWriteTx) {
		b := bucketOf(t, tx, "b")
		child, err := b.CreateBucket([]byte("child"))
		require.NoError(t, err)
		require.NoError(t, child.Put([]byte("k"), []byte("v")))
		require.NoError(t, child.SetSequence(7))
	})
	var stream bytes.Buffer
	view(t, d, func(walletdb.ReadTx) { require.NoError(t, d.Copy(&stream)) })
	update(t, d, func(tx walletdb.ReadWriteTx) { require.NoError(t, tx.DeleteTopLevelBucket([]byte("b"))) })

	restored := filepath.Join(dir, "restored")
	require.NoError(t, kv.Restore(t.Context(), &stream, restored, nil))
	again, err := Open(restored, nil)
	require.NoError(t, err)
	require.Equal(t, []string{"b/", "b/child/", "b/child/#7", "b/child/k=v"}, dump(t, again))
	require.NoError(t, again.Close())
	require.Empty(t, dump(t, d))
	require.Error(t, d.Copy(failing{}))
}

type failing struct{}

func (failing) Write([]byte) (int, error) { return 0, os.ErrClosed }

func TestPrintStats(t *testing.T) {
	d := inMemory(t)
	update(t, d, func(tx walletdb.ReadWriteTx) { bucketOf(t, tx, "b") })
	require.NoError(t, d.store.Flush(t.Context()))
	s := d.PrintStats()
	require.Contains(t, s, "level 0: 1 files")
	require.Contains(t, s, "transactions: 1 committed, 0 open")
	require.False(t, strings.Contains(s, "%!"))
}
