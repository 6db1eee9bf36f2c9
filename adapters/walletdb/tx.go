package siftwalletdb

import (
	"bytes"
	"errors"
	"fmt"

	"github.com/btcsuite/btcwallet/walletdb"

	"github.com/siftkv/siftkv/kv"
)

// A tx is a transaction, one that writes or one that does not.
type tx struct {
	db       *db
	inner    *kv.Tx       // of one that writes
	snapshot *kv.Snapshot // of one that does not: it reads faster, and notes nothing
	reads    kv.Reader    // that of the two which is there
	done     bool
	err      error // of a read that failed: the transaction must not be committed
	root     *bucket
	writes   uint64 // so far: cursors look where they are after each
	open     openIterators
	onCommit []func()
	chunk    []byte // that copies of keys and values come out of
}

// maxChunk bounds the memory that a caller retains by keeping one key or value of a scan that is small, in bytes.
const maxChunk = 16 << 10

var _ walletdb.ReadWriteTx = (*tx)(nil)

func newTx(d *db) *tx {
	t := &tx{db: d}
	t.root = &bucket{tx: t}
	return t
}

// ReadBucket returns a top-level bucket, nil if there is none.
func (t *tx) ReadBucket(name []byte) walletdb.ReadBucket { return t.root.NestedReadBucket(name) }

// ReadWriteBucket returns a top-level bucket, nil if there is none. In a transaction that reads, all its methods that
// write return walletdb.ErrTxNotWritable.
func (t *tx) ReadWriteBucket(name []byte) walletdb.ReadWriteBucket {
	return t.root.NestedReadWriteBucket(name)
}

// ForEachBucket calls f with the names of the top-level buckets, in their order.
func (t *tx) ForEachBucket(f func(name []byte) error) error {
	return t.root.ForEach(func(name, _ []byte) error { return f(name) })
}

func (t *tx) CreateTopLevelBucket(name []byte) (walletdb.ReadWriteBucket, error) {
	return t.root.CreateBucketIfNotExists(name)
}

// DeleteTopLevelBucket removes a bucket, with all that is in it.
func (t *tx) DeleteTopLevelBucket(name []byte) error { return t.root.DeleteNestedBucket(name) }

// OnCommit has f called when the transaction has been committed and has ended, after those that were given before.
func (t *tx) OnCommit(f func()) { t.onCommit = append(t.onCommit, f) }

// Commit ends the transaction. Its writes are durable when Commit returns nil; else nothing was written,
// unless the disk fails.
func (t *tx) Commit() error {
	if err := t.commit(); err != nil {
		return err
	}
	t.committed()
	return nil
}

// commit is Commit without the functions of OnCommit.
func (t *tx) commit() error {
	if err := t.checkWritable(); err != nil {
		return err
	}
	t.open.closeAll()
	if t.err != nil {
		t.end()
		return t.err
	}
	err := t.inner.Commit(kv.Sync)
	t.end()
	if err != nil {
		return fmt.Errorf("walletdb: siftkv: %w", err)
	}
	return nil
}

// committed calls the functions of OnCommit.
func (t *tx) committed() {
	for _, f := range t.onCommit {
		f()
	}
}

// Rollback ends the transaction and forgets its writes. It returns the error of a read that failed.
func (t *tx) Rollback() error {
	if t.done {
		return walletdb.ErrTxClosed
	}
	t.end()
	return t.err
}

// end gives the transaction back, if that has not been done.
func (t *tx) end() {
	if t.done {
		return
	}
	t.done = true
	t.open.closeAll()
	if t.inner != nil {
		_ = t.inner.Discard() // of one that was committed: nothing
	} else {
		_ = t.snapshot.Close() // it has no errors
	}
	t.db.leave(t.inner != nil)
}

// fail keeps the first error of a read, and returns it as a call has it that can.
func (t *tx) fail(err error) error {
	if errors.Is(err, kv.ErrTxDone) {
		return walletdb.ErrTxClosed
	}
	err = fmt.Errorf("walletdb: siftkv: %w", err)
	if t.err == nil {
		t.err = err
	}
	return err
}

// get returns what is under a key of the store; nil: nothing.
func (t *tx) get(key []byte) ([]byte, error) {
	if t.done {
		return nil, walletdb.ErrTxClosed
	}
	stored, err := t.reads.Get(key)
	switch {
	case err == nil:
		return stored, nil
	case errors.Is(err, kv.ErrNotFound):
		return nil, nil
	}
	return nil, t.fail(err)
}

// copies returns copies of a key and its value. Those that scans return share chunks, each twice as large as the last:
// an allocation for each row would take longer than the scan. A large row would leave much of a chunk unused: it has
// memory of its own.
func (t *tx) copies(key, value []byte) (k, v []byte) {
	size := len(key) + len(value)
	if size > maxChunk/4 {
		return bytes.Clone(key), bytes.Clone(value)
	}
	if size > cap(t.chunk)-len(t.chunk) {
		t.chunk = make([]byte, 0, max(size, min(2*cap(t.chunk), maxChunk)))
	}
	at := len(t.chunk)
	mid, end := at+len(key), at+size
	t.chunk = t.chunk[:end]
	k, v = t.chunk[at:mid:mid], t.chunk[mid:end:end]
	copy(k, key)
	copy(v, value)
	return k, v
}

// write does one of the writes of the kv.Tx.
func (t *tx) write(f func(inner *kv.Tx) error) error {
	t.writes++
	if err := f(t.inner); err != nil {
		return t.fail(err) // Commit would return it, too
	}
	return nil
}

// checkWritable returns what is wrong with writing.
func (t *tx) checkWritable() error {
	switch {
	case t.done:
		return walletdb.ErrTxClosed
	case t.inner == nil:
		return walletdb.ErrTxNotWritable
	}
	return nil
}
