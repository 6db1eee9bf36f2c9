package cell

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strconv"
	"strings"

	"github.com/siftkv/siftkv/internal/bench"
	"github.com/siftkv/siftkv/internal/bench/engine"
	"github.com/siftkv/siftkv/internal/bench/keys"
	"github.com/siftkv/siftkv/kv"
)

// Settings say what a cell is. Two cells of equal settings are the same experiment.
// What else there is to know of a field is in the table of settings.
type Settings struct {
	Engine      string `json:"engine"`
	Filter      string `json:"filter"`
	Budget      string `json:"budget"`
	Index       int64  `json:"index_bytes"` // 0: the engine's way
	Compaction  string `json:"compaction"`
	Shape       string `json:"shape"`
	Cache       int64  `json:"cache_bytes"`
	Memtable    int64  `json:"memtable_bytes"`
	Block       int64  `json:"block_bytes"`
	Compression string `json:"compression"`
	Keys        string `json:"keys"`
	KeySize     int64  `json:"key_bytes"`
	Fill        int64  `json:"fill_keys"`
	ValueSize   int64  `json:"value_bytes"`
	DataSeed    uint64 `json:"data_seed"`
	Workload    string `json:"workload"`
	Pace        string `json:"pace"`
	State       string `json:"state"`
	Threads     int64  `json:"threads"`
	Lookups     int64  `json:"lookups"`
	Reps        int64  `json:"reps"`
	Seed        uint64 `json:"seed"`

	file namedFile // that Keys names
}

// A namedFile is a file of keys.
type namedFile struct{ path, name string }

// Values that settings may have.
const (
	Uniform = "uniform" // Budget: equal bits for all keys; Workload: equal chances
	Spread  = "spread"  // Budget: bits spread over the levels
	Zipfian = "zipfian" // Workload
	Replay  = "replay"  // Workload: the lookups of the trace that the keys are from

	NoPace = "none" // Pace: as fast as it goes; else how many times as fast as recorded

	Settled = "settled" // Shape: one level
	Grown   = "grown"   // Shape: several levels
	Young   = "young"   // Shape: young:N, a settled tree under N young files

	Warm = "warm"
	Cold = "cold"
)

// Bounds of what settings of text name.
const (
	maxYoung = 200 // files
	maxTheta = 0.9999
)

// NameKeys replaces the path of a file of keys by its name, which name returns
// (keys.Name, or something that remembers what that returned), so that a cell is the
// same wherever the file lies, and another one if the file changes.
func (s *Settings) NameKeys(name func(path string) (string, error)) error {
	if keys.IsCount(s.Keys) || s.Keys == s.file.name {
		return nil
	}
	named, err := name(s.Keys)
	if err != nil {
		return err
	}
	s.file = namedFile{s.Keys, named}
	s.Keys = named
	return nil
}

// Check reports the first setting that makes no sense, and sets in their canonical
// form. An error matches engine.ErrUnsupported if each setting is right by itself.
func (s *Settings) Check() error {
	if err := s.NameKeys(keys.Name); err != nil {
		return err
	}
	if s.Budget != Uniform && s.Budget != Spread {
		return bench.Usagef("budget %s: choose from %s, %s", s.Budget, Uniform, Spread)
	}
	if s.State != Warm && s.State != Cold {
		return bench.Usagef("state %s: choose from %s, %s", s.State, Warm, Cold)
	}
	young, err := s.youngFiles()
	if err != nil {
		return err
	}
	if _, err := s.theta(); err != nil {
		return err
	}
	for _, f := range Fields(s) {
		if err := f.check(); err != nil {
			return err
		}
	}
	if _, err := s.speed(); err != nil {
		return err
	}
	if s.Fill > 0 && s.Workload != Replay {
		return engine.Unsupported("fill %d: the keys that are there and not asked for are those of workload %s",
			s.Fill, Replay)
	}
	store := s.store()
	if err := store.Check(""); err != nil {
		return err
	}
	tree := engine.Tree{Compaction: s.Compaction, YoungFiles: young}
	if s.Shape == Grown {
		tree.BaseLevelBytes = 1 // as large as the keys will tell
	}
	if err := engine.CheckTree(s.Engine, tree); err != nil {
		return err
	}
	return s.checkVariant()
}

// checkVariant checks the engine and its filter, and what depends on them.
func (s *Settings) checkVariant() error {
	v, err := s.variant()
	if err != nil {
		return err
	}
	s.Filter = v.Filter
	indexed := s.Engine == "siftkv" || strings.HasPrefix(s.Engine, "pebble")
	switch {
	case s.Budget == Spread && (s.Engine != "siftkv" || v.Policy == nil):
		return engine.Unsupported("budget %s: only siftkv has one, with a filter of this project", Spread)
	case s.Budget == Spread && !v.CanSpread():
		return engine.Unsupported("budget %s: the bits of %s cannot be chosen; take another filter, such as bloom:10",
			Spread, s.Filter)
	case s.Index != 0 && !indexed:
		return engine.Unsupported("index %d: %s chooses its index by itself", s.Index, s.Engine)
	}
	return nil
}

