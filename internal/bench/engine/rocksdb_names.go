package engine

import (
	"slices"
	"strconv"
	"strings"

	"github.com/siftkv/siftkv/internal/bench"
)

// RocksDBName is the name of RocksDB, which is an engine of programs that are built
// with the tag rocksdb.
const RocksDBName = "rocksdb"

// RocksDBNote says how the numbers of stores of RocksDB that count are to be read.
func RocksDBNote() string {
	return "RocksDB's filters and indexes are pinned in its block cache; its blocks are data blocks. Its statistics are on, for the counters, and cost time; each lookup is one call from Go into C" + rocksDBBuild() + "."
}

// HasRocksDB reports whether RocksDB is built in.
func HasRocksDB() bool { return hasRocksDB }

// CheckName returns nil if an engine's name, given to a flag, is one of those allowed,
// and otherwise an error that says what is, or how to get RocksDB.
func CheckName(flag, name string, allowed []string) error {
	switch {
	case slices.Contains(allowed, name):
		return nil
	case !hasRocksDB && strings.HasPrefix(name, RocksDBName):
		return bench.Usagef("%s %s: this program was built without RocksDB; install it (Debian: apt-get install librocksdb-dev) and build with its tag: go run -tags rocksdb ./cmd/kvbench", flag, name)
	}
	return bench.Usagef("%s %s: choose from %s", flag, name, strings.Join(allowed, ", "))
}

// rocksDBFilters are the filters of RocksDB by name, in the form of its options. Its
// Ribbon filter takes the bits of a Bloom filter as good; files of level 0 have that
// Bloom filter, as they live short.
var rocksDBFilters = map[string]func(bits string) string{
	"bloom":  func(bits string) string { return "bloomfilter:" + bits + ":false" },
	"ribbon": func(bits string) string { return "ribbonfilter:" + bits + ":0" },
}

// RocksDBBloomFPR is the rate of RocksDB's Bloom filter with 10 bits per key: six probes
// in a line of 64 bytes, over the random load of the lines.
const RocksDBBloomFPR = 0.0095

// rocksDBRoundedKeys is the number of keys from which on rounding to whole lines of 64
// bytes does not matter to it.
const rocksDBRoundedKeys = 1000

// rocksDB makes a variant one of RocksDB, with filter none, bloom:BITS or ribbon:BITS;
// own:BITS is its Bloom filter.
func (v *Variant) rocksDB() error {
	name, bits, _ := strings.Cut(v.Filter, ":")
	if name+":" == ownPrefix {
		name = "bloom"
		v.Filter = name + ":" + bits
	}
	v.Policy = nil // it has the name of a filter of this project, and is none
	filter := ""
	if v.Filter != "none" {
		n, err := strconv.ParseFloat(bits, 64)
		form, ok := rocksDBFilters[name]
		if !ok || err != nil || n < 1 || n > 64 {
			return Unsupported("filter %s: rocksdb has none, bloom:BITS and ribbon:BITS, its own ones", v.Filter)
		}
		filter = form(bits)
		if v.Filter == "bloom:10" {
			v.bits, v.own, v.least = n, RocksDBBloomFPR, rocksDBRoundedKeys
		}
	}
	v.open = func(dir string, s Settings, t Tree) (Store, error) { return openRocksDBTree(dir, s, filter, t) }
	return nil
}
