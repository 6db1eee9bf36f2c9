package storecmd

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/internal/cli/clitest"
	"github.com/siftkv/siftkv/internal/scale"
	"github.com/siftkv/siftkv/internal/storecmd/followtest"
	"github.com/siftkv/siftkv/internal/storetest"
	"github.com/siftkv/siftkv/kv"
	"github.com/siftkv/siftkv/sstable"
)

// churn makes commits of every kind.
func churn(t *testing.T, db *kv.DB, r *rand.Rand, commits int) {
	t.Helper()
	for range commits {
		storetest.Fine(t, followtest.CommitAny(db, r))
	}
}

// changeStore opens a store, and calls a function.
func changeStore(t *testing.T, dir string, f func(db *kv.DB)) {
	t.Helper()
	db := openCounting(t, dir)
	f(db)
	require.NoError(t, db.Close())
}

// A copy in a directory, and one in an object store, have all that a store has, whatever changes it.
func TestFollow(t *testing.T) {
	t.Parallel()
	top := t.TempDir()
	dir := filepath.Join(top, "store")
	copies := []string{filepath.Join(top, "copy"), "dir://" + filepath.Join(top, "objects")}
	r := rand.New(rand.NewPCG(1, 1))
	large := make([]byte, 3<<20)
	for i := range large {
		large[i] = byte(r.Uint32())
	}
	for _, change := range []func(db *kv.DB){
		func(db *kv.DB) { churn(t, db, r, 1000) },
		func(*kv.DB) {},
		func(db *kv.DB) { churn(t, db, r, 1000) },
		func(db *kv.DB) {
			value := bytes.NewReader(large)
			require.NoError(t, db.SetReader(t.Context(), []byte("large"), value.Size(), value, nil))
			b := db.NewBatch()
			require.NoError(t, b.Set([]byte("large/2"), large))
			require.NoError(t, b.Merge([]byte("count/1"), kv.AppendInt64(nil, 1)))
			require.NoError(t, b.Commit(nil))
		},
		func(db *kv.DB) {
			ingestFile(t, db, func(w *sstable.Writer) error { // as three batches
				for i := range 40 {
					require.NoError(t, w.Set(fmt.Appendf(nil, "large/%04d", i), large[:1<<20]))
				}
				require.NoError(t, w.SetUntil([]byte("later"), nil, time.Now().Add(time.Hour)))
				return w.DeleteRange([]byte("count/2"), []byte("count/3"))
			})
			churn(t, db, r, 100)
		},
		func(db *kv.DB) { require.NoError(t, db.DeleteRange(nil, nil, nil)) }, // the position too
	} {
		changeStore(t, dir, change)
		for _, to := range copies {
			said := ok(t, "follow", dir, to, "--until-now")
			require.Contains(t, said, "; verified: ", said)
			followtest.RequireCopy(t, dir, to)
		}
	}
	// The copies go on with their slots, each once.
	changeStore(t, dir, func(db *kv.DB) { churn(t, db, r, 100) })
	moved := filepath.Join(top, "moved")
	require.NoError(t, os.Rename(copies[0], moved))
	ok(t, "follow", dir, moved, "--until-now")
	followtest.RequireCopy(t, dir, moved)
	require.Len(t, clitest.RequireJSON(t, ok(t, "slots", dir, "--json")), 2)
	report := clitest.RequireJSON(t, ok(t, "follow", dir, copies[1], "--until-now", "--json"))[0]
	require.Equal(t, true, report["verified"])
	require.Contains(t, ok(t, "follow", dir, moved, "--until-now", "--skip-verify"), ", after 0 changes\n")

	// A copy can be followed.
	third := filepath.Join(top, "third")
	for range 3 {
		ok(t, "follow", moved, third, "--until-now")
		followtest.RequireCopy(t, dir, third)
		changeStore(t, dir, func(db *kv.DB) { churn(t, db, r, 100) })
		ok(t, "follow", dir, moved, "--until-now")
	}
}

