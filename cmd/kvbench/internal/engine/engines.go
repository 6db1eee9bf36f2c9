package engine

import (
	"cmp"
	_ "embed" // the notes
	"slices"
	"strings"
	"sync"

	"github.com/siftkv/siftkv/cmd/kvbench/internal/bench"
	"github.com/siftkv/siftkv/filterpolicy"
)

// Names of engines that are more than a word.
const (
	// PebbleIteratorName is Pebble with lookups by one iterator, which does not see what is
	// written later.
	PebbleIteratorName = "pebble-iterator"
	// SiftKVSlotName is SiftKV with a slot, whose consumer keeps up.
	SiftKVSlotName = "siftkv-slot"
	// RocksDBName is an engine of programs that are built with the tag rocksdb.
	RocksDBName = "rocksdb"
	// LMDBName is an engine of programs that are built with the tag lmdb.
	LMDBName = "lmdb"
)

// An entry is an engine, or a name for one with settings that separate large values.
type entry struct {
	name string
	// live opens or creates a store as programs have it; nil if there is none
	live func(dir string, s Settings) (Live, error)
	// vary makes a variant one of the engine; the policy is nil for a filter of its own
	vary   func(v *Variant, policy filterpolicy.Policy) error
	shapes bool // it has trees of other shapes than settled

	of       string  // the engine that the name is for; empty: itself
	space    float64 // Settings.BlobSpace of such a name; 0: what the settings say
	atCommit bool    // Settings.AtCommit of such a name
}

// engines lists every engine in the order of reports.
var engines = []entry{
	{name: "null", vary: (*Variant).null, shapes: true},
	{name: "siftkv", live: openSiftKV, vary: (*Variant).siftkv, shapes: true},
	{name: SiftKVSeparatedName, of: "siftkv"},
	{name: SiftKVTightName, of: "siftkv", space: 1.3},
	{name: SiftKVCommitName, of: "siftkv", atCommit: true},
	{name: SiftKVSlotName, live: openSiftKVSlot},
	{name: "pebble", live: openPebble, vary: (*Variant).pebble, shapes: true},
	{name: PebbleIteratorName, live: openPebbleIterator, vary: (*Variant).pebble, shapes: true},
	{name: PebbleSeparatedName, of: "pebble"},
	{name: "badger", live: openBadger, vary: fixed("own:10", openBadger)},
	{name: BadgerLogName, of: "badger"},
	{name: "goleveldb", live: openGoLevelDB, vary: fixed("own:10", openGoLevelDB)},
	{name: "bbolt", live: openBBolt, vary: fixed("none", openBBolt)},
	{name: RocksDBName, live: openRocksDBLive, vary: (*Variant).rocksDB, shapes: true},
	{name: RocksDBBlobsName, of: RocksDBName},
	{name: LMDBName, live: openLMDB, vary: fixed("none", openLMDB)},
}

// settings returns those of the entry's stores. An engine has values where it has them by default: with their keys or,
// with SiftKV, separated from 4 KiB unless the settings are Inline. A name for one with other settings separates them.
func (e *entry) settings(s Settings) Settings {
	if e.of == "" {
		s.SeparateFrom, s.BlobSpace, s.AtCommit = 0, 0, false
		return s
	}
	s.SeparateFrom = cmp.Or(s.SeparateFrom, usualSeparateFrom)
	s.BlobSpace = cmp.Or(e.space, s.BlobSpace, usualBlobSpace)
	s.AtCommit = s.AtCommit || e.atCommit
	return s
}

// names lists the engines of this build that are wanted.
func names(wanted func(e *entry) bool) []string {
	var out []string
	for _, e := range engines {
		if built(cmp.Or(e.of, e.name)) && wanted(&e) {
			out = append(out, e.name)
		}
	}
	return out
}

func built(name string) bool {
	switch name {
	case RocksDBName:
		return hasRocksDB
	case LMDBName:
		return hasLMDB
	}
	return true
}

// find returns an engine, which there is.
func find(name string) *entry {
	return &engines[slices.IndexFunc(engines, func(e entry) bool { return e.name == name })]
}

// Variants lists the names that NewVariant accepts.
func Variants() []string { return names(func(e *entry) bool { return e.vary != nil }) }

// Peers lists the names that Open accepts: those of RocksDB and LMDB only if they are built in.
func Peers() []string { return names(func(e *entry) bool { return e.live != nil || e.of != "" }) }

