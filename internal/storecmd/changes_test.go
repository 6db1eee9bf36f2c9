package storecmd

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/internal/cli/clitest"
	"github.com/siftkv/siftkv/internal/golden"
	"github.com/siftkv/siftkv/internal/keyformat"
	"github.com/siftkv/siftkv/internal/storetest"
	"github.com/siftkv/siftkv/kv"
	"github.com/siftkv/siftkv/sstable"
)

// openCounting opens a store whose operands are numbers.
func openCounting(t *testing.T, dir string) *kv.DB {
	t.Helper()
	db, err := kv.Open(dir, &kv.Options{Merger: kv.Int64Add, SeparateFrom: 1 << 10, SeparateAtCommit: true})
	require.NoError(t, err)
	return db
}

// ingestFile writes a sorted file and has a store take it in.
func ingestFile(t *testing.T, db *kv.DB, write func(w *sstable.Writer) error) {
	t.Helper()
	name := filepath.Join(t.TempDir(), "in.sst")
	f, err := os.Create(name)
	require.NoError(t, err)
	w := sstable.NewWriter(f, nil)
	require.NoError(t, write(w))
	_, err = w.Finish()
	require.NoError(t, err)
	require.NoError(t, f.Close())
	require.NoError(t, db.Ingest(t.Context(), []string{name}, nil))
}

// changedStore is a store with a slot called s, and a commit of each kind after it.
func changedStore(t *testing.T) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "store")
	db := openCounting(t, dir)
	require.NoError(t, db.Set([]byte("before"), nil, nil))
	slot, snapshot, err := db.CreateSlot(t.Context(), "s")
	require.NoError(t, err)
	require.NoError(t, snapshot.Close())
	require.NoError(t, slot.Close())
	b := db.NewBatch()
	require.NoError(t, b.Set([]byte("user/1"), []byte("Ada")))
	require.NoError(t, b.Set([]byte("\xff\x00"), []byte{0xfe}))
	require.NoError(t, b.SetUntil([]byte("session"), []byte("x"), time.Date(2100, 1, 2, 3, 4, 5, 6000, time.UTC)))
	require.NoError(t, b.Merge([]byte("count"), kv.AppendInt64(nil, 3)))
	require.NoError(t, b.Commit(nil))
	require.NoError(t, db.Delete([]byte("user/1"), nil))
	require.NoError(t, db.DeleteRange([]byte("a"), []byte("b"), nil))
	require.NoError(t, db.DeletePrefix([]byte("\xff"), nil))
	require.NoError(t, db.Set([]byte("user/separated"), bytes.Repeat([]byte("v"), 1<<11), nil))
	ingestFile(t, db, func(w *sstable.Writer) error { return w.Set([]byte("user/ingested"), []byte("in")) })
	require.NoError(t, db.Close())
	return dir
}

// Golden: all kinds of changes, in all formats.
func TestGoldenChanges(t *testing.T) {
	t.Parallel()
	dir := changedStore(t)
	var all strings.Builder
	sizes := regexp.MustCompile(`(?m)^(s +1 +9 +)\d+ +`)
	times := regexp.MustCompile(`\d{4}-\d\d-\d\dT[\d:]+Z`)
	for _, line := range []string{
		"changes DIR --slot s --until-now --peek", "changes DIR --slot s --until-now --peek --keys-only",
		"changes DIR --slot s --until-now --peek --prefix user/ --prefix count",
		"changes DIR --slot s --until-now --peek --limit 1 --key-format hex",
		"changes DIR --slot s --until-now --peek --limit 1 --key-format base64",
		"slots DIR", "changes DIR --slot s --limit 2", "changes DIR --slot s --until-now --limit 1",
		"create-slot DIR t", "create-slot DIR t", "create-slot DIR BAD", "drop-slot DIR s", "drop-slot DIR s",
		"changes DIR --slot s --json", "changes DIR --slot t --until-now", "changes DIR --slot t --limit=-1",
		"slots DIR --json", "slots dir://OBJECTS", "create-slot dir://OBJECTS s", "drop-slot dir://OBJECTS s",
		"slots DIR/missing",
	} {
		status, stdout, stderr := siftkv(t, strings.Fields(strings.ReplaceAll(line, "DIR", dir))...)
		text := strings.ReplaceAll(stdout+stderr, dir, "DIR")
		text = strings.ReplaceAll(text, strings.Repeat("v", 1<<11), "v×2048")
		text = sizes.ReplaceAllString(text, "${1}BYTES ")
		fmt.Fprintf(&all, "$ siftkv %s\n%s[%d]\n\n", line, times.ReplaceAllString(text, "TIME"), status)
	}
	golden.File(t, "testdata/changes.txt", all.String())
}

