//go:build lmdb

// Package lmdb is what kvbench needs of LMDB, over its C interface.
//
// It is built with the tag lmdb where the library and its header are installed
// (liblmdb-dev in Debian). Calls from Go into C take some tens of nanoseconds, which LMDB is
// not to blame for: so that it is charged one for a lookup, one for a transaction that
// writes, and one for many entries of a scan, these are written in C (calls.h). A
// transaction that writes belongs to a thread, and never leaves its call.
package lmdb

/*
#cgo LDFLAGS: -llmdb
#cgo noescape kv_get
#cgo nocallback kv_get
#cgo noescape kv_write
#cgo nocallback kv_write
#cgo noescape kv_scan
#cgo nocallback kv_scan
#include "calls.h"
*/
import "C"

import (
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"sync"
	"unsafe"
)

// mapBytes is the size of the memory map, which bounds that of the database. It takes
// addresses, and neither memory nor disk.
const mapBytes = 1 << 40

// A DB is an open database. Any number of goroutines may use it, but Close comes last.
type DB struct {
	env *C.MDB_env
	dbi C.MDB_dbi
}

// Open opens or creates a database in a directory, which exists. Commits wait for the disk
// if sync is set; else they do not survive the loss of power.
func Open(dir string, sync bool) (*DB, error) {
	flags := C.uint(C.MDB_NOTLS)
	if !sync {
		flags |= C.MDB_NOSYNC
	}
	path := C.CString(dir)
	defer C.free(unsafe.Pointer(path))
	d := &DB{}
	if rc := C.kv_open(path, mapBytes, flags, &d.env, &d.dbi); rc != 0 {
		d.Close()
		return nil, fmt.Errorf("lmdb: open %s: %w", dir, failure(rc))
	}
	return d, nil
}

// Close closes the database.
func (d *DB) Close() {
	if d.env != nil {
		C.mdb_env_close(d.env)
		d.env = nil
	}
}

// failure makes an error of a code of LMDB.
func failure(rc C.int) error { return errors.New(C.GoString(C.mdb_strerror(rc))) }

// address returns the address that C takes for a slice, which C does not keep.
func address(b []byte) *C.char { return (*C.char)(unsafe.Pointer(unsafe.SliceData(b))) }

// A Batch collects entries that are written together. It is for one goroutine.
type Batch struct{ entries []byte }

// Put adds a key; it does not keep the slices.
func (b *Batch) Put(key, value []byte) {
	b.add(key, uint32(len(value)))
	b.entries = append(b.entries, value...)
}

// Delete adds the deletion of a key.
func (b *Batch) Delete(key []byte) { b.add(key, C.kv_delete) }

func (b *Batch) add(key []byte, valueSize uint32) {
	b.entries = binary.NativeEndian.AppendUint32(b.entries, uint32(len(key)))
	b.entries = binary.NativeEndian.AppendUint32(b.entries, valueSize)
	b.entries = append(b.entries, key...)
}

// Reset empties the batch.
func (b *Batch) Reset() { b.entries = b.entries[:0] }

// Write writes the batch in one transaction.
func (d *DB) Write(b *Batch) error {
	if rc := C.kv_write(d.env, d.dbi, address(b.entries), C.size_t(len(b.entries))); rc != 0 {
		return fmt.Errorf("lmdb: write: %w", failure(rc))
	}
	return nil
}

// A Reader looks keys up, each in what is there by then. It is for one goroutine.
type Reader struct {
	db  *DB
	txn *C.MDB_txn
}

// NewReader returns a reader, which has a slot in the table of readers until it is closed.
func (d *DB) NewReader() (*Reader, error) {
	txn, err := d.begin()
	if err != nil {
		return nil, err
	}
	C.mdb_txn_reset(txn)
	return &Reader{db: d, txn: txn}, nil
}

func (d *DB) begin() (*C.MDB_txn, error) {
	var txn *C.MDB_txn
	if rc := C.mdb_txn_begin(d.env, nil, C.MDB_RDONLY, &txn); rc != 0 {
		return nil, fmt.Errorf("lmdb: begin: %w", failure(rc))
	}
	return txn, nil
}

// Get appends the value of key to dst if the key is there.
func (r *Reader) Get(dst, key []byte) (value []byte, found bool, err error) {
	for {
		room := dst[len(dst):cap(dst)]
		var rc C.int
		n := int(C.kv_get(r.txn, r.db.dbi, address(key), C.size_t(len(key)), address(room), C.size_t(len(room)), &rc))
		switch {
		case rc != 0:
			return dst, false, fmt.Errorf("lmdb: get: %w", failure(rc))
		case n < 0:
			return dst, false, nil
		case n <= len(room):
			return dst[:len(dst)+n], true, nil
		}
		dst = slices.Grow(dst, n)
	}
}

// Close gives the reader's slot back.
func (r *Reader) Close() error {
	C.mdb_txn_abort(r.txn)
	return nil
}

// scanBytes is how much a scan fetches at a time, if no entry takes more.
const scanBytes = 32 << 10

var scanBuffers = sync.Pool{New: func() any { b := make([]byte, scanBytes); return &b }}

// Scan calls visit with up to limit entries (0: no limit) in key order, from the first
// at or after start on. The slices are visit's until it returns.
func (d *DB) Scan(start []byte, limit int, visit func(key, value []byte)) error {
	txn, err := d.begin()
	if err != nil {
		return err
	}
	defer C.mdb_txn_abort(txn)
	var cursor *C.MDB_cursor
	if rc := C.mdb_cursor_open(txn, d.dbi, &cursor); rc != 0 {
		return fmt.Errorf("lmdb: cursor: %w", failure(rc))
	}
	defer C.mdb_cursor_close(cursor)
	buffer := scanBuffers.Get().(*[]byte)
	defer scanBuffers.Put(buffer)
	op := C.int(C.MDB_SET_RANGE)
	for left := limit; limit == 0 || left > 0; {
		var used C.size_t
		var rc C.int
		n := int(C.kv_scan(cursor, op, address(start), C.size_t(len(start)), C.size_t(left), address(*buffer),
			C.size_t(len(*buffer)), &used, &rc))
		if rc != 0 && rc != C.MDB_NOTFOUND {
			return fmt.Errorf("lmdb: scan: %w", failure(rc))
		}
		switch {
		case n > 0:
			walk((*buffer)[:used], visit)
			left = max(left-n, 0)
		case rc == 0: // no room for one
			*buffer = make([]byte, used)
		}
		if rc == C.MDB_NOTFOUND {
			return nil
		}
		op = C.MDB_GET_CURRENT
	}
	return nil
}

func walk(entries []byte, visit func(key, value []byte)) {
	const header = 8
	for len(entries) > 0 {
		key := int(binary.NativeEndian.Uint32(entries))
		end := header + key + int(binary.NativeEndian.Uint32(entries[4:]))
		visit(entries[header:header+key:header+key], entries[header+key:end:end])
		entries = entries[end:]
	}
}
