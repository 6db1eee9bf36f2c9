package kv

import (
	"errors"
	"fmt"
	"io/fs"
	"strconv"
	"strings"
	"time"

	"github.com/siftkv/siftkv/filterpolicy"
	"github.com/siftkv/siftkv/internal/fieldtext"
	"github.com/siftkv/siftkv/internal/operand"
	"github.com/siftkv/siftkv/sstable"
)

// ParseOptions makes options of a text. Each line is
//
//	Name = value
//
// where Name is a field of Options. Blank lines, and those that begin with #, mean nothing. A field
// without a line has its default; one with two lines is an error. Values are:
//
//   - Sizes as 64MiB, 1.5GiB or a plain number of bytes, other numbers as they are.
//   - True and false, in lower case.
//   - Filter, Prefix and RangeFilter as filterpolicy.Parse, ParsePrefix and ParseRange read them.
//   - Compression, Compaction and RecoveryMode by name: zstd, lazy-leveled, TolerateTornTail.
//   - LevelCompression for each level, beginning with 0, with commas: none, default, zstd.
//   - Merger by the name of a merger of this package: Int64Add's is siftkv.int64add.
//   - FileMode as an octal number, IdleCompaction and PollInterval as time.ParseDuration reads them.
//   - Any of them quoted as in Go, if spaces at its ends count: "delimiter: ".
//
// Clock, Logger, Events, Objects and MemoryBudget have no text, nor have a Merger, a Filter, a Prefix and a
// RangeFilter of the application's own. Set them in the result.
//
// Errors match ErrInvalidOptions, and name the line, the field and what is wrong, up to 20 of them.
// Open checks whether a value is within the field's bounds.
func ParseOptions(text string) (*Options, error) {
	o := &Options{}
	if faults := optionFields.Parse(o, text); len(faults) > 0 {
		return nil, fieldtext.Join(ErrInvalidOptions, faults)
	}
	return o, nil
}

// String returns the text of the options, from which ParseOptions makes the same: one line for each field that is set,
// in the order of Options. Fields without a text are left out; a Merger, a Filter, a Prefix and a RangeFilter of the
// application's own are named in comments. A nil o is all defaults, whose text is empty.
func (o *Options) String() string {
	if o == nil {
		return ""
	}
	return optionFields.Format(o, nil)
}

var optionFields = fieldtext.Fields[Options]{Of: "Options", Without: fieldsWithoutText, List: fieldsWithText}

