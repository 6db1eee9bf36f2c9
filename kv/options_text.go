package kv

import (
	"errors"
	"fmt"
	"io/fs"
	"reflect"
	"strconv"
	"strings"

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
//   - FileMode as an octal number, IdleCompaction, MaxSlotAge and PollInterval as time.ParseDuration reads them.
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

var optionFields = fieldtext.Fields{Of: "Options", List: fieldsWithText, Without: fieldsWithoutText,
	With: map[string]string{"PrefixOnly": "Prefix"}} // Open refuses PrefixOnly without Prefix

// fieldsWithText are the fields of Options that have a text, in the order of Options. All others are in
// fieldsWithoutText.
var fieldsWithText = []fieldtext.Field{
	fieldtext.Size("MemoryLimit"),
	fieldtext.Size("CacheSize"),
	fieldtext.Size("MemtableSize"),
	fieldtext.Count("MaxMemtables"),
	fieldtext.Size("BlockSize"),
	fieldtext.Size("IndexPartition"),
	fieldtext.Value("Compression", sstable.Compression.String, sstable.ParseCompression),
	fieldtext.Value("LevelCompression", levelCompressionText, parseLevelCompression),
	fieldtext.Size("SeparateFrom"),
	fieldtext.Ratio("BlobSpace"),
	fieldtext.Bool("SeparateAtCommit"),
	fieldtext.Count("MaxOpenFiles"),
	fieldtext.Bool("MemoryMap"),
	{Name: "Filter", Form: filterForm{}},
	fieldtext.Size("FilterBudget"),
	fieldtext.Size("FalsePositiveMemory"),
	fieldtext.Named("Prefix", filterpolicy.Prefix.Name, filterpolicy.ParsePrefix),
	fieldtext.Bool("PrefixOnly"),
	{Name: "RangeFilter", Form: rangeFilterForm{}},
	fieldtext.Bool("RangeFilterLastLevel"),
	fieldtext.Size("TargetFileSize"),
	fieldtext.Size("BaseLevelSize"),
	fieldtext.Ratio("SpaceAmplification"),
	fieldtext.Count("L0CompactionThreshold"),
	fieldtext.Count("L0SlowdownThreshold"),
	fieldtext.Count("L0StopThreshold"),
	fieldtext.Value("Compaction", CompactionStyle.String, parseCompaction),
	fieldtext.Count("RunsPerLevel"),
	fieldtext.Count("MaxConcurrentCompactions"),
	fieldtext.Size("CompactionRate"),
	fieldtext.Duration("IdleCompaction"),
	fieldtext.Size("MaxSlotBytes"),
	fieldtext.Duration("MaxSlotAge"),
	fieldtext.Named("Merger", Merger.Name, parseMerger),
	fieldtext.Bool("ReadOnly"),
	fieldtext.Value("RecoveryMode", RecoveryMode.String, parseRecoveryMode),
	fieldtext.Bool("TolerateMissingValues"),
	fieldtext.Bool("InMemory"),
	fieldtext.Value("FileMode", func(m fs.FileMode) string { return fmt.Sprintf("%04o", uint32(m)) },
		parseFileMode),
	fieldtext.Duration("PollInterval"),
	fieldtext.Bool("LatencyHistograms"),
	fieldtext.Size("LookupSample"),
	fieldtext.Bool("TraceOpens"),
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

// filterForm has the spec of a policy of filterpolicy. Its Parse links every family's builder, Text does not.
type filterForm struct{}

func (filterForm) Text(v reflect.Value) (text, own string) {
	p := v.Interface().(filterpolicy.Policy)
	if !filterpolicy.Expected(p, 0).OK {
		return "", p.String()
	}
	return p.String(), ""
}

func (filterForm) Parse(v reflect.Value, text string) error {
	return fieldtext.Set(v, text, filterpolicy.Parse)
}

// rangeFilterForm is the filterForm of range filters.
type rangeFilterForm struct{}

func (rangeFilterForm) Text(v reflect.Value) (text, own string) {
	p := v.Interface().(filterpolicy.RangePolicy)
	if !filterpolicy.ExpectedRange(p, 0).OK {
		return "", p.String()
	}
	return p.String(), ""
}

func (rangeFilterForm) Parse(v reflect.Value, text string) error {
	return fieldtext.Set(v, text, filterpolicy.ParseRange)
}

func parseMerger(text string) (Merger, error) {
	if m := operand.Builtin(text); m != nil {
		return m, nil
	}
	return nil, errors.New("it is not a merger of package kv: set Options.Merger, and leave the line out")
}
