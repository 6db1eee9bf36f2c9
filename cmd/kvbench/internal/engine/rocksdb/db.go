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
	"strconv"
	"strings"
	"sync"
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

// A Batch collects keys that are written together. It is for one goroutine.
type Batch struct{ batch *C.rocksdb_writebatch_t }

// NewBatch returns an empty batch. The caller closes it.
func NewBatch() *Batch { return &Batch{C.rocksdb_writebatch_create()} }

// Put adds a key; it does not keep the slices.
func (b *Batch) Put(key, value []byte) {
	C.rocksdb_writebatch_put(b.batch, address(key), C.size_t(len(key)), address(value), C.size_t(len(value)))
}

// DeleteRange deletes the keys from start on that are less than end, by a batch of its own.
func (d *DB) DeleteRange(start, end []byte, sync bool) error {
	b := NewBatch()
	defer b.Close()
	C.rocksdb_writebatch_delete_range(b.batch, address(start), C.size_t(len(start)), address(end), C.size_t(len(end)))
	return d.Write(b, sync)
}

// Len returns the number of keys.
func (b *Batch) Len() int { return int(C.rocksdb_writebatch_count(b.batch)) }

// Close releases the batch.
func (b *Batch) Close() { C.rocksdb_writebatch_destroy(b.batch) }

// Write writes the batch and empties it.
func (d *DB) Write(b *Batch, sync bool) error {
	var failed *C.char
	C.rocksdb_write(d.db, d.option(sync), b.batch, &failed)
	if failed != nil {
		return fmt.Errorf("rocksdb: write: %w", take(failed))
	}
	C.rocksdb_writebatch_clear(b.batch)
	return nil
}

// scanBytes is how much a scan fetches at a time, if no entry takes more.
const scanBytes = 32 << 10

var scanBuffers = sync.Pool{New: func() any { b := make([]byte, scanBytes); return &b }}

// Scan calls visit with up to limit entries (0: no limit) in key order, from the first
// at or after start on. The slices are visit's until it returns.
func (d *DB) Scan(start []byte, limit int, visit func(key, value []byte)) error {
	it := C.rocksdb_create_iterator(d.db, d.read)
	defer C.rocksdb_iter_destroy(it)
	C.rocksdb_iter_seek(it, address(start), C.size_t(len(start)))
	buffer := scanBuffers.Get().(*[]byte)
	defer scanBuffers.Put(buffer)
	for left := limit; limit == 0 || left > 0; {
		var used C.size_t
		n := int(C.kv_scan(it, C.size_t(left), address(*buffer), C.size_t(len(*buffer)), &used))
		if n == 0 && used == 0 {
			break
		}
		if n == 0 {
			*buffer = make([]byte, used)
			continue
		}
		walk((*buffer)[:used], visit)
		left -= n
		if limit == 0 {
			left = 0
		}
	}
	var failed *C.char
	C.rocksdb_iter_get_error(it, &failed)
	if failed != nil {
		return fmt.Errorf("rocksdb: scan: %w", take(failed))
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

// Property returns a property of the database, "" if there is none of that name.
func (d *DB) Property(name string) string {
	c := C.CString(name)
	defer C.free(unsafe.Pointer(c))
	value := C.rocksdb_property_value(d.db, c)
	if value == nil {
		return ""
	}
	defer C.rocksdb_free(unsafe.Pointer(value))
	return C.GoString(value)
}

// Number returns a property that is a number, 0 if there is none of that name.
func (d *DB) Number(name string) int64 {
	n, err := strconv.ParseInt(d.Property(name), 10, 64)
	if err != nil {
		return 0
	}
	return n
}

// Tickers returns the counters of the statistics by name ("rocksdb.memtable.hit"). They
// are of all threads since the database was opened.
func (d *DB) Tickers() map[string]int64 {
	text := C.rocksdb_options_statistics_get_string(d.options)
	if text == nil {
		return nil
	}
	defer C.rocksdb_free(unsafe.Pointer(text))
	return parseTickers(C.GoString(text))
}

// parseTickers reads lines of the form "NAME COUNT : NUMBER"; histograms have more
// words.
func parseTickers(text string) map[string]int64 {
	tickers := map[string]int64{}
	for line := range strings.Lines(text) {
		if f := strings.Fields(line); len(f) == 4 && f[1] == "COUNT" && f[2] == ":" {
			if n, err := strconv.ParseInt(f[3], 10, 64); err == nil {
				tickers[f[0]] = n
			}
		}
	}
	return tickers
}

// A Level is what is in one level.
type Level struct {
	Number      int
	Files       int
	Bytes       int64
	Entries     int64
	FilterBytes int64
	IndexBytes  int64
}

// Levels returns the levels that have files, youngest first.
func (d *DB) Levels() []Level {
	meta := C.rocksdb_get_column_family_metadata(d.db)
	defer C.rocksdb_column_family_metadata_destroy(meta)
	var levels []Level
	for i := range int(C.rocksdb_column_family_metadata_get_level_count(meta)) {
		m := C.rocksdb_column_family_metadata_get_level_metadata(meta, C.size_t(i))
		l := Level{
			Number: int(C.rocksdb_level_metadata_get_level(m)),
			Files:  int(C.rocksdb_level_metadata_get_file_count(m)),
			Bytes:  int64(C.rocksdb_level_metadata_get_size(m)),
		}
		C.rocksdb_level_metadata_destroy(m)
		if l.Files == 0 {
			continue
		}
		l.addProperties(d.Property("rocksdb.aggregated-table-properties-at-level" + strconv.Itoa(l.Number)))
		levels = append(levels, l)
	}
	return levels
}

// addProperties reads the sums of table properties: "# entries=5; ...; filter block
// size=9; ...". The name of the index's size goes on with how it is encoded.
func (l *Level) addProperties(text string) {
	for part := range strings.SplitSeq(text, ";") {
		name, value, ok := strings.Cut(strings.TrimSpace(part), "=")
		n, err := strconv.ParseInt(value, 10, 64)
		if !ok || err != nil {
			continue
		}
		switch {
		case name == "# entries":
			l.Entries = n
		case name == "filter block size":
			l.FilterBytes = n
		case strings.HasPrefix(name, "index block size"):
			l.IndexBytes = n
		}
	}
}