// commits are the numbers of the last writes of the changes in an output.
func commits(t *testing.T, output string) (lasts []string) {
	t.Helper()
	for _, o := range clitest.RequireJSON(t, output) {
		lasts = append(lasts, fmt.Sprint(o["last"]))
	}
	return lasts
}

// pipeUntil is an output whose reader calls a function when it has read enough, and leaves if that says so.
type pipeUntil struct {
	bytes.Buffer
	enough int
	then   func() (gone bool)
	gone   bool
}

func (w *pipeUntil) Write(b []byte) (int, error) {
	if w.gone {
		return closedPipe{}.Write(b)
	}
	if w.enough -= len(b); w.enough > 0 {
		return w.Buffer.Write(b)
	}
	if w.enough, w.gone = math.MaxInt, w.then(); w.gone {
		_, _ = w.Buffer.Write(b[:len(b)/2])
		return closedPipe{}.Write(b)
	}
	return w.Buffer.Write(b)
}

// longStore is a store with many commits after its slot s; their numbers are 1 to n.
func longStore(t *testing.T, n int) (dir string, all []string) {
	t.Helper()
	dir = filepath.Join(t.TempDir(), "store")
	db := openCounting(t, dir)
	slot, snapshot, err := db.CreateSlot(t.Context(), "s")
	require.NoError(t, err)
	require.NoError(t, snapshot.Close())
	require.NoError(t, slot.Close())
	for i := range n {
		require.NoError(t, db.Set(fmt.Appendf(nil, "%d", i), bytes.Repeat([]byte("v"), 10_000), kv.NoSync))
		all = append(all, strconv.Itoa(i+1))
	}
	require.NoError(t, db.Close())
	return dir, all
}

// What was printed is acknowledged when the command is interrupted, and comes no second time.
func TestChangesThatAreInterrupted(t *testing.T) {
	t.Parallel()
	dir, all := longStore(t, 100)
	ctx, cancel := context.WithCancel(t.Context())
	stdout := &pipeUntil{enough: 300_000, then: func() bool { cancel(); return false }}
	var stderr bytes.Buffer
	p := &program{stdout: stdout, stderr: &stderr}
	require.Equal(t, statusInterrupted, p.run(ctx, []string{"siftkv", "changes", dir, "--slot", "s", "--json"}))
	require.JSONEq(t, `{"error":"interrupted","status":130}`, stderr.String())
	printed := stdout.String()
	whole := printed[:strings.LastIndexByte(printed, '\n')+1] // what it was about to print broke off
	before := commits(t, whole)
	require.Greater(t, len(before), 10)
	require.Equal(t, all, append(before, commits(t, ok(t, "changes", dir, "--slot", "s", "--until-now"))...))
	require.Empty(t, ok(t, "changes", dir, "--slot", "s", "--until-now"))
}

// Changes come as a program makes them, and a signal ends the command in good order.
func TestChangesBesideAWriter(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "store")
	db := openCounting(t, dir)
	defer func() { require.NoError(t, db.Close()) }()
	slot, snapshot, err := db.CreateSlot(t.Context(), "s")
	require.NoError(t, err)
	require.NoError(t, errors.Join(snapshot.Close(), slot.Close()))
	for i, signal := range []os.Signal{os.Interrupt, syscall.SIGTERM} {
		var stderr strings.Builder
		cmd := (&clitest.Process{Args: []string{"changes", dir, "--slot", "s"}, Stderr: &stderr}).Command(t)
		out, err := cmd.StdoutPipe()
		require.NoError(t, err)
		require.NoError(t, cmd.Start())
		lines := bufio.NewReader(out)
		for n := range 3 {
			require.NoError(t, db.Set([]byte("k"), fmt.Append(nil, n), nil))
			line, err := lines.ReadString('\n')
			require.NoError(t, err)
			require.Contains(t, line, fmt.Sprintf(`"key":"k","value":"%d"}]}`, n))
		}
		require.NoError(t, cmd.Process.Signal(signal))
		_ = cmd.Wait()
		require.Equal(t, statusInterrupted, cmd.ProcessState.ExitCode())
		require.Equal(t, "siftkv: interrupted\n", stderr.String())
		require.EqualValues(t, 3*(i+1), db.Slots()[0].Acked)
	}
}