// killed runs a command and kills it: once it has moved the position of its copy, or at any moment on its way there. It
// returns the position before and after.
func killed(t *testing.T, r *rand.Rand, to string, args ...string) (before, after uint64) {
	t.Helper()
	var stderr strings.Builder
	cmd := (&clitest.Process{Args: args, Stderr: &stderr}).Command(t)
	before = positionOf(t, to)
	ended := make(chan struct{})
	require.NoError(t, cmd.Start())
	go func() {
		_ = cmd.Wait()
		close(ended)
	}()
	if r.IntN(3) == 0 {
		time.Sleep(time.Duration(r.IntN(300)) * time.Millisecond)
	} else {
		storetest.Until(func() bool {
			select {
			case <-ended:
				return true
			default:
				return positionOf(t, to) != before
			}
		})
	}
	_ = cmd.Process.Kill()
	<-ended
	require.Contains(t, []int{-1, 0}, cmd.ProcessState.ExitCode(), "%v: %s", args, stderr.String())
	return before, positionOf(t, to)
}

// positionOf returns the position of a copy; 0: it has none.
func positionOf(t *testing.T, to string) uint64 {
	t.Helper()
	f := &following{followCommand: &followCommand{To: Location(to)}, p: &program{openers: testOpeners}}
	require.NoError(t, f.findCopy(t.Context()))
	return f.at.Write
}

// A copy has each change once, wherever the program that makes it is killed: operands that came twice would be seen.
func TestFollowIsKilled(t *testing.T) {
	t.Parallel()
	top, seed := t.TempDir(), rand.Uint64()
	t.Logf("seed %d", seed)
	dir, r := filepath.Join(top, "store"), rand.New(rand.NewPCG(2, seed))
	kills, halfWay := 0, 0
	for round := 0; round < scale.Count(3, 100) || halfWay == 0; round++ {
		require.Less(t, round, 1000, "no kill came while changes were applied")
		changeStore(t, dir, func(db *kv.DB) { churn(t, db, r, 3000) })
		last := lastOf(t, dir)
		for _, to := range []string{filepath.Join(top, "copy"), "dir://" + filepath.Join(top, "objects")} {
			for range 3 {
				before, after := killed(t, r, to, "follow", dir, to, "--until-now")
				kills++
				if before < after && after < last {
					halfWay++
				}
			}
			works(t, "follow", dir, to, "--until-now")
			followtest.RequireCopy(t, dir, to)
		}
	}
	t.Logf("%d kills, %d of them while changes were applied", kills, halfWay)
}

// lastOf returns the number of the last write of a store.
func lastOf(t *testing.T, dir string) uint64 {
	t.Helper()
	var last uint64
	changeStore(t, dir, func(db *kv.DB) {
		slot, snapshot, err := db.CreateSlot(t.Context(), "last")
		require.NoError(t, err)
		last = slot.Position()
		require.NoError(t, errors.Join(slot.Close(), snapshot.Close(), db.DropSlot("last")))
	})
	return last
}

// The copies, and the program that writes, are killed at any moment.
func TestFollowBesideAWriter(t *testing.T) {
	t.Parallel()
	require.Equal(t, followtest.PositionKey, fmt.Sprintf("%x", positionKey))
	top := t.TempDir()
	followtest.BesideAWriter(t, filepath.Join(top, "store"),
		[2]string{filepath.Join(top, "copy"), "dir://" + filepath.Join(top, "objects")}, scale.Count(3, 100))
}

