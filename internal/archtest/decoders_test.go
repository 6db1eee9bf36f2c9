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

	"filterpolicy.Decode":                    "filterpolicy/internal/conformance.TestHostileFiltersOfAnyName",
	"filterpolicy.DecodeWith":                "filterpolicy/internal/conformance.TestHostileFiltersOfAnyName",
	"filterpolicy.decodeSalted":              "filterpolicy/internal/conformance.TestHostileSaltedFilters",
	"filterpolicy.DecodeRangeWith":           "internal/sstable.TestHostileFiltersOfFilesAllocateLittle",
	"filterpolicy.DecodeRange":               "filterpolicy/internal/conformance.TestHostileRangeFilters",
	"filterpolicy/cutkeys.Decode":            "filterpolicy/internal/conformance.TestHostileRangeFilters",
	"filterpolicy.Set.UnmarshalBinary":       "filterpolicy/internal/conformance.TestImmutableHostileSets",
	"filterpolicy.Set.ReadFrom":              "filterpolicy/internal/conformance.TestImmutableHostileSets",
	"filterpolicy/none.Decode":               "filterpolicy/internal/conformance.TestHostileFiltersOfAnyName",
	"filterpolicy/internal/frame.Decode":     "filterpolicy/internal/conformance.TestHostileFilters",
	"filterpolicy/bloom.Decode":              "filterpolicy/internal/conformance.TestHostileFilters",
	"filterpolicy/blocked.Decode":            "filterpolicy/internal/conformance.TestHostileFilters",
	"filterpolicy/cuckoo.Decode":             "filterpolicy/internal/conformance.TestHostileFilters",
	"filterpolicy/fuse.DecodeXor":            "filterpolicy/internal/conformance.TestHostileFilters",
	"filterpolicy/fuse.Decode":               "filterpolicy/internal/conformance.TestHostileFilters",
	"filterpolicy/gcs.Decode":                "filterpolicy/internal/conformance.TestHostileFilters",
	"filterpolicy/quotient.Decode":           "filterpolicy/internal/conformance.TestHostileFilters",
	"filterpolicy/ribbon.Decode":             "filterpolicy/internal/conformance.TestHostileFilters",
	"filterpolicy/xor.Decode":                "filterpolicy/internal/conformance.TestHostileFilters",
	"filterpolicy/quotient.Set.ReadFrom":     "filterpolicy/internal/conformance.TestQuotientHostileSets",
	"filterpolicy/cuckoo.Set.ReadFrom":       "filterpolicy/internal/conformance.TestCuckooHostileSets",
	"filterpolicy/bloom.Set.ReadFrom":        "filterpolicy/internal/conformance.TestBloomHostileSets",
	"filterpolicy/blocked.Set.ReadFrom":      "filterpolicy/internal/conformance.TestBlockedHostileSets",
	"filterpolicy/counting.Set.ReadFrom":     "filterpolicy/internal/conformance.TestCountingHostileSets",
	"filterpolicy/scalable.Set.ReadFrom":     "filterpolicy/internal/conformance.TestScalableHostileSets",
	"filterpolicy/scalable.parse":            "filterpolicy/internal/conformance.TestScalableSetBombsAreRefused",
	"filterpolicy/quotient.Set.decodeCopies": "filterpolicy/internal/conformance.TestQuotientHostileSets",
	"filterpolicy/cuckoo.layer.decodeExtra":  "filterpolicy/internal/conformance.TestCuckooHostileSets",

	"filterpolicy/bloom.ConcurrentSet.ReadFrom":        "filterpolicy/internal/conformance.TestBloomHostileSets",
	"filterpolicy/bloom.ConcurrentSet.UnmarshalBinary": "filterpolicy/internal/conformance.TestBloomHostileSets",
	"filterpolicy/bloom.Set.UnmarshalBinary":           "filterpolicy/internal/conformance.TestBloomHostileSets",
	"filterpolicy/blocked.Set.UnmarshalBinary":         "filterpolicy/internal/conformance.TestBlockedHostileSets",
	"filterpolicy/counting.Set.UnmarshalBinary":        "filterpolicy/internal/conformance.TestCountingHostileSets",
	"filterpolicy/cuckoo.Set.UnmarshalBinary":          "filterpolicy/internal/conformance.TestCuckooHostileSets",
	"filterpolicy/quotient.Set.UnmarshalBinary":        "filterpolicy/internal/conformance.TestQuotientHostileSets",
	"filterpolicy/scalable.Set.UnmarshalBinary":        "filterpolicy/internal/conformance.TestScalableHostileSets",
	"filterpolicy/internal/frame.Envelope.Unmarshal":   "filterpolicy/internal/conformance.TestBloomHostileSets",
	"filterpolicy/internal/frame.readFrom":             "filterpolicy/internal/conformance.TestBloomHostileSets",

	"internal/diskcache.decodeIndex":          "internal/diskcache.TestHostileSegments",
	"internal/diskcache.decodeIndexTrailer":   "internal/diskcache.TestHostileSegments",
	"internal/diskcache.decodePage":           "internal/diskcache.TestHostileSegments",
	"internal/diskcache.decodePageHeader":     "internal/diskcache.TestHostileSegments",
	"internal/exactranges.Policy.DecodeRange": "internal/sstable.TestHostileFiltersOfFilesAllocateLittle",

	"internal/backup.DecodeMark":                     "internal/backup.TestHostileMarks",
	"internal/backup.NewReader":                      "internal/backup.TestHostileStreams",
	"internal/backup.Header.decode":                  "internal/backup.TestHostileStreams",
	"internal/backup.decodePreamble":                 "internal/backup.TestHostileStreams",
	"internal/batchrepr.NewReader":                   "internal/batchrepr.TestHostileRecords",
	"cmd/kvbench/internal/keys.readLines":            "cmd/kvbench/internal/keys.TestHostileKeyFiles",
	"cmd/kvbench/internal/results.parse":             "cmd/kvbench/internal/results.TestHostileResults",
	"cmd/kvbench/internal/cell.Result.UnmarshalJSON": "cmd/kvbench/internal/results.TestHostileResults",
	"internal/blob.DecodeHandle":                     "internal/blob.TestHostileHandlesTakeNothing",
	"internal/blob.NewReader":                        "internal/blob.TestHostileRecordsAllocateInProportion",
	"internal/blob.Record.decode":                    "internal/blob.TestValueBombsAreRefused",
	"internal/blob.Reader.decode":                    "internal/blob.TestValueBombsAreRefused",
	"internal/blob.decodeFooter":                     "internal/blob.TestHostileRecordsAllocateInProportion",
	"internal/blob.decodeHeader":                     "internal/blob.TestHostileRecordsAllocateInProportion",
	"internal/blob.decodePrefix":                     "internal/blob.TestHostileRecordsAllocateInProportion",
	"internal/compression.DecodedSize":               "internal/compression.TestHostileBytesDecodeInProportion",
	"internal/compression.Decompress":                "internal/compression.TestHostileBytesDecodeInProportion",
	"internal/lookuptrace.NewReader":                 "internal/lookuptrace.TestHostileTraces",
	"internal/lookuptrace.decodeHeader":              "internal/lookuptrace.TestHostileTraces",
	"internal/lookuptrace.decodeScan":                "internal/lookuptrace.TestHostileTraces",
	"internal/lookuptrace.Bound.decode":              "internal/lookuptrace.TestHostileTraces",
	"internal/manifest.DecodeEdit":                   "internal/manifest.TestHostileEdits",
	"internal/rangedel.DecodeEnd":                    "internal/sstable.TestRangeTombstoneBombsAreRefused",
	"internal/remote/branch.decodeBranch":            "internal/remote/branch.TestHostileSnapshots",
	"internal/remote/branch.decodeSnapshot":          "internal/remote/branch.TestHostileSnapshots",
	"internal/remote/branch.decodeHeader":            "internal/remote/branch.TestHostileSnapshots",
	"internal/remote/branch.decodeList":              "internal/remote/branch.TestHostileSnapshots",
	"internal/remote/locallog.decodeIdentity":        "internal/remote/locallog.TestHostileIdentities",
	"internal/remote/filelist.DecodeBody":            "internal/remote/filelist.TestHostileBodies",
	"internal/remote/filelist.Decode":                "internal/remote/filelist.TestHostileFileLists",
	"internal/remote/filelist.decodeFiles":           "internal/remote/filelist.TestHostileFileLists",
	"internal/remote/filelist.decodeEdit":            "internal/remote/filelist.TestHostileListEdits",
	"internal/sequence.Sequence.decode":              "internal/sequence.TestHostileEntries",
	"internal/sequence.decodeEntry":                  "internal/sequence.TestHostileEntries",
	"internal/sequence.decodeHeader":                 "internal/sequence.TestHostileEntries",
	"internal/wal.NewReader":                         "internal/wal.TestHostileLogs",
	"internal/wal.parseFragment":                     "internal/wal.TestHostileLogs",

	"kv.BackupMark.UnmarshalBinary": "kv.TestHostileBackupMarks",

	"sstable.NewReader":                    "internal/sstable.TestHostileBytesOfEveryBlockAllocateLittle",
	"internal/sstable.NewReader":           "internal/sstable.TestHostileBytesOfEveryBlockAllocateLittle",
	"internal/sstable.salvager.parse":      "internal/sstable.TestHostileFilesAreSalvagedInProportion",
	"internal/sstable.Reader.decode":       "internal/sstable.TestBlockBombsAreRefused",
	"internal/sstable.Reader.decodeRanges": "internal/sstable.TestHostileBytesOfEveryBlockAllocateLittle",
	"internal/sstable.Reader.decodeFilter": "internal/sstable.TestHostileBytesOfEveryBlockAllocateLittle",
	"internal/sstable.Reader.parseTail":    "internal/sstable.TestHostileBytesOfEveryBlockAllocateLittle",
	"internal/sstable.SalvageFile":         "internal/sstable.TestHostileFilesAreSalvagedInProportion",
	"internal/sstable.decodeEntry":         "internal/sstable.TestHostileBytesOfEveryBlockAllocateLittle",
	"internal/sstable.decodeFooter":        "internal/sstable.TestHostileBytesOfEveryBlockAllocateLittle",
	"internal/sstable.decodeLongEntry":     "internal/sstable.TestHostileBytesOfEveryBlockAllocateLittle",
	"internal/sstable.decodeProperties":    "internal/sstable.TestHostilePropertiesAllocateLittle",
	"internal/sstable.decodeProperty":      "internal/sstable.TestHostilePropertiesAllocateLittle",
	"internal/sstable.decodeRangeDels":     "internal/sstable.TestRangeTombstoneBombsAreRefused",
}

