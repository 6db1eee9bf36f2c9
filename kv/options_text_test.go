package kv

import (
	"io/fs"
	"log/slog"
	"math"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/siftkv/siftkv/filterpolicy"
	"github.com/siftkv/siftkv/internal/exactranges"
	"github.com/siftkv/siftkv/internal/property"
	"github.com/siftkv/siftkv/kv/objects"
	"github.com/siftkv/siftkv/objstore"
	"github.com/siftkv/siftkv/sstable"
)

// Every field of Options has a text, or is listed as one that has none.
func TestEveryFieldOfOptionsHasAText(t *testing.T) {
	var names []string
	for _, f := range optionFields.List {
		names = append(names, f.Name)
		require.NotContains(t, fieldsWithoutText, f.Name)
	}
	options := reflect.TypeFor[Options]()
	at := -1
	for field := range options.Fields() {
		name := field.Name
		if fieldsWithoutText[name] != "" {
			continue
		}
		require.Contains(t, names, name, "a new field of Options: give it a text in optionFields, "+
			"or say in fieldsWithoutText why it has none")
		require.Greater(t, slices.Index(names, name), at, "%s: optionFields are in the order of Options", name)
		at = slices.Index(names, name)
	}
	for _, name := range names {
		_, ok := options.FieldByName(name)
		require.True(t, ok, "%s is gone from Options", name)
	}
	for name := range fieldsWithoutText {
		_, ok := options.FieldByName(name)
		require.True(t, ok, "%s is gone from Options", name)
	}
	require.Len(t, names, len(slices.Compact(slices.Sorted(slices.Values(names)))))
}

