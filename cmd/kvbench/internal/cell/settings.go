package cell

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strconv"
	"strings"

	"github.com/siftkv/siftkv/cmd/kvbench/internal/keys"
)

// Settings say what a cell is. Two cells of equal settings are the same experiment.
// What else there is to know of a field is in the table of settings.
type Settings struct {
	Engine      string `json:"engine"`
	Filter      string `json:"filter"`
	Range       string `json:"range,omitempty"` // empty: none
	Budget      string `json:"budget"`
	Index       int64  `json:"index_bytes"` // 0: the engine's way
	Compaction  string `json:"compaction"`
	Shape       string `json:"shape"`
	Cache       int64  `json:"cache_bytes"`
	Remember    int64  `json:"remember_bytes"` // for false positives; 0: none are remembered
	Memtable    int64  `json:"memtable_bytes"`
	Block       int64  `json:"block_bytes"`
	Compression string `json:"compression"`
	Keys        string `json:"keys"`
	KeySize     int64  `json:"key_bytes"`
	Fill        int64  `json:"fill_keys"`
	ValueSize   int64  `json:"value_bytes"`
	Values      string `json:"values,omitempty"` // empty: half compressible
	Separate    int64  `json:"separate_from,omitempty"`
	BlobSpace   string `json:"blob_space,omitempty"` // empty: 1.5
	AtCommit    string `json:"at_commit,omitempty"`  // empty: no
	DataSeed    uint64 `json:"data_seed"`
	Workload    string `json:"workload"`
	Scan        string `json:"scan,omitempty"` // empty: none
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

	NoScan = "none"   // Scan: lookups only
	Behind = "behind" // Scan: narrow, and just behind a key

	NoPace = "none" // Pace: as fast as it goes; else how many times as fast as recorded

	Settled = "settled" // Shape: one level
	Grown   = "grown"   // Shape: several levels
	Young   = "young"   // Shape: young:N, a settled tree under N young files

	Overwritten = "overwritten" // Shape: overwritten:N, every key written N times more, at random

	HalfValues   = "half"   // Values: a compressor reaches about one half
	RandomValues = "random" // Values: nothing compresses them

	No  = "no" // AtCommit
	Yes = "yes"

	Warm = "warm"
	Cold = "cold"
)

// NameKeys replaces the path of a file of keys by its name, which name returns
// (keys.Name, or something that remembers what that returned), so that a cell is the
// same wherever the file lies, and another one if the file changes.
func (s *Settings) NameKeys(name func(path string) (string, error)) error {
	if n, ok := keys.Count(s.Keys); ok {
		s.Keys = strconv.Itoa(n)
		return nil
	}
	if s.Keys == s.file.name {
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

// Text returns every setting as name=value, in the order of Fields, separated by
// spaces: what a cell is named by.
func (s Settings) Text() string {
	var out []string
	for _, f := range Fields(&s) {
		if !f.later || !f.usualValue() {
			out = append(out, f.Name+"="+f.Text())
		}
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
