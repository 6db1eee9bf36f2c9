//go:build rocksdb

package rocksdb

/*
#include "calls.h"
*/
import "C"

import (
	"strconv"
	"strings"
	"unsafe"
)

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