// A copy that was killed before it was one is made again, and one that was killed before it had its position gets it.
func TestACopyWithoutAPosition(t *testing.T) {
	t.Parallel()
	top := t.TempDir()
	dir, r := filepath.Join(top, "store"), rand.New(rand.NewPCG(3, 3))
	changeStore(t, dir, func(db *kv.DB) { churn(t, db, r, 1000) })
	objects := filepath.Join(top, "objects")
	for range 2 {
		changeStore(t, dir, func(db *kv.DB) {
			churn(t, db, r, 100)
			require.NoError(t, db.Flush(t.Context()))
		})
		require.Equal(t, -1, killedHalfWay(t, "follow", dir, "stalling://"+objects).Status)
		require.Contains(t, process(t, "scan", "dir://"+objects).Stderr, "there is no store")
	}
	ok(t, "follow", dir, "dir://"+objects, "--until-now", "--slot", "other")
	followtest.RequireCopy(t, dir, "dir://"+objects)

	to := filepath.Join(top, "copy")
	ok(t, "create-slot", dir, "s")
	ok(t, "copy", dir, to)
	changeStore(t, dir, func(db *kv.DB) { churn(t, db, r, 100) })
	ok(t, "follow", dir, to, "--until-now", "--slot", "s")
	followtest.RequireCopy(t, dir, to)
}

// A copy that cannot go on says so, and stays as it is.
func TestWhatFollowRefuses(t *testing.T) {
	t.Parallel()
	top := t.TempDir()
	at := func(name string) string { return filepath.Join(top, name) }
	dir, r := at("store"), rand.New(rand.NewPCG(4, 4))
	changeStore(t, dir, func(db *kv.DB) { churn(t, db, r, 100) })
	refused := func(status int, what string, args ...string) {
		t.Helper()
		got, stdout, stderr := siftkv(t, append([]string{"follow"}, args...)...)
		require.Equal(t, status, got, "%s%s", stdout, stderr)
		require.Empty(t, stdout)
		require.Contains(t, stderr, what)
	}
	ok(t, "follow", dir, at("copy"), "--until-now", "--slot", "s")
	refused(statusUsage, "must go elsewhere", dir, dir)
	refused(statusUsage, "--skip-verify needs --until-now", dir, at("copy"), "--skip-verify")
	refused(statusError, "there is no store", "dir://"+at("objects"), at("x"))
	refused(statusError, "there is no store", at("nowhere"), at("x"))
	require.NoDirExists(t, at("x"))

	ok(t, "put", at("foreign"), "a", "1", "--create")
	before := ok(t, "scan", at("foreign"))
	refused(statusError, "find slot ", dir, at("foreign"))
	refused(statusError, "it holds a store that is no copy of it as of write", dir, at("foreign"), "--slot", "s")
	ok(t, "copy", dir, at("old"))
	changeStore(t, dir, func(db *kv.DB) { churn(t, db, r, 100) })
	ok(t, "create-slot", dir, "later")
	refused(statusError, "it holds a store that is no copy of it as of write", dir, at("old"), "--slot", "later")
	require.Equal(t, before, ok(t, "scan", at("foreign")))

	// The slot was dropped, or another consumer has acknowledged what the copy lacks.
	refused(statusError, "find slot ", dir, at("copy"), "--slot", "t")
	ok(t, "changes", dir, "--slot", "s", "--until-now")
	refused(statusError, "and the slot goes on after", dir, at("copy"), "--slot", "s")
	ok(t, "drop-slot", dir, "s")
	refused(statusError, "remove it, and run the command again", dir, at("copy"), "--slot", "s")
	ok(t, "drop-slot", dir, "later")
	ok(t, "create-slot", dir, "s") // of another history
	refused(statusError, "has another history by now", dir, at("copy"), "--slot", "s")

	// What else was written to a copy is found, and where.
	ok(t, "follow", dir, at("new"), "--until-now")
	ok(t, "put", at("new"), "key/x", "1")
	refused(statusDamage, "only "+at("new")+" has key key/x", dir, at("new"), "--until-now")
	ok(t, "delete", at("new"), "key/x")
	ok(t, "put", dir, "key/y", "2")
	ok(t, "follow", dir, at("new"), "--until-now")
	ok(t, "put", at("new"), "key/y", "3")
	refused(statusDamage, "they differ in key key/y", dir, at("new"), "--until-now")
	ok(t, "delete", at("new"), "key/y")
	refused(statusDamage, "only "+dir+" has key key/y", dir, at("new"), "--until-now")
}

