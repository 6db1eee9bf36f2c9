package kv

import (
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/internal/scale"
)

// contracts name, for every sentence of what Close, Compact and Ingest promise, the tests
// that hold it. A sentence that changes asks for another look at them.
var contracts = map[string]map[string][]string{
	"Close": {
		"Close makes all writes durable, ends background work and releases everything.": {
			"TestAClosedStoreMissesNothing", "TestAClosedStoreThatLostPowerOpensInEveryMode", "TestALeakIsFound",
			"TestConcurrentUse"},
		"It waits for writes in progress, and for flushes and compactions to notice: the log has what no table " +
			"has yet.": {
			"TestCloseDuringFlush", "TestCloseWaitsForAnIngest", "TestFlushBesideClose", "TestCloseEndsWaits"},
		"A store that has failed tries once more to write what it holds in memory alone; if that does not " +
			"work, the error says so.": {
			"TestCloseResumesAStoreIfItCan", "TestCloseReturnsWhyAStoreCouldNotResume",
			"TestCloseReportsWhatAFailedSyncOfARotatedLogLost"},
		"The error matches ErrDirectoryMoved if the store was safely written to a directory that has another " +
			"name by now.": {"TestCloseOfAMovedDirectory", "TestABackupIsRestoredBelowAStore"},
		"Iterators, snapshots, transactions and readers of values that are still open stay safe to use and " +
			"return ErrClosed.": {"TestAReaderOfAValueOutlivesItsStore", "TestTheLastReaderClosesTheTables"},
		"The error then matches ErrIteratorsOpen, ErrSnapshotsOpen, ErrTransactionsOpen or ErrReadersOpen.": {
			"TestOpenHandlesAreCountedAtClose"},
		"It says where each was opened if Options.TraceOpens is set.": {
			"TestLeakedIteratorsAreNamed", "TestLeakedTransactionsAreNamed"},
		"A second Close waits for the first, and returns what that returned.": {"TestASecondCloseWaitsForTheFirst"},
	},
	"Compact": {
		"Compact writes the memtables to disk and merges everything between lo and hi, both included (nil: " +
			"unbounded), into the last level, without what was deleted or overwritten.": {
			"TestCompactionKeepsWhatReadersSee", "TestOverwrittenVersionsGoWithTheirSnapshot",
			"TestCompactionsOfDisjointRangesDoNotWait", "TestModel"},
		"Then it copies separated values out of blob files that have garbage, and out of small ones, one batch " +
			"of files after the other.": {
			"TestCompactLeavesNoGarbage", "TestCompactJoinsSmallBlobFiles"},
		"It needs as much free space as what it merges, and as a batch copies.": {
			"TestCompactKeepsItsInputUntilItIsDone", "TestCompactTakesTheSpaceOfABatch"},
		"It returns when that is done; reads and writes go on meanwhile, and so do compactions in the " +
			"background, where they have nothing to do with what is merged: they keep level 0 short.": {
			"TestWritesGoOnBesideACompactionThatTakesLong"},
		"After an error the merge, or the batch, that it had begun has changed nothing.": {
			"TestACompactionThatIsBrokenOffLeavesNothingBehind", "TestFaults"},
		"When ctx ends, Compact stops the merge or the batch that runs, removes what that has written, and returns " +
			"an error that matches ctx.Err().": {
			"TestACompactionThatIsBrokenOffLeavesNothingBehind"},
		"The store holds what it held.": {"TestACompactionThatIsBrokenOffLeavesNothingBehind"},
	},
	"Ingest": {
		"Ingest takes sorted files into the store.": {"TestIngest"},
		"All of their writes take effect at one moment, as those of a batch do, and are later than every write " +
			"before the call.": {
			"TestIngestIsSeenAtOnce", "TestWritesJustBeforeAnIngest", "TestModelWithIngest"},
		"The files were written by [sstable.Writer] with Set, SetUntil, Delete and DeleteRange.": {
			"TestIngest", "TestIngestOfExpiringValues"},
		"Merge operands are refused with ErrNotIngestible, and so are tables of a store that refer to blob files.": {
			"TestIngestRefuses", "TestTablesWithHandlesAreNotIngested"},
		"Values of any size are in the files; large ones go to blob files when a compaction rewrites them.": {
			"TestIngestedValuesAreSeparatedWhenTheyAreRewritten"},
		"The files may come in any order, and must not overlap each other.": {
			"TestIngestRefuses", "TestIngest"},
		"Within a file, DeleteRange hides what the store has and nothing of the file.": {
			"TestIngest", "TestModelWithIngest"},
		"Every byte of the files is checked first.": {
			"TestIngestRefuses", "TestIngestRefusesHostileFiltersOfPrefixes",
			"TestIngestRefusesBlockBombsAndTheStoreReadsItsOwn"},
		"They are then copied into the store's directory, or linked if IngestOptions.Link is set; " +
			"those at the paths stay.": {"TestIngestLinksOrCopies"},
		"When Ingest returns, the writes are on stable storage.": {
			"TestPowerCutDuringIngest"},
		"After an error or a crash the store has all of the files or none.": {
			"TestIngestWhenTheDiskFails", "TestPowerCutDuringIngest", "TestAnIngestIsMarkedWhileItIsUnderWay",
			"TestIngestRefusesAStoreThatHasFailed"},
		"An ingest flushes memtables first, and holds up writes while it flushes what was written meanwhile.": {
			"TestWritesJustBeforeAnIngest", "TestABackupAndAnIngestAreGivenUpWhileTheyWait"},
		"The options may be nil.": {"TestIngest"},
		"When ctx ends, Ingest takes nothing in and returns an error that matches ctx.Err().": {
			"TestABackupAndAnIngestAreGivenUpWhileTheyWait"},
	},
}