// boundless are functions of such names that need no bound, and why.
var boundless = map[string]string{
	"cmd/kvbench/internal/bench.Size.UnmarshalText":   "makes a number",
	"cmd/kvbench/internal/engine.Count.UnmarshalJSON": "makes a number",
	"cmd/kvbench/internal/engine.oraclePolicy.Decode": "looks a number up",
	"cmd/kvbench/internal/sweep.ParseSpec":            "reads a file of its user, with a library that bounds aliases",
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
	fuzzed, targets := map[string]bool{}, []string{}
	for name := range tests {
		if dir, fn := cutName(name); strings.HasPrefix(fn, "Fuzz") {
			fuzzed[dir], targets = true, append(targets, name)
		}
	}
	for name, test := range decoders {
		require.Contains(t, found, name, "the function is gone")
		require.True(t, tests[test], "%s: there is no %s", name, test)
		require.Regexp(t, "Hostile|Bomb", test)
		dir, _ := cutName(test)
		require.True(t, fuzzed[dir], "package %s has no fuzz target", dir)
		if family := familyFuzzed(name, dir); family != "" {
			require.True(t, slices.ContainsFunc(targets, func(target string) bool {
				return strings.HasPrefix(target, conformance+".Fuzz"+family)
			}), "%s has no target Fuzz%s...", conformance, family)
		}
	}
	for name := range boundless {
		require.Contains(t, found, name, "the function is gone")
	}
}

