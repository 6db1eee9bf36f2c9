package archtest

import (
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// decoders are the functions that make something of bytes from a disk or a peer, and for each
// the test that holds what it allocates against the bytes that it is given.
var decoders = map[string]string{
	"blockindex.Decode": "blockindex.TestHostileIndexes",

	"filterpolicy.Decode":                    "filterpolicy.TestHostileFiltersOfAnyName",
	"filterpolicy.DecodeWith":                "filterpolicy.TestHostileFiltersOfAnyName",
	"filterpolicy.Set.UnmarshalBinary":       "filterpolicy.TestHostileSets",
	"filterpolicy.Set.ReadFrom":              "filterpolicy.TestHostileSets",
	"filterpolicy/none.Decode":               "filterpolicy.TestHostileFiltersOfAnyName",
	"filterpolicy/internal/frame.Decode":     "filterpolicy/bloom.TestHostileFilters",
	"filterpolicy/bloom.Decode":              "filterpolicy/bloom.TestHostileFilters",
	"filterpolicy/blocked.Decode":            "filterpolicy/blocked.TestHostileFilters",
	"filterpolicy/cuckoo.Decode":             "filterpolicy/cuckoo.TestHostileFilters",
	"filterpolicy/fuse.Decode":               "filterpolicy/fuse.TestHostileFilters",
	"filterpolicy/gcs.Decode":                "filterpolicy/gcs.TestHostileFilters",
	"filterpolicy/quotient.Decode":           "filterpolicy/quotient.TestHostileFilters",
	"filterpolicy/ribbon.Decode":             "filterpolicy/ribbon.TestHostileFilters",
	"filterpolicy/xor.Decode":                "filterpolicy/xor.TestHostileFilters",
	"filterpolicy/quotient.Set.ReadFrom":     "filterpolicy/quotient.TestHostileSets",
	"filterpolicy/cuckoo.Set.ReadFrom":       "filterpolicy/cuckoo.TestHostileSets",
	"filterpolicy/bloom.Set.ReadFrom":        "filterpolicy/bloom.TestHostileSets",
	"filterpolicy/blocked.Set.ReadFrom":      "filterpolicy/blocked.TestHostileSets",
	"filterpolicy/counting.Set.ReadFrom":     "filterpolicy/counting.TestHostileSets",
	"filterpolicy/scalable.Set.ReadFrom":     "filterpolicy/scalable.TestHostileSets",
	"filterpolicy/scalable.parse":            "filterpolicy/scalable.TestSetBombsAreRefused",
	"filterpolicy/quotient.Set.decodeCopies": "filterpolicy/quotient.TestHostileSets",
	"filterpolicy/cuckoo.layer.decodeExtra":  "filterpolicy/cuckoo.TestHostileSets",

	"filterpolicy/bloom.ConcurrentSet.ReadFrom":        "filterpolicy/bloom.TestHostileSets",
	"filterpolicy/bloom.ConcurrentSet.UnmarshalBinary": "filterpolicy/bloom.TestHostileSets",
	"filterpolicy/bloom.Set.UnmarshalBinary":           "filterpolicy/bloom.TestHostileSets",
	"filterpolicy/blocked.Set.UnmarshalBinary":         "filterpolicy/blocked.TestHostileSets",
	"filterpolicy/counting.Set.UnmarshalBinary":        "filterpolicy/counting.TestHostileSets",
	"filterpolicy/cuckoo.Set.UnmarshalBinary":          "filterpolicy/cuckoo.TestHostileSets",
	"filterpolicy/quotient.Set.UnmarshalBinary":        "filterpolicy/quotient.TestHostileSets",
	"filterpolicy/scalable.Set.UnmarshalBinary":        "filterpolicy/scalable.TestHostileSets",
	"filterpolicy/internal/envelope.Format.Unmarshal":  "filterpolicy/bloom.TestHostileSets",
	"filterpolicy/internal/envelope.readFrom":          "filterpolicy/bloom.TestHostileSets",

	"internal/backup.DecodeMark":        "internal/backup.TestHostileMarks",
	"internal/backup.NewReader":         "internal/backup.TestHostileStreams",
	"internal/backup.decodeHeader":      "internal/backup.TestHostileStreams",
	"internal/backup.decodePreamble":    "internal/backup.TestHostileStreams",
	"internal/batchrepr.NewReader":      "internal/batchrepr.TestHostileRecords",
	"internal/bench/keys.readLines":     "internal/bench/keys.TestHostileKeyFiles",
	"internal/bench/results.parse":      "internal/bench/results.TestHostileResults",
	"internal/lookuptrace.NewReader":    "internal/lookuptrace.TestHostileTraces",
	"internal/lookuptrace.decodeHeader": "internal/lookuptrace.TestHostileTraces",
	"internal/manifest.DecodeEdit":      "internal/manifest.TestHostileEdits",
	"internal/rangedel.DecodeEnd":       "internal/sstable.TestRangeTombstoneBombsAreRefused",
	"internal/wal.NewReader":            "internal/wal.TestHostileLogs",
	"internal/wal.parseFragment":        "internal/wal.TestHostileLogs",

	"kv.BackupMark.UnmarshalBinary": "kv.TestHostileBackupMarks",

	"internal/sstable.NewReader":           "internal/sstable.TestHostileBytesOfEveryBlockAllocateLittle",
	"internal/sstable.salvager.parse":      "internal/sstable.TestHostileFilesAreSalvagedInProportion",
	"internal/sstable.Reader.decode":       "internal/sstable.TestBlockBombsAreRefused",
	"internal/sstable.Reader.decodeFilter": "internal/sstable.TestHostileBytesOfEveryBlockAllocateLittle",
	"internal/sstable.Reader.parseTail":    "internal/sstable.TestHostileBytesOfEveryBlockAllocateLittle",
	"internal/sstable.SalvageFile":         "internal/sstable.TestHostileFilesAreSalvagedInProportion",
	"internal/sstable.decodeEntry":         "internal/sstable.TestHostileBytesOfEveryBlockAllocateLittle",
	"internal/sstable.decodeFooter":        "internal/sstable.TestHostileBytesOfEveryBlockAllocateLittle",
	"internal/sstable.decodeLongEntry":     "internal/sstable.TestHostileBytesOfEveryBlockAllocateLittle",
	"internal/sstable.decodeProperties":    "internal/sstable.TestHostilePropertiesAllocateLittle",
	"internal/sstable.decodeRangeDels":     "internal/sstable.TestRangeTombstoneBombsAreRefused",
	"internal/sstable.decodedSize":         "internal/sstable.TestHostileFramesAreRefused",
	"internal/sstable.decompress":          "internal/sstable.TestHostileFramesAreRefused",
}

// boundless are functions of such names that need no bound, and why.
var boundless = map[string]string{
	"internal/bench.Size.UnmarshalText":           "makes a number",
	"internal/bench/engine.Count.UnmarshalJSON":   "makes a number",
	"internal/bench/engine.oraclePolicy.Decode":   "looks a number up",
	"internal/bench/sweep.ParseSpec":              "reads what the user of kvbench wrote for this run, with a library that bounds aliases",
	"internal/doctor/keytext.Bytes.UnmarshalJSON": "makes one string",
}

// decoding matches the names of functions that decode.
var decoding = regexp.MustCompile(`^(?i:decod|decompress|unmarshal|parse|salvagefile|readFrom$|readLines|newReader$)`)

// encoded are the types of parameters that bytes come in.
var encoded = []string{"[]byte", "*[]byte", "io.Reader", "io.ReaderAt", "vfs.ReadFile"}

// TestEveryDecoderHasABound finds all functions that look like decoders. A new one is entered
// above, with a test of package hostile.
func TestEveryDecoderHasABound(t *testing.T) {
	found, tests := declared(t)
	for _, name := range found {
		_, known := decoders[name]
		_, exempt := boundless[name]
		if known == exempt {
			t.Errorf("%s decodes: hold it against a bound (internal/hostile), and enter it in decoders", name)
		}
	}
	fuzzed := map[string]bool{}
	for name := range tests {
		dir, fn := cutName(name)
		fuzzed[dir] = fuzzed[dir] || strings.HasPrefix(fn, "Fuzz")
	}
	for name, test := range decoders {
		require.Contains(t, found, name, "the function is gone")
		require.True(t, tests[test], "%s: there is no %s", name, test)
		require.Regexp(t, "Hostile|Bomb", test)
		dir, _ := cutName(test)
		require.True(t, fuzzed[dir], "package %s has no fuzz target", dir)
	}
	for name := range boundless {
		require.Contains(t, found, name, "the function is gone")
	}
}

// cutName returns the directory and the rest of a name such as sstable.Reader.decode.
func cutName(name string) (dir, rest string) {
	base := strings.LastIndexByte(name, '/') + 1
	at := base + strings.IndexByte(name[base:], '.')
	return name[:at], name[at+1:]
}

// declared returns the functions of the module that look like decoders, sorted, and its tests
// and fuzz targets, all with their directories.
func declared(t *testing.T) (found []string, tests map[string]bool) {
	t.Helper()
	root, err := os.OpenRoot("../..")
	require.NoError(t, err)
	tests = map[string]bool{}
	names := map[string]bool{}
	err = fs.WalkDir(root.FS(), ".", func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() || filepath.Ext(path) != ".go" || strings.HasPrefix(path, "cmd/") {
			return err
		}
		file, err := parser.ParseFile(token.NewFileSet(), filepath.Join("../..", path), nil,
			parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		dir := filepath.ToSlash(filepath.Dir(path)) + "."
		for _, d := range file.Decls {
			f, ok := d.(*ast.FuncDecl)
			switch {
			case !ok:
			case strings.HasSuffix(path, "_test.go"):
				tests[dir+f.Name.Name] = true
			case decoding.MatchString(f.Name.Name) && takesBytes(f):
				names[dir+receiver(f)+f.Name.Name] = true
			}
		}
		return nil
	})
	require.NoError(t, err)
	require.NoError(t, root.Close())
	return slices.Sorted(maps.Keys(names)), tests
}

func takesBytes(f *ast.FuncDecl) bool {
	return slices.ContainsFunc(f.Type.Params.List, func(p *ast.Field) bool {
		return slices.Contains(encoded, types.ExprString(p.Type))
	})
}

// receiver returns the type of a method and a dot.
func receiver(f *ast.FuncDecl) string {
	if f.Recv == nil {
		return ""
	}
	name := strings.TrimPrefix(types.ExprString(f.Recv.List[0].Type), "*")
	name, _, _ = strings.Cut(name, "[")
	return name + "."
}
