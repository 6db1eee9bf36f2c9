package objects

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"os/exec"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/internal/scale"
	"github.com/siftkv/siftkv/internal/storetest"
	"github.com/siftkv/siftkv/internal/storetest/stores"
	"github.com/siftkv/siftkv/kv"
	"github.com/siftkv/siftkv/kv/objects"
	"github.com/siftkv/siftkv/objstore"
)

// writeToObjects is the child that takes over the store in an object store in a directory. It says how
// many writes it found, then each write that was acknowledged with Sync, and at last that it was fenced.
func writeToObjects(dir, local string, localLog bool) error {
	s, err := objstore.OpenDir(dir)
	if err != nil {
		return err
	}
	rng := rand.New(rand.NewPCG(uint64(storetest.EnvInt(storetest.ChildSeedEnv, 0)), 14))
	fmt.Println("opening")
	o := objectsOptions(rng, s)
	configOf(o).LocalLog = localLog
	db, err := kv.Open(local, o)
	if err != nil {
		return err
	}
	w := &objectsWriter{rng: rng, db: db}
	if w.n, err = storetest.LastNumbered(db.Get, 0); err != nil {
		return err
	}
	fmt.Println("found", w.n)
	for err == nil {
		before := w.synced
		if err = w.try(); w.synced > before {
			fmt.Println("synced", w.synced)
		}
	}
	if !errors.Is(err, objects.ErrFenced) {
		return err
	}
	if err := stores.CommitNumbered(db, 0, w.n, kv.Sync); !errors.Is(err, objects.ErrFenced) {
		return fmt.Errorf("a write after the store was taken over: %w", err)
	}
	if err := db.Close(); !errors.Is(err, objects.ErrFenced) {
		return fmt.Errorf("Close of a store that was taken over: %w", err)
	}
	fmt.Println("fenced", w.n)
	return nil
}

// An objectsChild is a process that writes.
type objectsChild struct {
	t      *testing.T
	cmd    *exec.Cmd
	lines  *bufio.Scanner
	stderr bytes.Buffer
	found  int
	synced int
	fenced int // the last write that it began, which failed
}

func startObjectsChild(t *testing.T, dir string, seed int) *objectsChild {
	return startObjectsChildOf(t, "objects", dir, seed)
}

func startObjectsChildOf(t *testing.T, mode, dir string, seed int) *objectsChild {
	c := &objectsChild{t: t, cmd: storetest.Child(t, mode, dir, seed)}
	c.cmd.Stderr = &c.stderr
	stdout, err := c.cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, c.cmd.Start())
	c.lines = bufio.NewScanner(stdout)
	require.True(t, c.lines.Scan(), "it begins to open the store")
	return c
}

// read reads a line. It returns false at the end.
func (c *objectsChild) read() bool {
	if !c.lines.Scan() {
		return false
	}
	var n int
	what, number, _ := strings.Cut(c.lines.Text(), " ")
	_, err := fmt.Sscan(number, &n)
	require.NoError(c.t, err, c.lines.Text())
	switch what {
	case "found":
		c.found, c.synced = n, n
	case "synced":
		require.Greater(c.t, n, c.synced)
		c.synced = n
	case "fenced":
		c.fenced = n
	default:
		c.t.Fatal(what)
	}
	return true
}

// TestTakeOverFromAnotherProcess has processes write to one store after the other, none of which leaves anything on
// a local disk. Each is killed at some moment, or finds that it was fenced when its successor is at work.
// LONG sets how often: see internal/scale.
func TestTakeOverFromAnotherProcess(t *testing.T) {
	t.Parallel() // it mostly waits
	dir := t.TempDir()
	s, err := objstore.OpenDir(dir)
	require.NoError(t, err)
	rng := rand.New(rand.NewPCG(14, 500))
	var before *kv.DB // which the next one takes the store over from
	rounds, writes, killed := scale.Fewer(max(scale.Count(4, 12), 4), 2), 0, 0
	for round := range rounds {
		c := startObjectsChild(t, dir, round)
		limit := writes + rng.IntN(60)
		for limit > writes && c.synced < limit && c.read() {
		}
		kill := round%2 == 0
		if kill {
			killed++
			require.NoError(t, c.cmd.Process.Kill())
			for c.read() {
			}
			require.Error(t, c.cmd.Wait())
			require.False(t, c.cmd.ProcessState.Exited(), "round %d: the child failed: %s", round, c.stderr.String())
		} else if c.found == 0 && c.synced == 0 {
			require.True(t, c.read(), "round %d: %s", round, c.stderr.String())
		}

		w := takeOver(t, s, uint64(round), max(writes, c.synced), 1<<30)
		found := w.n
		if before != nil {
			require.ErrorIs(t, before.Close(), objects.ErrFenced, "round %d", round)
			before = nil
		}
		for range rng.IntN(20) {
			require.NoError(t, w.try(), "round %d", round)
		}
		if !kill {
			for c.read() {
			}
			require.NoError(t, c.cmd.Wait(), "round %d: %s", round, c.stderr.String())
			require.LessOrEqual(t, c.synced, found, "round %d: acknowledged, and not there", round)
			require.LessOrEqual(t, found, c.fenced, "round %d: no writer wrote this", round)
		}
		if rng.IntN(3) == 0 {
			w.write(1)
			require.NoError(t, w.db.Close())
			writes = w.n
			continue
		}
		require.NoError(t, stores.CommitNumbered(w.db, 0, w.n+1, kv.Sync))
		writes, before = w.n+1, w.db // it stays open
	}
	if before != nil {
		require.NoError(t, before.Close())
	}
	w := takeOver(t, s, 99, writes, writes)
	w.write(5)
	requireOnlyLiveObjects(t, s, w)
	require.NoError(t, w.db.Close())
	require.Positive(t, killed)
	t.Logf("%d rounds, %d killed, %d writes", rounds, killed, writes)
}