// A store that began as a copy, and has as many writes of its own as the store has since, is none.
func TestAForkIsNoCopy(t *testing.T) {
	t.Parallel()
	top := t.TempDir()
	dir, fork := filepath.Join(top, "store"), filepath.Join(top, "fork")
	ok(t, "put", dir, "a", "1", "--create")
	ok(t, "create-slot", dir, "s")
	ok(t, "copy", dir, fork)
	ok(t, "put", fork, "b", "of the fork")
	ok(t, "put", dir, "b", "of the store")
	ok(t, "changes", dir, "--slot", "s", "--until-now")
	for _, flags := range [][]string{{"--until-now", "--skip-verify"}, nil, {"--until-now"}} {
		status, _, stderr := siftkv(t, append([]string{"follow", dir, fork, "--slot", "s"}, flags...)...)
		require.Equal(t, statusDamage, status, stderr)
		require.Contains(t, stderr, "they differ in key b")
	}
}

// Operands of a program's own merger cannot be written to a copy.
func TestFollowWithoutTheMerger(t *testing.T) {
	t.Parallel()
	top := t.TempDir()
	dir, to := filepath.Join(top, "store"), filepath.Join(top, "copy")
	open := func() *kv.DB {
		db, err := kv.Open(dir, &kv.Options{Merger: kv.NewMerger("own", func(_, _, newer []byte) ([]byte, error) {
			return newer, nil
		})})
		require.NoError(t, err)
		return db
	}
	require.NoError(t, open().Close())
	ok(t, "follow", dir, to, "--until-now")
	db := open()
	require.NoError(t, db.Merge([]byte("k"), []byte("v"), nil))
	require.NoError(t, db.Close())
	status, _, stderr := siftkv(t, "follow", dir, to, "--until-now")
	require.Equal(t, statusError, status)
	require.Contains(t, stderr, "is its program's own, which siftkv does not have")
}

// What no copy takes is no fault of the command line, and says what to do.
func TestFollowWithTooLargeChanges(t *testing.T) {
	t.Parallel()
	from, to := filepath.Join(t.TempDir(), "store"), "dir://"+filepath.Join(t.TempDir(), "objects")
	f := &following{followCommand: &followCommand{From: Location(from), To: Location(to)}}
	ok(t, "put", to, "a", "1", "--create")
	p := &program{openers: testOpeners}
	require.NoError(t, (&Dir{f.To}).with(t.Context(), p, &kv.Options{}, false, func(db *kv.DB) error {
		a := &applier{Batch: db.NewBatch(), ctx: t.Context(), db: db}
		err := f.refusal(7, a.SetReader([]byte("k"), kv.MaxValueSize+1, strings.NewReader("")))
		require.Equal(t, statusError, statusOf(err))
		require.ErrorContains(t, err, "write change 7 to "+to)
		require.ErrorContains(t, err, "the limit is 268435456; remove the copy")
		return nil
	}))
	require.NoError(t, f.refusal(7, nil))
}

// An interrupt ends a copy that waits for changes, and what it has is acknowledged.
func TestFollowIsInterrupted(t *testing.T) {
	t.Parallel()
	top := t.TempDir()
	dir, to := filepath.Join(top, "store"), filepath.Join(top, "copy")
	ok(t, "put", dir, "a", "1", "--create")
	ok(t, "follow", dir, to, "--until-now")
	ok(t, "put", dir, "b", "2")
	var stderr strings.Builder
	cmd := (&clitest.Process{Args: []string{"follow", dir, to}, Stderr: &stderr}).Command(t)
	require.NoError(t, cmd.Start())
	storetest.Until(func() bool { return ok(t, "scan", to, "--count", "--prefix", "b") == "1\n" })
	require.NoError(t, cmd.Process.Signal(os.Interrupt))
	_ = cmd.Wait()
	require.Equal(t, statusInterrupted, cmd.ProcessState.ExitCode(), stderr.String())
	require.Equal(t, "siftkv: interrupted\n", stderr.String())
	require.EqualValues(t, "2", fmt.Sprint(clitest.RequireJSON(t, ok(t, "slots", dir, "--json"))[0]["acked"]))
	followtest.RequireCopy(t, dir, to)
}
