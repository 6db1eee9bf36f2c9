package cell

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/siftkv/siftkv/cmd/kvbench/internal/bench"
	"github.com/siftkv/siftkv/cmd/kvbench/internal/engine"
	"github.com/siftkv/siftkv/cmd/kvbench/internal/keys"
	"github.com/siftkv/siftkv/cmd/kvbench/internal/tidy"
)

// Settings say what a cell is. Two cells of equal settings are the same experiment.
// What else there is to know of a field is in Fields.
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
	State       string `json:"state"`
	Threads     int64  `json:"threads"`
	Lookups     int64  `json:"lookups"`
	Reps        int64  `json:"reps"`
	Seed        uint64 `json:"seed"`

	file namedFile // that Keys names
}

type namedFile struct{ path, name string }

// Values that settings may have.
const (
	Uniform = "uniform" // Budget: equal bits for all keys; Workload: equal chances
	Spread  = "spread"  // Budget: bits spread over the levels
	Zipfian = "zipfian" // Workload
	Replay  = "replay"  // Workload: the lookups of the trace that the keys are from

	NoScan = "none"   // Scan: lookups only
	Behind = "behind" // Scan: narrow, and just behind a key

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
		if !f.Later || !f.usualValue() {
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

// A Field is all that there is to know of a field of some settings but what it means. Another place checks a setting
// that has no bounds and no list.
type Field struct {
	Name      string // of the flag, and of the key in a sweep's file
	value     any    // *string, *int64 or *uint64 of the settings
	Usual     string // its default
	Low, High int64
	Zero      bool     // 0 is allowed too
	Size      bool     // it is a number of bytes
	Build     bool     // the store's files depend on it
	Later     bool     // cells were named before it was there: a usual value is empty, and not in their text
	Of        []string // what a text may be
	Label     string   // the format in which a name says a value that is not the usual one; empty: it does not
}

// Fields returns every setting of s in the order of its text.
func Fields(s *Settings) []Field {
	return []Field{
		{Name: "engine", value: &s.Engine, Usual: "siftkv", Build: true},
		{Name: "filter", value: &s.Filter, Usual: "blocked:10", Build: true},
		{Name: "range", value: &s.Range, Usual: engine.NoRange, Build: true, Later: true, Label: "range-%s"},
		{Name: "budget", value: &s.Budget, Usual: Uniform, Build: true, Of: []string{Uniform, Spread}, Label: "%s"},
		{Name: "index", value: &s.Index, Usual: "0", Low: 64, High: 1 << 30, Zero: true, Size: true,
			Build: true, Label: "index-%s"},
		{Name: "compaction", value: &s.Compaction, Usual: engine.CompactionStyles[0], Build: true, Label: "%s"},
		{Name: "shape", value: &s.Shape, Usual: Settled, Build: true, Label: "%s"},
		{Name: "cache", value: &s.Cache, Usual: "64MiB", Size: true},
		{Name: "remember", value: &s.Remember, Usual: "0", Low: 128, High: 1 << 30, Zero: true, Size: true,
			Label: "remember-%s"},
		{Name: "memtable", value: &s.Memtable, Usual: "16MiB", Size: true, Build: true},
		{Name: "block", value: &s.Block, Usual: "4096", Size: true, Build: true},
		{Name: "compression", value: &s.Compression, Usual: "snappy", Build: true},
		{Name: "keys", value: &s.Keys, Usual: "1000000", Build: true},
		{Name: "key-size", value: &s.KeySize, Usual: "16", Low: keys.MinKeySize, High: keys.MaxKeySize,
			Size: true, Build: true},
		{Name: "fill", value: &s.Fill, Usual: "0", High: 1 << 30, Build: true},
		{Name: "value-size", value: &s.ValueSize, Usual: "100", Low: keys.MinValueSize, High: keys.MaxValueSize,
			Size: true, Build: true},
		{Name: "values", value: &s.Values, Usual: HalfValues, Build: true, Later: true,
			Of: []string{HalfValues, RandomValues}, Label: "%s-values"},
		{Name: "separate-from", value: &s.Separate, Usual: "0", Low: 1, High: 1 << 30, Zero: true, Size: true,
			Build: true, Later: true, Label: "apart-%s"},
		{Name: "blob-space", value: &s.BlobSpace, Usual: "1.5", Build: true, Later: true, Label: "space-%s"},
		{Name: "at-commit", value: &s.AtCommit, Usual: No, Build: true, Later: true, Of: []string{No, Yes},
			Label: "at-commit-%s"},
		{Name: "data-seed", value: &s.DataSeed, Usual: "1", Build: true},
		{Name: "workload", value: &s.Workload, Usual: Uniform, Label: "%s"},
		{Name: "scan", value: &s.Scan, Usual: NoScan, Later: true, Label: "scan-%s"},
		{Name: "state", value: &s.State, Usual: Warm, Of: []string{Warm, Cold}, Label: "%s"},
		{Name: "threads", value: &s.Threads, Usual: "1", Low: 1, High: 256, Label: "%s-threads"},
		{Name: "lookups", value: &s.Lookups, Usual: "40000", Low: 1, High: 10_000_000}, // they are held in memory
		{Name: "reps", value: &s.Reps, Usual: "5", Low: 1, High: 1000},
		{Name: "seed", value: &s.Seed, Usual: "1"},
	}
}

// Shown returns every setting in the order of its text, as it is and as it is shown.
func (s Settings) Shown() []tidy.Setting {
	var out []tidy.Setting
	for _, f := range Fields(&s) {
		out = append(out, tidy.Setting{Name: f.Name, Text: f.Text(), Shown: f.Show()})
	}
	return out
}

// FieldNames lists the names of all settings.
func FieldNames() []string {
	var names []string
	for _, f := range Fields(&Settings{}) {
		names = append(names, f.Name)
	}
	return names
}

// Default returns the settings of a cell that says nothing.
func Default() Settings {
	var s Settings
	for _, f := range Fields(&s) {
		_ = f.Set(f.Usual) // it is one
	}
	return s
}

// Set reads the value of the setting from text.
func (f Field) Set(text string) error {
	text = strings.TrimSpace(text)
	if text == "" {
		return bench.Usagef("%s: no value is given", f.Name)
	}
	var err error
	switch p := f.value.(type) {
	case *string:
		if *p = text; f.Later && text == f.Usual {
			*p = ""
		}
	case *uint64:
		if *p, err = strconv.ParseUint(text, 10, 64); err != nil {
			return bench.Usagef("%s %s: want a whole number from 0 on", f.Name, text)
		}
	case *int64:
		if f.Size {
			n, err := bench.ParseSize(text)
			if err != nil {
				return bench.Usagef("%s: %w", f.Name, err)
			}
			*p = int64(n)
		} else if *p, err = strconv.ParseInt(text, 10, 64); err != nil {
			return bench.Usagef("%s %s: want a whole number", f.Name, text)
		}
	}
	return nil
}

// Text returns the value of the setting; Set(Text()) changes nothing.
func (f Field) Text() string {
	switch p := f.value.(type) {
	case *string:
		if f.Later && *p == "" {
			return f.Usual
		}
		return *p
	case *uint64:
		return strconv.FormatUint(*p, 10)
	case *int64:
		return strconv.FormatInt(*p, 10)
	}
	return ""
}

// Show returns the value for a reader.
func (f Field) Show() string {
	if p, ok := f.value.(*int64); ok && f.Size {
		return strings.ReplaceAll(fmt.Sprint(bench.Size(*p)), " ", "")
	}
	return f.Text()
}

func (f Field) usualValue() bool { return f.Text() == f.Usual || f.Show() == f.Usual }

// checkBounds reports the first setting that is not within its bounds, or none of what it may be.
func (s *Settings) checkBounds() error {
	for _, f := range Fields(s) {
		if err := f.check(); err != nil {
			return err
		}
	}
	return nil
}

// check holds a number against its bounds, and a text against what it may be.
func (f Field) check() error {
	if f.Of != nil && !slices.Contains(f.Of, f.Text()) {
		return bench.Usagef("%s %s: choose from %s", f.Name, f.Text(), strings.Join(f.Of, ", "))
	}
	p, ok := f.value.(*int64)
	if !ok || f.High == 0 || f.Zero && *p == 0 || *p >= f.Low && *p <= f.High {
		return nil
	}
	return bench.Usagef("%s %d: want %d to %d", f.Name, *p, f.Low, f.High)
}
