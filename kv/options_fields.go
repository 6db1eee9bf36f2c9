package kv

import (
	"errors"
	"fmt"
	"io/fs"
	"math"
	"reflect"
	"strconv"
	"strings"
	"time"

	"github.com/siftkv/siftkv/filterpolicy"
	"github.com/siftkv/siftkv/internal/bytesize"
	"github.com/siftkv/siftkv/sstable"
)

// An optionField is a field of Options that has a text.
type optionField struct {
	name string

	// text returns the field's text, and nothing for the zero value. It returns a name in place
	// of the text for what only the application can make.
	text func(o *Options) (text, own string)

	// parse sets the field. Its error says what is wrong with the text.
	parse func(o *Options, text string) error
}

// optionFields are the fields of Options that have a text, in the order of Options. All others are in
// fieldsWithoutText.
var optionFields = []optionField{
	sizeField("MemoryLimit", func(o *Options) *int64 { return &o.MemoryLimit }),
	sizeField("CacheSize", func(o *Options) *int64 { return &o.CacheSize }),
	sizeField("MemtableSize", func(o *Options) *int64 { return &o.MemtableSize }),
	countField("MaxMemtables", func(o *Options) *int { return &o.MaxMemtables }),
	sizeField("BlockSize", func(o *Options) *int { return &o.BlockSize }),
	sizeField("IndexPartition", func(o *Options) *int { return &o.IndexPartition }),
	valueField("Compression", func(o *Options) *sstable.Compression { return &o.Compression },
		sstable.Compression.String, sstable.ParseCompression),
	valueField("LevelCompression", func(o *Options) *[NumLevels]sstable.Compression { return &o.LevelCompression },
		levelCompressionText, parseLevelCompression),
	sizeField("SeparateFrom", func(o *Options) *int { return &o.SeparateFrom }),
	valueField("BlobSpace", func(o *Options) *float64 { return &o.BlobSpace },
		func(f float64) string { return strconv.FormatFloat(f, 'g', -1, 64) }, parseFinite),
	boolField("SeparateAtCommit", func(o *Options) *bool { return &o.SeparateAtCommit }),
	countField("MaxOpenFiles", func(o *Options) *int { return &o.MaxOpenFiles }),
	boolField("MemoryMap", func(o *Options) *bool { return &o.MemoryMap }),
	{"Filter", filterText, func(o *Options, text string) (err error) {
		o.Filter, err = filterpolicy.Parse(text)
		return err
	}},
	sizeField("FilterBudget", func(o *Options) *int64 { return &o.FilterBudget }),
	sizeField("FalsePositiveMemory", func(o *Options) *int64 { return &o.FalsePositiveMemory }),
	{"Prefix", prefixText, func(o *Options, text string) (err error) {
		o.Prefix, err = filterpolicy.ParsePrefix(text)
		return err
	}},
	prefixOnlyField(),
	{"RangeFilter", rangeFilterText, func(o *Options, text string) (err error) {
		o.RangeFilter, err = filterpolicy.ParseRange(text)
		return err
	}},
	boolField("RangeFilterLastLevel", func(o *Options) *bool { return &o.RangeFilterLastLevel }),
	sizeField("TargetFileSize", func(o *Options) *int64 { return &o.TargetFileSize }),
	sizeField("BaseLevelSize", func(o *Options) *int64 { return &o.BaseLevelSize }),
	valueField("SpaceAmplification", func(o *Options) *float64 { return &o.SpaceAmplification },
		func(f float64) string { return strconv.FormatFloat(f, 'g', -1, 64) }, parseFinite),
	countField("L0CompactionThreshold", func(o *Options) *int { return &o.L0CompactionThreshold }),
	countField("L0SlowdownThreshold", func(o *Options) *int { return &o.L0SlowdownThreshold }),
	countField("L0StopThreshold", func(o *Options) *int { return &o.L0StopThreshold }),
	valueField("Compaction", func(o *Options) *CompactionStyle { return &o.Compaction }, CompactionStyle.String,
		parseCompaction),
	countField("RunsPerLevel", func(o *Options) *int { return &o.RunsPerLevel }),
	countField("MaxConcurrentCompactions", func(o *Options) *int { return &o.MaxConcurrentCompactions }),
	sizeField("CompactionRate", func(o *Options) *int64 { return &o.CompactionRate }),
	{"Merger", mergerText, parseMerger},
	boolField("ReadOnly", func(o *Options) *bool { return &o.ReadOnly }),
	valueField("RecoveryMode", func(o *Options) *RecoveryMode { return &o.RecoveryMode }, RecoveryMode.String,
		parseRecoveryMode),
	boolField("TolerateMissingValues", func(o *Options) *bool { return &o.TolerateMissingValues }),
	boolField("InMemory", func(o *Options) *bool { return &o.InMemory }),
	valueField("FileMode", func(o *Options) *fs.FileMode { return &o.FileMode },
		func(m fs.FileMode) string { return fmt.Sprintf("%04o", uint32(m)) }, parseFileMode),
	valueField("PollInterval", func(o *Options) *time.Duration { return &o.PollInterval }, time.Duration.String,
		time.ParseDuration),
	boolField("LatencyHistograms", func(o *Options) *bool { return &o.LatencyHistograms }),
	sizeField("LookupSample", func(o *Options) *int64 { return &o.LookupSample }),
	boolField("TraceOpens", func(o *Options) *bool { return &o.TraceOpens }),
}

