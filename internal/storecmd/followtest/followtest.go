// Package followtest kills siftkv follow, and the program that writes to the store that it follows. It is for tests of
// programs that are siftkv, which clitest runs as processes.
package followtest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/internal/cli/clitest"
	"github.com/siftkv/siftkv/internal/storetest"
	"github.com/siftkv/siftkv/kv"
	"github.com/siftkv/siftkv/kv/objects"
	"github.com/siftkv/siftkv/objstore"
)

// PositionKey is the key under which a copy has its position, in hexadecimal.
const PositionKey = "ff736966746b762f666f6c6c6f77"

// writerOf is the variable of the environment that makes a process the writer of a store.
const writerOf = "FOLLOWTEST_WRITER"

// An Opener opens the object store that a URL names.
type Opener func(ctx context.Context, url string) (objstore.Store, error)

// Main is the program of a process that clitest has started: the writer of a store if a test wants that.
func Main(open Opener, program func()) {
	if at := os.Getenv(writerOf); at != "" {
		panic(write(at, open))
	}
	program()
}

// write is a program that has a store with slots s0 and s1 open, and writes to it until it is killed.
func write(at string, open Opener) error {
	var db *kv.DB
	var err error
	dir, o := at, &kv.Options{Merger: kv.Int64Add, MemtableSize: 64 << 10}
	if inObjects(at) {
		objectStore, err := open(context.Background(), at)
		if err != nil {
			return err
		}
		dir, o.Objects = "", &objects.Config{Store: objectStore}
	}
	storetest.Until(func() bool { // siftkv opens it now and then, for a moment
		db, err = kv.Open(dir, o)
		return !errors.Is(err, kv.ErrLocked)
	})
	for _, name := range []string{"s0", "s1"} {
		if err == nil && !slices.ContainsFunc(db.Slots(), func(s kv.SlotInfo) bool { return s.Name == name }) {
			var slot *kv.Slot
			var snapshot *kv.Snapshot
			if slot, snapshot, err = db.CreateSlot(context.Background(), name); err == nil {
				err = errors.Join(slot.Close(), snapshot.Close())
			}
		}
	}
	fmt.Println(writing)
	r := rand.New(rand.NewPCG(rand.Uint64(), 5))
	for err == nil {
		if err = CommitAny(db, r); err == nil && inObjects(at) {
			time.Sleep(objectPause) // followers read as many objects as it writes
			if r.IntN(2) == 0 {
				err = db.Sync(context.Background())
			}
		}
	}
	return err
}

const (
	writing     = "writing"
	objectPause = 10 * time.Millisecond
)

func inObjects(store string) bool { return strings.Contains(store, "://") }

// CommitAny makes a commit of some kind, or flushes. Operands that reach a copy twice make another sum there.
func CommitAny(db *kv.DB, r *rand.Rand) error {
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

// beginWriter starts a writer, and returns when it writes.
func beginWriter(t *testing.T, at string) *exec.Cmd {
	t.Helper()
	cmd := (&clitest.Process{Stderr: os.Stderr}).Command(t)
	cmd.Env = append(cmd.Env, writerOf+"="+at)
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	_, err = io.ReadFull(out, make([]byte, len(writing)))
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

// BesideAWriter has two copies follow a new store while a program writes to it, for some rounds. Both copies, and now
// and then the program, are killed in each, when one of the copies has acknowledged more than before. In the end the
// copies have what the store has.
func BesideAWriter(t *testing.T, from string, copies [2]string, rounds int) {
	t.Helper()
	writer := beginWriter(t, from)
	slot := func(i int) string { return "s" + strconv.Itoa(i) }
	acked := func(i int) string {
		return fmt.Sprint(clitest.RequireJSON(t, clitest.RunWell(t, "slots", from, "--json"))[i]["acked"])
	}
	comesFurther := func(i int) {
		before := acked(i)
		storetest.Until(func() bool { return acked(i) != before })
	}
	for round := range rounds {
		var followers []*exec.Cmd
		for i, to := range copies {
			args := []string{"follow", from, to, "--slot", slot(i)}
			followers = append(followers, (&clitest.Process{Args: args, Stderr: &strings.Builder{}}).Command(t))
			require.NoError(t, followers[i].Start())
		}
		if round%3 == min(1, rounds-1) {
			comesFurther(round % len(copies))
			kill(t, writer)
			writer = beginWriter(t, from)
		}
		for i, follower := range followers {
			if i == round%len(copies) || round == rounds-1 { // the other one is wherever it is
				comesFurther(i)
			}
			kill(t, follower)
		}
	}
	for i, to := range copies { // with the writer
		said := clitest.RunWell(t, "follow", from, to, "--slot", slot(i), "--until-now")
		require.Contains(t, said, "; verified: ")
	}
	kill(t, writer)
	if inObjects(from) { // a change is what is flushed
		clitest.RunWell(t, "compact", from)
	}
	for i, to := range copies {
		clitest.RunWell(t, "follow", from, to, "--slot", slot(i), "--until-now")
		RequireCopy(t, from, to)
	}
}

// RequireCopy asserts that a copy has all of a store, and else its position alone.
func RequireCopy(t *testing.T, from, to string) {
	t.Helper()
	all := clitest.RunWell(t, "scan", from, "--key-format", "hex")
	var rest, positions []string
	for line := range strings.Lines(clitest.RunWell(t, "scan", to, "--key-format", "hex")) {
		if strings.HasPrefix(line, PositionKey+"\t") {
			positions = append(positions, line)
		} else {
			rest = append(rest, line)
		}
	}
	require.Len(t, positions, 1)
	require.True(t, all == strings.Join(rest, ""), "%s is as %s", to, from)
}