// Open opens or creates the store of a named engine in dir.
func Open(name, dir string, s Settings) (Live, error) {
	if err := CheckName("engine", name, Peers()); err != nil {
		return nil, err
	}
	e := find(name)
	return find(cmp.Or(e.of, name)).live(dir, e.settings(s))
}

//go:embed notes.yaml
var notesFile []byte

var notes = sync.OnceValue(func() map[string]string {
	all := bench.Table[map[string]string]("engine/notes.yaml", notesFile)
	all[RocksDBName] += rocksDBBuild()
	return all
})

// Notes says how the store of a named engine is used, and with which settings
// beside the common ones.
func Notes(name string) string { return notes()[name] }

// DeletesRanges reports whether stores of a named engine are RangeDeleters.
func DeletesRanges(name string) bool {
	family, _, _ := strings.Cut(name, "-")
	return family == "siftkv" || family == "pebble" || family == RocksDBName
}

// ScansKeys reports whether stores of a named engine are KeyScanners.
func ScansKeys(name string) bool {
	family, _, _ := strings.Cut(name, "-")
	return family == "siftkv" || family == "pebble" || family == "badger"
}

// LogStructured reports whether a named engine is a log-structured store; those that are have compression.
func LogStructured(name string) bool { return name != "bbolt" && name != LMDBName }

// HasRocksDB reports whether RocksDB is built in.
func HasRocksDB() bool { return hasRocksDB }

// RocksDBNote says how the numbers of stores of RocksDB that count are to be read.
func RocksDBNote() string {
	return "RocksDB's filters and indexes are pinned in its block cache; its blocks are data blocks. " +
		"Its statistics are on, for the counters, and cost time; each lookup is one call from Go into C" +
		rocksDBBuild() + "."
}

// CheckName returns nil if an engine's name, given to a setting, is one of those allowed,
// and otherwise an error that says what is, or how to get RocksDB or LMDB.
func CheckName(setting, name string, allowed []string) error {
	switch {
	case slices.Contains(allowed, name):
		return nil
	case !hasRocksDB && strings.HasPrefix(name, RocksDBName):
		return bench.Usagef("%s %s: this program was built without RocksDB; install it (Debian: apt-get install "+
			"librocksdb-dev) and build with its tag: go install -tags rocksdb ./cmd/kvbench", setting, name)
	case !hasLMDB && name == LMDBName:
		return bench.Usagef("%s %s: this program was built without LMDB; install it (Debian: apt-get install "+
			"liblmdb-dev) and build with its tag: go install -tags lmdb ./cmd/kvbench", setting, name)
	}
	return bench.Usagef("%s %s: choose from %s", setting, name, strings.Join(allowed, ", "))
}

// Names of engines that separate large values.
const (
	SiftKVSeparatedName = "siftkv-separated"     // within Settings.BlobSpace
	SiftKVTightName     = "siftkv-separated-1.3" // within 1.3, whatever the settings say
	SiftKVCommitName    = "siftkv-commit"        // as siftkv-separated, when values are committed
	PebbleSeparatedName = "pebble-separated"
	BadgerLogName       = "badger-log"
	RocksDBBlobsName    = "rocksdb-blobs"
)

// What those engines have if the settings do not say.
const (
	usualSeparateFrom = 4 << 10
	// usualBlobSpace is Settings.BlobSpace.
	usualBlobSpace = 1.5
)

// SeparatesValues reports whether a named engine has Settings.SeparateFrom.
func SeparatesValues(name string) bool {
	family, _, _ := strings.Cut(name, "-")
	return slices.Contains([]string{"siftkv", "pebble", "badger", RocksDBName}, family)
}

// garbageShare is the share of files of values that no key needs, if they take as much as
// they may: what engines want to know that are not told the space itself.
func (s *Settings) garbageShare() float64 { return 1 - 1/cmp.Or(s.BlobSpace, usualBlobSpace) }

// A KeyScanner is a live store that scans keys without their values.
type KeyScanner interface {
	// ScanKeys is Scan for callers that want no values.
	ScanKeys(start []byte, limit int, visit func(key []byte)) error
}

// A RangeDeleter is a live store that deletes a range of keys by one write.
type RangeDeleter interface {
	// DeleteRange deletes the keys from start on that are less than end. It does not keep
	// the slices.
	DeleteRange(start, end []byte) error
}

// An Adder is a live store that adds to a counter without looking it up, if
// Settings.Counters is set. Counters are values of 8 bytes, little-endian.
type Adder interface {
	// Add adds a counter to that of a key, which is 0 if the key is not there. It does
	// not keep the slices.
	Add(key, counter []byte) error
}