// fieldsWithoutText are the fields of Options that only a program can set, and why.
var fieldsWithoutText = map[string]string{
	"Clock":        "a function",
	"Objects":      "it has a client of an object store",
	"MemoryBudget": "other stores share it",
	"Logger":       "where it writes to is the program's",
	"Events":       "functions",

	"fs":              "for tests",
	"backoff":         "for tests",
	"maxManifestSize": "for tests",
	"ownTableFrom":    "for tests",
	"rangeSize":       "for tests",
	"blobSize":        "for tests",
	"leastStreamed":   "for tests",
	"maxMerged":       "for tests",
}

// valueField makes a field whose zero value has no text.
func valueField[T comparable](name string, at func(*Options) *T, text func(T) string,
	parse func(string) (T, error)) optionField {
	return optionField{name: name,
		text: func(o *Options) (string, string) {
			if v := *at(o); v != *new(T) {
				return text(v), ""
			}
			return "", ""
		},
		parse: func(o *Options, text string) (err error) {
			*at(o), err = parse(text)
			return err
		}}
}

func boolField(name string, at func(*Options) *bool) optionField {
	return valueField(name, at, strconv.FormatBool, func(text string) (bool, error) {
		if text != "true" && text != "false" {
			return false, fmt.Errorf("%.100q is neither true nor false", text)
		}
		return text == "true", nil
	})
}

func countField(name string, at func(*Options) *int) optionField {
	return valueField(name, at, strconv.Itoa, func(text string) (int, error) {
		n, err := strconv.Atoi(text)
		if err != nil {
			err = fmt.Errorf("%.100q is not a whole number", text)
		}
		return n, err
	})
}

// sizeField makes a field of bytes. It may be negative, where that means something.
func sizeField[N int | int64](name string, at func(*Options) *N) optionField {
	return valueField(name, at, func(n N) string { return bytesize.Format(int64(n)) }, func(text string) (N, error) {
		size, err := strconv.ParseInt(text, 10, 64)
		if err != nil {
			size, err = bytesize.Parse(text)
		}
		if err == nil && int64(N(size)) != size {
			err = fmt.Errorf("%.100q is too large", text)
		}
		return N(size), err
	})
}

func parseFinite(text string) (float64, error) {
	f, err := strconv.ParseFloat(text, 64)
	if err != nil || math.IsNaN(f) || math.IsInf(f, 0) {
		return 0, fmt.Errorf("%.100q is not a number", text)
	}
	return f, nil
}

