//go:build rocksdb

// Package rocksdb is what kvbench needs of RocksDB, over its C interface.
//
// It is built with the tag rocksdb where the library and its header are installed
// (librocksdb-dev in Debian). A call from Go into C takes some tens of nanoseconds, which
// RocksDB is not to blame for: so that it is charged one for a lookup, and one for many
// entries of a scan, both loops are written in C (calls.h).
package rocksdb

/*
#cgo LDFLAGS: -lrocksdb
#cgo noescape kv_get
#cgo nocallback kv_get
#cgo noescape rocksdb_put
#cgo nocallback rocksdb_put
#include "calls.h"
*/
import "C"

import (
	"errors"
	"fmt"
	"slices"
	"unsafe"
)

// A DB is an open database. Any number of goroutines may use it, but Close comes last.
type DB struct {
	db      *C.rocksdb_t
	options *C.rocksdb_options_t
	read    *C.rocksdb_readoptions_t
	write   [2]*C.rocksdb_writeoptions_t // the second syncs
}

// Open opens or creates a database. The options are those of RocksDB's text form
// ("write_buffer_size=1024;compression=kNoCompression"), as
// rocksdb_get_options_from_string reads them; what they leave out has RocksDB's default.
// Without statistics Tickers has none.
func Open(dir, options string, statistics bool) (*DB, error) {
	d := &DB{options: C.rocksdb_options_create(), read: C.rocksdb_readoptions_create()}
	for i := range d.write {
		d.write[i] = C.rocksdb_writeoptions_create()
		C.rocksdb_writeoptions_set_sync(d.write[i], C.uchar(i))
	}
	text, path := C.CString(options), C.CString(dir)
	defer C.free(unsafe.Pointer(text))
	defer C.free(unsafe.Pointer(path))
	base := C.rocksdb_options_create()
	defer C.rocksdb_options_destroy(base)
	var failed *C.char
	C.rocksdb_get_options_from_string(base, text, d.options, &failed)
	if err := take(failed); err != nil {
		d.Close()
		return nil, fmt.Errorf("rocksdb: options %q: %w", options, err)
	}
	if statistics {
		C.rocksdb_options_enable_statistics(d.options)
	}
	d.db = C.rocksdb_open(d.options, path, &failed)
	if err := take(failed); err != nil {
		d.Close()
		return nil, fmt.Errorf("rocksdb: open %s: %w", dir, err)
	}
	return d, nil
}

// Close closes the database.
func (d *DB) Close() {
	if d.db != nil {
		C.rocksdb_close(d.db)
	}
	for _, w := range d.write {
		C.rocksdb_writeoptions_destroy(w)
	}
	C.rocksdb_readoptions_destroy(d.read)
	C.rocksdb_options_destroy(d.options)
}

// Asserts reports whether the library was built with its assertions, which cost time.
func Asserts() bool { return C.kv_asserts() != 0 }

// take makes an error of a message of RocksDB, nil of none, and frees it.
func take(message *C.char) error {
	if message == nil {
		return nil
	}
	defer C.rocksdb_free(unsafe.Pointer(message))
	return errors.New(C.GoString(message))
}

// address returns the address that C takes for a slice, which C does not keep.
func address(b []byte) *C.char { return (*C.char)(unsafe.Pointer(unsafe.SliceData(b))) }

// option returns the write options that sync, or do not.
func (d *DB) option(sync bool) *C.rocksdb_writeoptions_t {
	if sync {
		return d.write[1]
	}
	return d.write[0]
}

// Set writes one key.
func (d *DB) Set(key, value []byte, sync bool) error {
	var failed *C.char
	C.rocksdb_put(d.db, d.option(sync), address(key), C.size_t(len(key)), address(value), C.size_t(len(value)), &failed)
	if failed != nil {
		return fmt.Errorf("rocksdb: put: %w", take(failed))
	}
	return nil
}

// Delete deletes one key.
func (d *DB) Delete(key []byte, sync bool) error {
	var failed *C.char
	C.rocksdb_delete(d.db, d.option(sync), address(key), C.size_t(len(key)), &failed)
	if failed != nil {
		return fmt.Errorf("rocksdb: delete: %w", take(failed))
	}
	return nil
}

// Get appends the value of key to dst if the key is there.
func (d *DB) Get(dst, key []byte) (value []byte, found bool, err error) {
	var (
		failed *C.char
		held   *C.rocksdb_pinnableslice_t
		room   = dst[len(dst):cap(dst)]
	)
	n := int(C.kv_get(d.db, d.read, address(key), C.size_t(len(key)), address(room), C.size_t(len(room)), &held,
		&failed))
	switch {
	case failed != nil:
		return dst, false, fmt.Errorf("rocksdb: get: %w", take(failed))
	case n < 0:
		return dst, false, nil
	case held != nil:
		dst = slices.Grow(dst, n)
		C.kv_take(held, address(dst[len(dst):len(dst)+n]))
	}
	return dst[:len(dst)+n], true, nil
}

// Flush writes the memtables out and waits for that.
func (d *DB) Flush() error {
	o := C.rocksdb_flushoptions_create()
	defer C.rocksdb_flushoptions_destroy(o)
	C.rocksdb_flushoptions_set_wait(o, 1)
	var failed *C.char
	C.rocksdb_flush(d.db, o, &failed)
	if failed != nil {
		return fmt.Errorf("rocksdb: flush: %w", take(failed))
	}
	return nil
}

// Compact compacts everything into the last level, and waits for that. Of an error it
// is not told, as the C interface has none.
func (d *DB) Compact() { C.rocksdb_compact_range(d.db, nil, 0, nil, 0) }
