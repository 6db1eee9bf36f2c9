package storecmd

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/internal/cli/clitest"
	"github.com/siftkv/siftkv/internal/scale"
	"github.com/siftkv/siftkv/internal/storetest"
	"github.com/siftkv/siftkv/kv"
	"github.com/siftkv/siftkv/sstable"
)

// churn makes commits of every kind.
func churn(t *testing.T, db *kv.DB, r *rand.Rand, commits int) {
	t.Helper()
	for range commits {
		storetest.Fine(t, commitAny(db, r))
	}
}

// commitAny makes a commit of some kind, or flushes.
func commitAny(db *kv.DB, r *rand.Rand) error {
	key := func() []byte { return fmt.Appendf(nil, "key/%03d", r.IntN(500)) }
	switch r.IntN(20) {
	case 0:
		lo := key()
		return db.DeleteRange(lo, append(lo, 0xff), kv.NoSync)
	case 1:
		return db.Delete(key(), kv.NoSync)
	case 2:
		end := time.Now().Add(time.Duration(r.IntN(2)*2-1) * time.Hour)
		return db.SetUntil(key(), key(), end, kv.NoSync)
	case 3:
		return db.Set(key(), bytes.Repeat(key(), r.IntN(1000)), kv.NoSync)
	case 4, 5, 6:
		b := db.NewBatch()
		for range r.IntN(20) + 1 {
			count, more := fmt.Appendf(nil, "count/%d", r.IntN(50)), kv.AppendInt64(nil, int64(r.IntN(100)))
			if err := b.Merge(count, more); err != nil {
				return err
			}
		}
		return errors.Join(b.Set(key(), key()), b.Commit(kv.NoSync))
	case 7:
		if r.IntN(10) == 0 {
			return db.Flush(context.Background())
		}
		return nil
	case 8:
		return db.Set(key(), key(), kv.Sync)
	default:
		return db.Set(key(), key(), kv.Async)
	}
}

// changeStore opens a store, and calls a function.
func changeStore(t *testing.T, dir string, f func(db *kv.DB)) {
	t.Helper()
	db := openCounting(t, dir)
	f(db)
	require.NoError(t, db.Close())
}

// requireCopy asserts that a copy has all of a store, and else its position alone.
func requireCopy(t *testing.T, from, to string) {
	t.Helper()
	all := ok(t, "scan", from, "--key-format", "hex")
	var rest, positions []string
	for line := range strings.Lines(ok(t, "scan", to, "--key-format", "hex")) {
		if strings.HasPrefix(line, fmt.Sprintf("%x\t", positionKey)) {
			positions = append(positions, line)
		} else {
			rest = append(rest, line)
		}
	}
	require.Len(t, positions, 1)
	require.True(t, all == strings.Join(rest, ""), "%s is as %s", to, from)
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
			requireCopy(t, dir, to)
		}
	}
	// The copies go on with their slots, each once.
	changeStore(t, dir, func(db *kv.DB) { churn(t, db, r, 100) })
	moved := filepath.Join(top, "moved")
	require.NoError(t, os.Rename(copies[0], moved))
	ok(t, "follow", dir, moved, "--until-now")
	requireCopy(t, dir, moved)
	require.Len(t, clitest.RequireJSON(t, ok(t, "slots", dir, "--json")), 2)
	report := clitest.RequireJSON(t, ok(t, "follow", dir, copies[1], "--until-now", "--json"))[0]
	require.Equal(t, true, report["verified"])
	require.Contains(t, ok(t, "follow", dir, moved, "--until-now", "--skip-verify"), ", after 0 changes\n")

	// A copy can be followed.
	third := filepath.Join(top, "third")
	for range 3 {
		ok(t, "follow", moved, third, "--until-now")
		requireCopy(t, dir, third)
		changeStore(t, dir, func(db *kv.DB) { churn(t, db, r, 100) })
		ok(t, "follow", dir, moved, "--until-now")
	}
}

// killed runs a command and kills it after a while, and reports whether it had ended.
func killed(t *testing.T, after time.Duration, args ...string) {
	t.Helper()
	var stderr strings.Builder
	cmd := (&clitest.Process{Args: args, Stderr: &stderr}).Command(t)
	require.NoError(t, cmd.Start())
	time.Sleep(after)
	_ = cmd.Process.Kill()
	_ = cmd.Wait()
	require.Contains(t, []int{-1, 0}, cmd.ProcessState.ExitCode(), "%v: %s", args, stderr.String())
}

// A copy has each change once, wherever the program that makes it is killed: operands that came twice would be seen.
func TestFollowIsKilled(t *testing.T) {
	t.Parallel()
	top := t.TempDir()
	dir, r := filepath.Join(top, "store"), rand.New(rand.NewPCG(2, rand.Uint64()))
	copies := []string{filepath.Join(top, "copy"), "dir://" + filepath.Join(top, "objects")}
	for round := range scale.Count(3, 100) {
		changeStore(t, dir, func(db *kv.DB) { churn(t, db, r, 1000) })
		for _, to := range copies {
			for range 3 {
				killed(t, time.Duration(r.IntN(300))*time.Millisecond, "follow", dir, to, "--until-now")
			}
			if round%3 == 2 {
				works(t, "follow", dir, to, "--until-now")
				requireCopy(t, dir, to)
			}
		}
	}
}

