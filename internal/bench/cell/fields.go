package cell

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/siftkv/siftkv/internal/bench"
)

// A Field is a setting by name.
type Field struct {
	Name  string // of the flag, and of the key in a sweep's file
	Build bool   // the store's files depend on it

	value any  // *string, *int64 or *uint64 of the settings
	size  bool // the number is one of bytes
}

// Fields returns every setting of s in the order of its text.
func Fields(s *Settings) []Field {
	return []Field{
		{"engine", true, &s.Engine, false},
		{"filter", true, &s.Filter, false},
		{"budget", true, &s.Budget, false},
		{"index", true, &s.Index, true},
		{"compaction", true, &s.Compaction, false},
		{"shape", true, &s.Shape, false},
		{"cache", false, &s.Cache, true},
		{"memtable", true, &s.Memtable, true},
		{"block", true, &s.Block, true},
		{"compression", true, &s.Compression, false},
		{"keys", true, &s.Keys, false},
		{"key-size", true, &s.KeySize, true},
		{"fill", true, &s.Fill, false},
		{"value-size", true, &s.ValueSize, true},
		{"data-seed", true, &s.DataSeed, false},
		{"workload", false, &s.Workload, false},
		{"pace", false, &s.Pace, false},
		{"state", false, &s.State, false},
		{"threads", false, &s.Threads, false},
		{"lookups", false, &s.Lookups, false},
		{"reps", false, &s.Reps, false},
		{"seed", false, &s.Seed, false},
	}
}

// FieldNames lists the names of all settings.
func FieldNames() []string {
	var names []string
	for _, f := range Fields(&Settings{}) {
		names = append(names, f.Name)
	}
	return names
}

// Set reads the value of the setting from text.
func (f Field) Set(text string) error {
	text = strings.TrimSpace(text)
	if text == "" {
		return bench.Usagef("%s: no value is given", f.Name)
	}
	switch p := f.value.(type) {
	case *string:
		*p = text
	case *uint64:
		n, err := strconv.ParseUint(text, 10, 64)
		if err != nil {
			return bench.Usagef("%s %s: want a whole number from 0 on", f.Name, text)
		}
		*p = n
	case *int64:
		if f.size {
			n, err := bench.ParseSize(text)
			if err != nil {
				return bench.Usagef("%s: %w", f.Name, err)
			}
			*p = int64(n)
			return nil
		}
		n, err := strconv.ParseInt(text, 10, 64)
		if err != nil {
			return bench.Usagef("%s %s: want a whole number", f.Name, text)
		}
		*p = n
	}
	return nil
}

// Text returns the value of the setting; Set(Text()) changes nothing.
func (f Field) Text() string {
	switch p := f.value.(type) {
	case *string:
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
	if p, ok := f.value.(*int64); ok && f.size {
		return strings.ReplaceAll(fmt.Sprint(bench.Size(*p)), " ", "")
	}
	return f.Text()
}
