//go:build rocksdb

package rocksdb

/*
#cgo noescape kv_scan
#cgo nocallback kv_scan
#include "calls.h"
*/
import "C"

import (
	"encoding/binary"
	"fmt"
	"sync"
)

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

// walk calls visit with the entries that kv_scan has copied.
func walk(entries []byte, visit func(key, value []byte)) {
	const header = 8
	for len(entries) > 0 {
		key := int(binary.NativeEndian.Uint32(entries))
		end := header + key + int(binary.NativeEndian.Uint32(entries[4:]))
		visit(entries[header:header+key:header+key], entries[header+key:end:end])
		entries = entries[end:]
	}
}