// keepWriting is a program that has a store with slots s0 and s1 open, and writes to it.
func keepWriting(dir string) error {
	var db *kv.DB
	var err error
	for { // siftkv opens it now and then, for a moment
		db, err = kv.Open(dir, &kv.Options{Merger: kv.Int64Add, MemtableSize: 64 << 10})
		if !errors.Is(err, kv.ErrLocked) {
			break
		}
		time.Sleep(time.Millisecond)
	}
	for _, name := range []string{"s0", "s1"} {
		if err == nil && !slices.ContainsFunc(db.Slots(), func(s kv.SlotInfo) bool { return s.Name == name }) {
			var slot *kv.Slot
			var snapshot *kv.Snapshot
			if slot, snapshot, err = db.CreateSlot(context.Background(), name); err == nil {
				err = errors.Join(slot.Close(), snapshot.Close())
			}
		}
	}
	fmt.Println("writing")
	r := rand.New(rand.NewPCG(rand.Uint64(), 5))
	for err == nil {
		err = commitAny(db, r)
	}
	return err
}

// beginWriter starts a writer, and returns when it writes.
func beginWriter(t *testing.T, dir string) *exec.Cmd {
	t.Helper()
	cmd := (&clitest.Process{Stderr: os.Stderr}).Command(t)
	cmd.Env = append(cmd.Env, "STORECMD_TEST_WRITER="+dir)
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	_, err = io.ReadFull(out, make([]byte, len("writing\n")))
	require.NoError(t, err)
	return cmd
}

// kill ends a process that must not have ended by itself.
func kill(t *testing.T, cmd *exec.Cmd) {
	t.Helper()
	require.NoError(t, cmd.Process.Kill())
	_ = cmd.Wait()
	require.Equal(t, -1, cmd.ProcessState.ExitCode(), "%v: %s", cmd.Args, cmd.Stderr)
}

// Copies follow a store while a program writes to it, and each is killed now and then, and the program too.
func TestFollowBesideAWriter(t *testing.T) {
	t.Parallel()
	top := t.TempDir()
	dir := filepath.Join(top, "store")
	copies := []string{filepath.Join(top, "copy"), "dir://" + filepath.Join(top, "objects")}
	writer := beginWriter(t, dir)
	slot := func(i int) string { return "s" + strconv.Itoa(i) }
	acked := func(i int) string {
		return fmt.Sprint(clitest.RequireJSON(t, ok(t, "slots", dir, "--json"))[i]["acked"])
	}
	rounds := scale.Count(3, 100)
	for round := range rounds {
		var followers []*exec.Cmd
		for i, to := range copies {
			args := []string{"follow", dir, to, "--slot", slot(i)}
			followers = append(followers, (&clitest.Process{Args: args, Stderr: &strings.Builder{}}).Command(t))
			require.NoError(t, followers[i].Start())
		}
		time.Sleep(time.Duration(rand.IntN(1000)) * time.Millisecond)
		if round%3 == 1 {
			kill(t, writer)
			writer = beginWriter(t, dir)
		}
		for i, follower := range followers {
			if round == rounds-1 { // it keeps up with the writer
				before := acked(i)
				storetest.Until(func() bool { return acked(i) != before })
			}
			kill(t, follower)
		}
	}
	for i, to := range copies { // with the writer
		said := works(t, "follow", dir, to, "--slot", slot(i), "--until-now")
		require.Contains(t, said, "; verified: ")
	}
	kill(t, writer)
	for i, to := range copies {
		works(t, "follow", dir, to, "--slot", slot(i), "--until-now")
		requireCopy(t, dir, to)
	}
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
	requireCopy(t, dir, "dir://"+objects)

	to := filepath.Join(top, "copy")
	ok(t, "create-slot", dir, "s")
	ok(t, "copy", dir, to)
	changeStore(t, dir, func(db *kv.DB) { churn(t, db, r, 100) })
	ok(t, "follow", dir, to, "--until-now", "--slot", "s")
	requireCopy(t, dir, to)
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
	refused(statusUsage, "the same place", dir, dir)
	refused(statusUsage, "the stores there have no slots", "dir://"+at("objects"), at("x"))
	refused(statusError, "there is no store", at("nowhere"), at("x"))
	require.NoDirExists(t, at("x"))

	ok(t, "put", at("foreign"), "a", "1", "--create")
	before := ok(t, "scan", at("foreign"))
	refused(statusError, "no such slot", dir, at("foreign"))
	refused(statusError, "it holds a store that is no copy of it as of write", dir, at("foreign"), "--slot", "s")
	ok(t, "copy", dir, at("old"))
	changeStore(t, dir, func(db *kv.DB) { churn(t, db, r, 100) })
	ok(t, "create-slot", dir, "later")
	refused(statusError, "it holds a store that is no copy of it as of write", dir, at("old"), "--slot", "later")
	require.Equal(t, before, ok(t, "scan", at("foreign")))

	// The slot was dropped, or another consumer has acknowledged what the copy lacks.
	refused(statusError, "no such slot", dir, at("copy"), "--slot", "t")
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
	requireCopy(t, dir, to)
}