// A consumer that waits for days keeps no files from being removed.
func TestTheViewOfAConsumerIsRefreshed(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "store")
	db := openCounting(t, dir)
	view, err := kv.OpenReadOnly(dir, nil)
	require.NoError(t, err)
	require.NoError(t, db.Set([]byte("k"), nil, nil))
	ctx, cancel := context.WithCancel(t.Context())
	var refreshing sync.WaitGroup
	refreshing.Go(func() { refresh(ctx, view, time.Millisecond) })
	storetest.Until(func() bool {
		there, err := view.Has([]byte("k"))
		return there || err != nil
	})
	cancel()
	refreshing.Wait()
	require.NoError(t, errors.Join(view.Close(), db.Close()))
}

// An acknowledgement that fails is not hidden by an interrupt.
func TestAFailedAcknowledgementOfWhatIsInterrupted(t *testing.T) {
	t.Parallel()
	dir, _ := longStore(t, 10)
	ctx, cancel := context.WithCancel(t.Context())
	failed := errors.New("the disk failed")
	changeStore(t, dir, func(db *kv.DB) {
		slot, err := db.OpenSlot("s")
		require.NoError(t, err)
		c := consumer{db: db, slot: slot,
			deliver: func(*kv.Change) (bool, error) {
				cancel()
				return false, context.Cause(ctx)
			},
			makeDurable: func() error { return failed }}
		err = c.run(ctx)
		require.ErrorIs(t, err, failed)
		require.Equal(t, statusError, statusOf(err))
		require.NoError(t, slot.Close())
	})
}

// What a reader that leaves has not taken is not acknowledged.
func TestChangesForAReaderThatLeaves(t *testing.T) {
	t.Parallel()
	dir, all := longStore(t, 100)
	stdout := &pipeUntil{enough: 300_000, then: func() bool { return true }}
	var stderr bytes.Buffer
	p := &program{stdout: stdout, stderr: &stderr}
	require.Zero(t, p.run(t.Context(), []string{"siftkv", "changes", dir, "--slot", "s"}), stderr.String())
	require.Empty(t, stderr.String())
	whole := stdout.String()[:strings.LastIndexByte(stdout.String(), '\n')+1]
	rest := commits(t, ok(t, "changes", dir, "--slot", "s", "--until-now"))
	require.Equal(t, all[len(all)-len(rest):], rest)
	require.GreaterOrEqual(t, len(commits(t, whole))+len(rest), len(all), "nothing is missing")
}

// Changes without the keys that are wanted are acknowledged too.
func TestChangesOfOtherKeysAreAcknowledged(t *testing.T) {
	t.Parallel()
	dir, all := longStore(t, 300)
	require.Equal(t, []string{"8", "71", "72", "73"},
		commits(t, ok(t, "changes", dir, "--slot", "s", "--until-now", "--prefix", "7"))[:4])
	require.Contains(t, ok(t, "slots", dir), " "+all[len(all)-1]+" ")
	require.Empty(t, ok(t, "changes", dir, "--slot", "s", "--until-now"))
}

// A value that is streamed is printed as any other, and its bytes are left out with the values.
func TestChangesWithLargeValues(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "store")
	value := strings.Repeat("large ", 500_000)
	db := openCounting(t, dir)
	slot, snapshot, err := db.CreateSlot(t.Context(), "s")
	require.NoError(t, err)
	require.NoError(t, snapshot.Close())
	require.NoError(t, slot.Close())
	require.NoError(t, db.SetReader(t.Context(), []byte("k"), int64(len(value)), strings.NewReader(value), nil))
	require.NoError(t, db.Close())
	line := ok(t, "changes", dir, "--slot", "s", "--until-now", "--peek")
	require.True(t, line == fmt.Sprintf(`{"first":1,"last":1,"ingested":false,"writes":[`+
		`{"kind":"set","key":"k","value":"%s"}]}`+"\n", value), "%.200s", line)
	require.Equal(t, `{"first":1,"last":1,"ingested":false,"writes":[{"kind":"set","key":"k"}]}`+"\n",
		ok(t, "changes", dir, "--slot", "s", "--until-now", "--keys-only"))
	// In pieces it is the same: only values beyond any memory are printed so.
	for format, want := range map[keyformat.Format]string{
		keyformat.Text:   `{"kind":"set","key":"k","value":{"base64":"YWI="}}`,
		keyformat.Hex:    `{"kind":"set","key":"6b","value":"6162"}`,
		keyformat.Base64: `{"kind":"set","key":"aw==","value":"YWI="}`,
	} {
		var out bytes.Buffer
		p := &program{out: bufio.NewWriter(&out), Globals: Globals{KeyFormat: format}}
		w := &writePrinter{ctx: t.Context(), p: p}
		require.NoError(t, w.SetReader([]byte("k"), kv.MaxValueSize+1, strings.NewReader("ab")))
		require.NoError(t, p.out.Flush())
		require.Equal(t, want, out.String())
	}
}
