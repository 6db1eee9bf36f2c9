package siftwalletdb

import (
	"context"
	"fmt"
	"io"
	"strings"
	"sync"

	"github.com/btcsuite/btcwallet/walletdb"

	"github.com/siftkv/siftkv/kv"
)

// A db is a database. Its methods are safe for concurrent use.
type db struct {
	store *kv.DB
	batch batcher

	writer sync.Mutex // held by the transaction that writes

	mu     sync.Mutex
	ended  sync.Cond // on mu: a transaction has ended
	open   int       // transactions
	closed bool      // or about to be
}

var _ walletdb.BatchDB = (*db)(nil)

func newDB(store *kv.DB) *db {
	d := &db{store: store}
	d.ended.L = &d.mu
	return d
}

// BeginReadTx begins a transaction that reads the database as it is now.
func (d *db) BeginReadTx() (walletdb.ReadTx, error) {
	t, err := d.begin(false)
	if err != nil {
		return nil, err
	}
	return t, nil
}

// BeginReadWriteTx waits until no other transaction writes, and begins one that does.
func (d *db) BeginReadWriteTx() (walletdb.ReadWriteTx, error) {
	t, err := d.begin(true)
	if err != nil {
		return nil, err
	}
	return t, nil
}

func (d *db) begin(writable bool) (*tx, error) {
	if writable {
		d.writer.Lock()
	}
	t, err := d.enter(writable)
	if err != nil && writable {
		d.writer.Unlock()
	}
	return t, err
}

// enter begins a transaction unless the database is closed, and counts it.
func (d *db) enter(writable bool) (*tx, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed {
		return nil, walletdb.ErrDbNotOpen
	}
	t := newTx(d)
	if !writable {
		t.snapshot = d.store.NewSnapshot()
		t.reads = t.snapshot
	} else {
		inner, err := d.store.Begin(true)
		if err != nil {
			return nil, fmt.Errorf("walletdb: siftkv: %w", err)
		}
		t.inner, t.reads = inner, inner
	}
	d.open++
	return t, nil
}

// leave is called once by every transaction, when it has ended.
func (d *db) leave(writable bool) {
	if writable {
		d.writer.Unlock()
	}
	d.mu.Lock()
	d.open--
	d.mu.Unlock()
	d.ended.Broadcast()
}

// View runs f in a transaction that reads. It returns f's error, or else that of a read that failed.
func (d *db) View(f func(tx walletdb.ReadTx) error, reset func()) error {
	reset()
	t, err := d.begin(false)
	if err != nil {
		return err
	}
	defer t.end() // a panic, too, ends it
	if err := f(t); err != nil {
		return err
	}
	return t.Rollback()
}

// Update runs f, once, in a transaction that writes, and commits it. If f fails, nothing is written and its error is
// returned.
func (d *db) Update(f func(tx walletdb.ReadWriteTx) error, reset func()) error {
	reset()
	t, err := d.begin(true)
	if err != nil {
		return err
	}
	defer t.end()
	if err := f(t); err != nil {
		return err
	}
	return t.Commit()
}

// Copy writes the database as it is now to w, as a stream that kv.Restore makes a directory of, for Open.
// Transactions go on meanwhile.
func (d *db) Copy(w io.Writer) error {
	t, err := d.begin(false) // Close waits
	if err != nil {
		return err
	}
	defer t.end()
	_, err = d.store.Backup(context.Background(), w, kv.BackupMark{})
	return err
}

// PrintStats returns a few lines about the store.
func (d *db) PrintStats() string {
	m := d.store.Metrics()
	var s strings.Builder
	for n, l := range m.Levels {
		if l.Files > 0 {
			fmt.Fprintf(&s, "level %d: %d files, %d bytes, %d entries\n", n, l.Files, l.Bytes, l.Entries)
		}
	}
	if b := &m.Blobs; b.Files > 0 {
		fmt.Fprintf(&s, "blob files: %d, %d bytes, %d of them garbage\n", b.Files, b.Bytes, b.Garbage)
	}
	fmt.Fprintf(&s, "memory: %d bytes in memtables, %d in the cache, %d in filters\n", m.MemtableBytes, m.CacheBytes,
		m.FilterMemory)
	fmt.Fprintf(&s, "transactions: %d committed, %d open\n", m.TxCommits, m.Transactions)
	fmt.Fprintf(&s, "lookups: %d; writes: %d, %d bytes, %d syncs\n", m.Gets, m.Writes, m.WriteBytes, m.WALSyncs)
	return s.String()
}

// Close waits until all transactions have ended, and closes the store. Those that would begin meanwhile fail with
// walletdb.ErrDbNotOpen. A second Close does nothing.
func (d *db) Close() error {
	d.mu.Lock()
	d.closed = true
	for d.open > 0 {
		d.ended.Wait()
	}
	d.mu.Unlock()
	return d.store.Close()
}