func TestEverySentenceOfAContractHasATest(t *testing.T) {
	t.Parallel()
	scale.OneGoroutine(t, "it reads source files")
	tests := testNames(t)
	docs := methodDocs(t)
	for method, sentences := range contracts {
		require.ElementsMatch(t, sentencesOf(docs[method]), slices.Collect(maps.Keys(sentences)), method)
		for sentence, names := range sentences {
			require.NotEmpty(t, names, sentence)
			for _, name := range names {
				require.True(t, tests[name], "%s: no test is called %s", sentence, name)
			}
		}
	}
}

// testNames returns the names of the tests of this package, of those that it is made of, and of the suites of stores.
func testNames(t *testing.T) map[string]bool {
	t.Helper()
	names := map[string]bool{}
	for _, pattern := range []string{"*_test.go", "../internal/*/*_test.go", "../internal/storetest/*/*_test.go"} {
		eachFunction(t, pattern, func(f *ast.FuncDecl) {
			if f.Recv == nil && strings.HasPrefix(f.Name.Name, "Test") {
				names[f.Name.Name] = true
			}
		})
	}
	return names
}

// methodDocs returns the comments of the methods of DB.
func methodDocs(t *testing.T) map[string]string {
	t.Helper()
	docs := map[string]string{}
	eachFunction(t, "*.go", func(f *ast.FuncDecl) {
		if f.Recv == nil {
			return
		}
		star, _ := f.Recv.List[0].Type.(*ast.StarExpr)
		if star == nil {
			return
		}
		if receiver, _ := star.X.(*ast.Ident); receiver != nil && receiver.Name == "DB" {
			docs[f.Name.Name] = f.Doc.Text()
		}
	})
	return docs
}

func eachFunction(t *testing.T, pattern string, visit func(f *ast.FuncDecl)) {
	t.Helper()
	files, err := filepath.Glob(pattern)
	require.NoError(t, err)
	for _, name := range files {
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.ParseComments|parser.SkipObjectResolution)
		require.NoError(t, err)
		for _, d := range file.Decls {
			if f, ok := d.(*ast.FuncDecl); ok {
				visit(f)
			}
		}
	}
}

// sentencesOf cuts a comment into sentences.
func sentencesOf(doc string) (sentences []string) {
	text := strings.Join(strings.Fields(doc), " ")
	for text != "" {
		end := len(text)
		if i := strings.Index(text, ". "); i >= 0 {
			end = i + 1
		}
		sentences = append(sentences, text[:end])
		text = strings.TrimSpace(text[end:])
	}
	return sentences
}