// fieldsWithText are the fields of Options that have a text, in the order of Options. All others are in
// fieldsWithoutText.
var fieldsWithText = []fieldtext.Field[Options]{
	fieldtext.Size("MemoryLimit", func(o *Options) *int64 { return &o.MemoryLimit }),
	fieldtext.Size("CacheSize", func(o *Options) *int64 { return &o.CacheSize }),
	fieldtext.Size("MemtableSize", func(o *Options) *int64 { return &o.MemtableSize }),
	fieldtext.Count("MaxMemtables", func(o *Options) *int { return &o.MaxMemtables }),
	fieldtext.Size("BlockSize", func(o *Options) *int { return &o.BlockSize }),
	fieldtext.Size("IndexPartition", func(o *Options) *int { return &o.IndexPartition }),
	fieldtext.Value("Compression", func(o *Options) *sstable.Compression { return &o.Compression },
		sstable.Compression.String, sstable.ParseCompression),
	fieldtext.Value("LevelCompression", func(o *Options) *[NumLevels]sstable.Compression { return &o.LevelCompression },
		levelCompressionText, parseLevelCompression),
	fieldtext.Size("SeparateFrom", func(o *Options) *int { return &o.SeparateFrom }),
	fieldtext.Ratio("BlobSpace", func(o *Options) *float64 { return &o.BlobSpace }),
	fieldtext.Bool("SeparateAtCommit", func(o *Options) *bool { return &o.SeparateAtCommit }),
	fieldtext.Count("MaxOpenFiles", func(o *Options) *int { return &o.MaxOpenFiles }),
	fieldtext.Bool("MemoryMap", func(o *Options) *bool { return &o.MemoryMap }),
	fieldtext.Named("Filter", func(o *Options) *filterpolicy.Policy { return &o.Filter },
		filterpolicy.Policy.String, filterpolicy.Parse),
	fieldtext.Size("FilterBudget", func(o *Options) *int64 { return &o.FilterBudget }),
	fieldtext.Size("FalsePositiveMemory", func(o *Options) *int64 { return &o.FalsePositiveMemory }),
	prefixField,
	prefixOnlyField(),
	fieldtext.Named("RangeFilter", func(o *Options) *filterpolicy.RangePolicy { return &o.RangeFilter },
		filterpolicy.RangePolicy.String, filterpolicy.ParseRange),
	fieldtext.Bool("RangeFilterLastLevel", func(o *Options) *bool { return &o.RangeFilterLastLevel }),
	fieldtext.Size("TargetFileSize", func(o *Options) *int64 { return &o.TargetFileSize }),
	fieldtext.Size("BaseLevelSize", func(o *Options) *int64 { return &o.BaseLevelSize }),
	fieldtext.Ratio("SpaceAmplification", func(o *Options) *float64 { return &o.SpaceAmplification }),
	fieldtext.Count("L0CompactionThreshold", func(o *Options) *int { return &o.L0CompactionThreshold }),
	fieldtext.Count("L0SlowdownThreshold", func(o *Options) *int { return &o.L0SlowdownThreshold }),
	fieldtext.Count("L0StopThreshold", func(o *Options) *int { return &o.L0StopThreshold }),
	fieldtext.Value("Compaction", func(o *Options) *CompactionStyle { return &o.Compaction }, CompactionStyle.String,
		parseCompaction),
	fieldtext.Count("RunsPerLevel", func(o *Options) *int { return &o.RunsPerLevel }),
	fieldtext.Count("MaxConcurrentCompactions", func(o *Options) *int { return &o.MaxConcurrentCompactions }),
	fieldtext.Size("CompactionRate", func(o *Options) *int64 { return &o.CompactionRate }),
	fieldtext.Value("IdleCompaction", func(o *Options) *time.Duration { return &o.IdleCompaction },
		time.Duration.String, time.ParseDuration),
	fieldtext.Named("Merger", func(o *Options) *Merger { return &o.Merger }, Merger.Name, parseMerger),
	fieldtext.Bool("ReadOnly", func(o *Options) *bool { return &o.ReadOnly }),
	fieldtext.Value("RecoveryMode", func(o *Options) *RecoveryMode { return &o.RecoveryMode }, RecoveryMode.String,
		parseRecoveryMode),
	fieldtext.Bool("TolerateMissingValues", func(o *Options) *bool { return &o.TolerateMissingValues }),
	fieldtext.Bool("InMemory", func(o *Options) *bool { return &o.InMemory }),
	fieldtext.Value("FileMode", func(o *Options) *fs.FileMode { return &o.FileMode },
		func(m fs.FileMode) string { return fmt.Sprintf("%04o", uint32(m)) }, parseFileMode),
	fieldtext.Value("PollInterval", func(o *Options) *time.Duration { return &o.PollInterval }, time.Duration.String,
		time.ParseDuration),
	fieldtext.Bool("LatencyHistograms", func(o *Options) *bool { return &o.LatencyHistograms }),
	fieldtext.Size("LookupSample", func(o *Options) *int64 { return &o.LookupSample }),
	fieldtext.Bool("TraceOpens", func(o *Options) *bool { return &o.TraceOpens }),
}

// fieldsWithoutText are the fields of Options that only a program can set, and why.
var fieldsWithoutText = map[string]string{
	"Clock":        "a function",
	"Objects":      "it has a client of an object store",
	"MemoryBudget": "other stores share it",
	"Logger":       "where it writes to is the program's",
	"Events":       "functions",

	"harness": "for tests",
	"stored":  "it is the text",
	"objects": "it is made of Objects",
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

// prefixField is a variable, as PrefixOnly asks it.
var prefixField = fieldtext.Named("Prefix", func(o *Options) *filterpolicy.Prefix { return &o.Prefix },
	filterpolicy.Prefix.Name, filterpolicy.ParsePrefix)

// prefixOnlyField is without a text where Prefix is: Open refuses the one without the other.
func prefixOnlyField() fieldtext.Field[Options] {
	f := fieldtext.Bool("PrefixOnly", func(o *Options) *bool { return &o.PrefixOnly })
	plain := f.Text
	f.Text = func(o *Options) (string, string) {
		text, _ := plain(o)
		if _, own := prefixField.Text(o); own != "" && text != "" {
			return "", text
		}
		return text, ""
	}
	return f
}

func parseMerger(text string) (Merger, error) {
	if m := operand.Builtin(text); m != nil {
		return m, nil
	}
	return nil, errors.New("it is not a merger of package kv: set Options.Merger, and leave the line out")
}