// conformance tests and fuzzes the filters and sets of every family.
const conformance = "filterpolicy/internal/conformance"

// familyFuzzed returns the family, as it stands in the names of tests, of a decoder that is tested
// in the directory of conformance; "" for other decoders.
func familyFuzzed(decoder, testDir string) string {
	dir, _ := cutName(decoder)
	family, ok := strings.CutPrefix(dir, "filterpolicy/")
	if testDir != conformance || !ok || strings.HasPrefix(family, "internal/") || family == "none" {
		return ""
	}
	return strings.ToUpper(family[:1]) + family[1:]
}

// cutName returns the directory and the rest of a name such as sstable.Reader.decode.
func cutName(name string) (dir, rest string) {
	base := strings.LastIndexByte(name, '/') + 1
	at := base + strings.IndexByte(name[base:], '.')
	return name[:at], name[at+1:]
}

// declared returns the functions of the module that look like decoders, sorted, and its tests
// and fuzz targets, all with their directories; those of the laboratory too. Other nested modules
// cannot import internal/hostile, and fuzz their decoders instead.
func declared(t *testing.T) (found []string, tests map[string]bool) {
	t.Helper()
	root, err := os.OpenRoot("../..")
	require.NoError(t, err)
	tests = map[string]bool{}
	names := map[string]bool{}
	nested := slices.DeleteFunc(nestedModules(t), func(dir string) bool { return dir == laboratoryModule })
	err = fs.WalkDir(root.FS(), ".", func(path string, e fs.DirEntry, err error) error {
		if err == nil && e.IsDir() && (path == "examples" || slices.Contains(nested, filepath.ToSlash(path))) {
			return fs.SkipDir
		}
		commands := strings.HasPrefix(path, "cmd/") && !strings.HasPrefix(path, laboratoryModule+"/internal/")
		if err != nil || e.IsDir() || filepath.Ext(path) != ".go" || commands {
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
