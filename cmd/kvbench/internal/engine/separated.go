package engine

import (
	"cmp"
	"slices"
	"strings"
)

// Names of engines that separate large values.
const (
	SiftKVSeparatedName = "siftkv-separated"     // within Settings.BlobSpace
	SiftKVTightName     = "siftkv-separated-1.3" // within tightBlobSpace, whatever the settings say
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
	// tightBlobSpace is that of SiftKVTightName, whatever the settings say.
	tightBlobSpace = 1.3
)

// SeparatesValues reports whether a named engine has Settings.SeparateFrom.
func SeparatesValues(name string) bool {
	family, _, _ := strings.Cut(name, "-")
	return slices.Contains([]string{"siftkv", "pebble", "badger", RocksDBName}, family)
}

// separated returns the settings of an engine that separates values.
func (s Settings) separated() Settings {
	s.SeparateFrom = cmp.Or(s.SeparateFrom, usualSeparateFrom)
	s.BlobSpace = cmp.Or(s.BlobSpace, usualBlobSpace)
	return s
}

// inline returns the settings of an engine that has values where it has them by default: with their keys,
// or, with SiftKV, separated from 4 KiB unless the settings are Inline.
func (s Settings) inline() Settings {
	s.SeparateFrom, s.BlobSpace, s.AtCommit = 0, 0, false
	return s
}

// garbageShare is the share of files of values that no key needs, if they take as much as
// they may: what engines want to know that are not told the space itself.
func (s *Settings) garbageShare() float64 { return 1 - 1/cmp.Or(s.BlobSpace, usualBlobSpace) }

// opened makes one of two opens that differ in their settings.
func opened(open func(string, Settings) (Live, error), settings func(Settings) Settings) func(
	string, Settings) (Live, error) {
	return func(dir string, s Settings) (Live, error) { return open(dir, settings(s)) }
}

// tight returns the settings of an engine that separates values and has less space.
func (s Settings) tight() Settings {
	s = s.separated()
	s.BlobSpace = tightBlobSpace
	return s
}

// committed returns the settings of an engine that separates values when it commits them.
func (s Settings) committed() Settings {
	s = s.separated()
	s.AtCommit = true
	return s
}

// A KeyScanner is a live store that scans keys without their values.
type KeyScanner interface {
	// ScanKeys is Scan for who wants no values.
	ScanKeys(start []byte, limit int, visit func(key []byte)) error
}