// variant returns the engine of the cell with its filter.
func (s *Settings) variant() (*engine.Variant, error) {
	v, err := s.values()
	if err != nil {
		return nil, err
	}
	return engine.NewVariant(s.Engine, s.Filter, v)
}

// values returns the values of the cell's keys.
func (s *Settings) values() (keys.Values, error) { return keys.NewValues(int(s.ValueSize), s.DataSeed) }

// request returns the keys of the cell.
func (s *Settings) request() keys.Request {
	r := keys.Request{Keys: s.Keys, KeySize: int(s.KeySize), MaxLen: kv.MaxKeySize, Fill: int(s.Fill), Seed: s.DataSeed}
	if s.Keys == s.file.name {
		r.Keys, r.Name = s.file.path, s.file.name
	}
	return r
}

// batchKeys is the number of keys per write batch while loading.
const batchKeys = 100

// store returns the settings of the engine. One compaction runs at a time, so that
// trees come out the same every time.
func (s *Settings) store() engine.Settings {
	store := engine.Settings{
		CacheBytes: s.Cache, MemtableBytes: s.Memtable, BlockBytes: int(s.Block),
		Compression: s.Compression, Compactions: 1, BatchKeys: batchKeys,
	}
	if s.Engine == "siftkv" {
		store.SiftKVIndexBytes = int(s.Index)
	} else {
		store.PebbleIndexBytes = int(s.Index)
	}
	return store
}

// youngFiles returns N of the shape young:N, 0 for the other shapes.
func (s *Settings) youngFiles() (int, error) {
	if s.Shape == Settled || s.Shape == Grown {
		return 0, nil
	}
	n := 0
	if text, ok := strings.CutPrefix(s.Shape, Young+":"); ok {
		n, _ = strconv.Atoi(text)
	}
	if n < 1 || n > maxYoung {
		return 0, bench.Usagef("shape %s: choose from %s, %s, %s:N with 1 to %d files", s.Shape, Settled, Grown,
			Young, maxYoung)
	}
	return n, nil
}

// theta returns the skew of the workload, 0 if it has none.
func (s *Settings) theta() (float64, error) {
	name, skew, given := strings.Cut(s.Workload, ":")
	switch {
	case s.Workload == Uniform || s.Workload == Replay:
		return 0, nil
	case name == Zipfian && !given:
		return keys.Theta, nil
	case name == Zipfian:
		theta, err := strconv.ParseFloat(skew, 64)
		if err == nil && theta > 0 && theta <= maxTheta {
			return theta, nil
		}
	}
	return 0, bench.Usagef("workload %s: choose from %s, %s, %s:SKEW with a skew above 0 and up to %g, %s",
		s.Workload, Uniform, Zipfian, Zipfian, maxTheta, Replay)
}

// Text returns every setting as name=value, in the order of Fields, separated by
// spaces: what a cell is named by.
func (s Settings) Text() string {
	var out []string
	for _, f := range Fields(&s) {
		out = append(out, f.Name+"="+f.Text())
	}
	return strings.Join(out, " ")
}

// BuildText is Text of the settings that the files of the store depend on.
func (s Settings) BuildText() string {
	s.Engine = strings.TrimSuffix(s.Engine, "-iterator")
	var out []string
	for _, f := range Fields(&s) {
		if f.Build {
			out = append(out, f.Name+"="+f.Text())
		}
	}
	return strings.Join(out, " ")
}

// hashDigits is the length of the hash in a name: 48 bits tell a million cells apart.
const hashDigits = 12

// Name returns the cell's name: what a reader wants to know first, and a hash of all
// settings. It is a file name on every system.
func (s Settings) Name() string {
	sum := sha256.Sum256([]byte(s.Text()))
	parts := []string{s.Engine, s.Filter}
	if !keys.IsCount(s.Keys) {
		parts = append(parts, s.Keys)
	}
	for _, f := range Fields(&s) {
		if f.Label != "" && !f.usualValue() {
			parts = append(parts, fmt.Sprintf(f.Label, f.Show()))
		}
	}
	plain := strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '.' {
			return r
		}
		return '-'
	}, strings.Join(parts, "-"))
	return fmt.Sprintf("%.80s-%s", plain, hex.EncodeToString(sum[:])[:hashDigits])
}