func parseFileMode(text string) (fs.FileMode, error) {
	m, err := strconv.ParseUint(text, 8, 32)
	if err != nil {
		err = fmt.Errorf("%.100q is not a mode: write an octal number, such as 0640", text)
	}
	return fs.FileMode(m), err
}

// parseCompaction is ParseCompactionStyle with an error whose caller says that the options are wrong.
func parseCompaction(text string) (CompactionStyle, error) {
	c, err := ParseCompactionStyle(text)
	if err != nil {
		err = fmt.Errorf("%.100q is not a style: want %s", text, strings.Join(compactionNames[:], ", "))
	}
	return c, err
}

func parseRecoveryMode(text string) (RecoveryMode, error) {
	for m := range numRecoveryModes {
		if m.String() == text {
			return m, nil
		}
	}
	return 0, fmt.Errorf("%.100q is not a mode: want PointInTime, TolerateTornTail, Absolute or SkipCorrupt", text)
}

// levelCompressionText lists the levels from 0 to the last that has a setting.
func levelCompressionText(levels [NumLevels]sstable.Compression) string {
	var names []string
	last := 0
	for n, c := range levels {
		names = append(names, c.String())
		if c != sstable.DefaultCompression {
			last = n
		}
	}
	return strings.Join(names[:last+1], ", ")
}

func parseLevelCompression(text string) (levels [NumLevels]sstable.Compression, err error) {
	names := strings.Split(text, ",")
	if len(names) > NumLevels {
		return levels, fmt.Errorf("there are %d compressions: want one for each of up to %d levels", len(names),
			NumLevels)
	}
	for n, name := range names {
		if levels[n], err = sstable.ParseCompression(strings.TrimSpace(name)); err != nil {
			return levels, err
		}
	}
	return levels, nil
}

// sameType reports whether a value that was parsed from a text has the type of the value that had
// the text. The application may have types of its own with the names of this package's.
func sameType(a, b any) bool { return reflect.TypeOf(a) == reflect.TypeOf(b) }

func filterText(o *Options) (text, own string) {
	if o.Filter == nil {
		return "", ""
	}
	text = o.Filter.String()
	if p, err := filterpolicy.Parse(text); err == nil && sameType(p, o.Filter) {
		return text, ""
	}
	return "", text
}

func rangeFilterText(o *Options) (text, own string) {
	if o.RangeFilter == nil {
		return "", ""
	}
	text = o.RangeFilter.String()
	if p, err := filterpolicy.ParseRange(text); err == nil && sameType(p, o.RangeFilter) {
		return text, ""
	}
	return "", text
}

func prefixText(o *Options) (text, own string) {
	if o.Prefix == nil {
		return "", ""
	}
	text = o.Prefix.Name()
	if p, err := filterpolicy.ParsePrefix(text); err == nil && sameType(p, o.Prefix) {
		return text, ""
	}
	return "", text
}

// prefixOnlyField is without a text where Prefix is: Open refuses the one without the other.
func prefixOnlyField() optionField {
	f := boolField("PrefixOnly", func(o *Options) *bool { return &o.PrefixOnly })
	plain := f.text
	f.text = func(o *Options) (string, string) {
		text, _ := plain(o)
		if _, own := prefixText(o); own != "" && text != "" {
			return "", text
		}
		return text, ""
	}
	return f
}

func mergerText(o *Options) (text, own string) {
	if o.Merger == nil {
		return "", ""
	}
	name := o.Merger.Name()
	if m := builtinMerger(name); m != nil && sameType(m, o.Merger) {
		return name, ""
	}
	return "", name
}

func parseMerger(o *Options, text string) error {
	if o.Merger = builtinMerger(text); o.Merger == nil {
		return errors.New("it is not a merger of package kv: set Options.Merger, and leave the line out")
	}
	return nil
}