// drawValue draws a value of a field. It is the zero value only if all levels have the default compression.
func drawValue(t *rapid.T, name string, v reflect.Value) {
	parsed := func(specs ...string) string { return rapid.SampledFrom(specs).Draw(t, name) }
	must := func(p any, err error) reflect.Value {
		if err != nil {
			t.Fatal(err)
		}
		return reflect.ValueOf(p)
	}
	switch p := v.Addr().Interface().(type) {
	case *int:
		*p = rapid.Int().Filter(func(n int) bool { return n != 0 }).Draw(t, name)
	case *int64:
		*p = rapid.Int64().Filter(func(n int64) bool { return n != 0 }).Draw(t, name)
	case *bool:
		*p = true
	case *float64:
		*p = rapid.Float64().Filter(func(f float64) bool { return f != 0 && !math.IsInf(f, 0) }).Draw(t, name)
	case *time.Duration:
		*p = time.Duration(rapid.Int64().Filter(func(n int64) bool { return n != 0 }).Draw(t, name))
	case *fs.FileMode:
		*p = fs.FileMode(rapid.Uint32Min(1).Draw(t, name))
	case *sstable.Compression:
		*p = sstable.Compression(rapid.IntRange(1, 3).Draw(t, name))
	case *[NumLevels]sstable.Compression:
		for i := range p {
			p[i] = sstable.Compression(rapid.IntRange(0, 3).Draw(t, name))
		}
	case *CompactionStyle:
		*p = CompactionStyle(rapid.IntRange(1, int(numCompactions)-1).Draw(t, name))
	case *RecoveryMode:
		*p = RecoveryMode(rapid.IntRange(1, int(numRecoveryModes)-1).Draw(t, name))
	case *filterpolicy.Policy:
		v.Set(must(filterpolicy.Parse(parsed("none", "bloom:10", "blocked:12.5", "cuckoo:12", "xor:8", "ribbon:7"))))
	case *filterpolicy.Prefix:
		v.Set(must(filterpolicy.ParsePrefix(parsed("fixed:8", "delimiter:/,2", "delimiter: ", "delimiter:#",
			"delimiter:\n", `delimiter:"`, `delimiter:\`, "delimiter:=", "delimiter:\x00"))))
	case *filterpolicy.RangePolicy:
		v.Set(must(filterpolicy.ParseRange(parsed("none", "cut:6", "cut:0"))))
	case *Merger:
		*p = rapid.OneOf(rapid.Just(Int64Add), rapid.Map(rapid.String(), Append)).Draw(t, name)
	default:
		t.Fatalf("%s is a %T: draw it", name, p)
	}
}

// Whatever options are set, their text makes the same options, and has a line for each.
func TestOptionsAreReadBack(t *testing.T) {
	property.Check(t, func(t *rapid.T) {
		var o Options
		set := 0
		for _, f := range optionFields.List {
			if rapid.Bool().Draw(t, "set "+f.Name) {
				v := reflect.ValueOf(&o).Elem().FieldByName(f.Name)
				drawValue(t, f.Name, v)
				if !v.IsZero() {
					set++
				}
			}
		}
		text := o.String()
		if got := strings.Count(text, "\n"); got != set {
			t.Fatalf("%d lines, want %d: %s", got, set, text)
		}
		back, err := ParseOptions(text)
		if err != nil {
			t.Fatalf("%v: %s", err, text)
		}
		require.Equal(t, o, *back)
		again, err := ParseOptions("# of a file\r\n\r\n" + strings.ReplaceAll(text, "\n", "\r\n"))
		if err != nil {
			t.Fatalf("%v: %s", err, text)
		}
		require.Equal(t, o, *again)
	})
}

func TestParseOptions(t *testing.T) {
	o, err := ParseOptions(`
# what a server has
MemoryLimit=1.5GiB
  CacheSize = -1
LevelCompression = none, default,zstd
Compaction = lazy-leveled
Compression = default
Merger = "siftkv.append:\",\""
MemoryMap = true
FileMode = 640
PollInterval = 1m30s
`)
	require.NoError(t, err)
	require.Equal(t, &Options{MemoryLimit: 3 << 29, CacheSize: -1, MemoryMap: true, Compaction: LazyLeveled,
		LevelCompression: [NumLevels]sstable.Compression{sstable.NoCompression, 0, sstable.Zstd}, Merger: Append(","),
		FileMode: 0o640, PollInterval: 90 * time.Second}, o)
	require.Equal(t, `MemoryLimit = 1536MiB
CacheSize = -1
LevelCompression = none, default, zstd
MemoryMap = true
Compaction = lazy-leveled
Merger = "siftkv.append:\",\""
FileMode = 0640
PollInterval = 1m30s
`, o.String())
	require.Empty(t, (*Options)(nil).String())
}

func TestParseOptionsSaysWhatIsWrong(t *testing.T) {
	for text, want := range map[string]string{
		"MemtableSize":                          `line 1: "MemtableSize" is not of the form Name = value`,
		"\n\nmemtablesize = 1":                  `line 3: "memtablesize" is not a field of Options`,
		"fs = 1":                                `line 1: "fs" is not a field of Options`,
		" = 1":                                  `line 1: "" is not a field of Options`,
		"Clock = now":                           "line 1: Clock: it has no text (a function): set it in the program",
		"MemtableSize = 64 parsecs":             `line 1: MemtableSize: "64 parsecs" is not a size`,
		"MemtableSize =":                        `line 1: MemtableSize: "" is not a size`,
		"MaxMemtables = 3.5":                    `line 1: MaxMemtables: "3.5" is not a whole number`,
		"MaxMemtables = 3\n#\nMaxMemtables = 3": "line 3: MaxMemtables: line 1 has set it",
		"ReadOnly = yes":                        `line 1: ReadOnly: "yes" is neither true nor false`,
		"Compression = lz4":                     `line 1: Compression: sstable: unknown compression "lz4"`,
		"LevelCompression = " + strings.Repeat("none, ", 8): "line 1: LevelCompression: there are 9",
		"LevelCompression = none,,none":                     `line 1: LevelCompression: sstable: unknown`,
		"Filter = bloom:x":                                  "line 1: Filter: ",
		"Prefix = fixed:0":                                  "line 1: Prefix: ",
		"SpaceAmplification = NaN":                          `line 1: SpaceAmplification: "NaN" is not a number`,
		"SpaceAmplification = -Inf":                         `line 1: SpaceAmplification: "-Inf" is not a number`,
		"Compaction = universal":                            `line 1: Compaction: "universal" is not a style: want `,
		"RecoveryMode = 1":                                  `line 1: RecoveryMode: "1" is not a mode: want Poi`,
		"Merger = mine":                                     "line 1: Merger: it is not a merger of package kv",
		"FileMode = 0680":                                   `line 1: FileMode: "0680" is not a mode`,
		"PollInterval = 5":                                  "line 1: PollInterval: ",
		`Filter = "bloom:10`:                                `line 1: Filter: "bloom:10 is not a quoted string`,
		"TargetFileSize = 9223372036854775807KiB":           "line 1: TargetFileSize: ",
		"MemoryMap = true\nInMemory = 1\nX = 2\n":           `line 3: "X" is not a field of Options`,
		strings.Repeat("X = 1\n", 1000) + "ReadOnly":        "line 20: ",
	} {
		o, err := ParseOptions(text)
		require.ErrorIs(t, err, ErrInvalidOptions, text)
		require.ErrorContains(t, err, want)
		require.Nil(t, o)
		require.NotContains(t, err.Error(), "line 21")
	}
}

// These have names that this package would parse.
type (
	renamedFilter struct{ filterpolicy.Policy }
	anyPrefix     = filterpolicy.Prefix
	renamedPrefix struct{ anyPrefix }
)

// What only the application can make is named, and comes back as if it had not been set.
func TestOptionsNameWhatIsTheApplications(t *testing.T) {
	blocked, err := filterpolicy.Parse("blocked:10")
	require.NoError(t, err)
	fixed, err := filterpolicy.ParsePrefix("fixed:8")
	require.NoError(t, err)
	o := &Options{Filter: renamedFilter{blocked}, Prefix: renamedPrefix{fixed}, PrefixOnly: true, MaxMemtables: 4,
		RangeFilter: exactranges.Policy{}, RangeFilterLastLevel: true,
		Merger: NewMerger("mine\nReadOnly = true", nil), Clock: time.Now, Logger: slog.Default(),
		Objects: &objects.Config{Store: objstore.NewMem()}}
	require.NoError(t, errOf(o.withDefaults()), "Open takes it")
	require.Equal(t, `MaxMemtables = 4
# Filter = blocked:10: the application's own
# Prefix = fixed:8: the application's own
# PrefixOnly = true: the application's own
# RangeFilter = exact: the application's own
RangeFilterLastLevel = true
# Merger = "mine\nReadOnly = true": the application's own
`, o.String())
	back, err := ParseOptions(o.String())
	require.NoError(t, err)
	require.Equal(t, &Options{MaxMemtables: 4, RangeFilterLastLevel: true}, back)
	require.NoError(t, errOf(back.withDefaults()))

	o = &Options{Merger: NewMerger("siftkv.int64add", nil)}
	require.Equal(t, "# Merger = siftkv.int64add: the application's own\n", o.String())
}

func errOf(_ Options, err error) error { return err }

// No text makes ParseOptions panic; what it takes, it takes again from String.
func FuzzParseOptions(f *testing.F) {
	f.Add("")
	f.Add("MemoryLimit = 64MiB\nFilter = ribbon:7\nPrefix = \"delimiter: \"\nMerger = siftkv.append\n")
	f.Add("# c\nLevelCompression = none,default,zstd\nRecoveryMode = Absolute\nFileMode = 0640\nPollInterval = 1s")
	f.Add("RangeFilter = none\nRangeFilterLastLevel = true")
	f.Add("SpaceAmplification = 1.5\nCompaction = tiered\nTraceOpens = true\nCacheSize = -1\n\xff = \"\\")
	f.Fuzz(func(t *testing.T, text string) {
		o, err := ParseOptions(text)
		if err != nil {
			require.ErrorIs(t, err, ErrInvalidOptions)
			require.Nil(t, o)
			require.Contains(t, err.Error(), "line ")
			return
		}
		back, err := ParseOptions(o.String())
		require.NoError(t, err, "%q", o.String())
		require.Equal(t, o, back)
		_, _ = o.withDefaults()
	})
}
