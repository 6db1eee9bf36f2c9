package kills

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/internal/scale"
	"github.com/siftkv/siftkv/internal/storetest"
	"github.com/siftkv/siftkv/internal/storetest/stores"
	"github.com/siftkv/siftkv/kv"
)

// followRound is a round by whose clock everything has expired that may.
const followRound = 1 << 20

func init() { children["follow"] = followUntilKilled }

// followUntilKilled is the child that reads beside a writer: it refreshes its view
// and checks it, until it is killed. It prints a line for every view.
func followUntilKilled(dir string) error {
	rng := rand.New(rand.NewPCG(uint64(os.Getpid()), 62))
	var last [storetest.NumWriters]int
	for opened := false; ; {
		o := stores.RandomOptions(rng)
		o.Clock, o.Merger = storetest.NumberedClock(followRound), nil // the manifest names it
		db, err := kv.OpenReadOnly(dir, o)
		if !opened && (errors.Is(err, kv.ErrNotExist) || errors.Is(err, fs.ErrNotExist)) {
			continue // the writer is not that far
		}
		if err != nil {
			return err
		}
		opened = true
		for range 50 {
			if err := checkView(db, &last); err != nil {
				return err
			}
			fmt.Println(last[0] + last[1] + last[2] + last[3])
			if err := db.Refresh(context.Background()); err != nil {
				return err
			}
		}
		if err := db.Close(); err != nil {
			return err
		}
	}
}

// checkView holds a view against what the writers do: each one's writes are a prefix
// that does not get shorter, and no batch is there in part.
func checkView(db *kv.DB, last *[storetest.NumWriters]int) error {
	for w := range storetest.NumWriters {
		n, err := storetest.LastNumbered(db.Get, w)
		if err != nil {
			return err
		}
		if n < last[w] {
			return fmt.Errorf("writer %d was at %d, and is at %d now", w, last[w], n)
		}
		last[w] = n
	}
	want := storetest.Numbered(last[:], followRound, nil)
	it, err := db.NewIter(nil)
	if err != nil {
		return err
	}
	keys := want.Keys()
	for ok := it.First(); ok; ok = it.Next() {
		if len(keys) == 0 || keys[0] != string(it.Key()) || want[keys[0]] != string(it.Value()) {
			return errors.Join(fmt.Errorf("%q = %.20q, want one of %.1q", it.Key(), it.Value(), keys), it.Close())
		}
		keys = keys[1:]
	}
	if err := it.Close(); err != nil {
		return err
	}
	if len(keys) > 0 {
		return fmt.Errorf("%q and what follows is missing", keys[0])
	}
	return nil
}

// A followRun has a writer and readers in processes of their own.
type followRun struct {
	t     *testing.T
	dir   string
	views int
}

// A childRun is a child whose lines are read.
type childRun struct {
	cmd   *exec.Cmd
	lines *bufio.Scanner
	last  int
}

func (r *followRun) start(mode string, seed int) *childRun {
	c := &childRun{cmd: storetest.Child(r.t, mode, r.dir, seed)}
	c.cmd.Stderr = os.Stderr // it has something to say if it fails
	stdout, err := c.cmd.StdoutPipe()
	require.NoError(r.t, err)
	c.lines = bufio.NewScanner(stdout)
	require.NoError(r.t, c.cmd.Start())
	return c
}

// read takes up to n lines.
func (c *childRun) read(n int) (lines int) {
	for lines < n && c.lines.Scan() {
		lines++
		c.last, _ = strconv.Atoi(c.lines.Text())
	}
	return lines
}

// kill kills the child, which must be at work still.
func (r *followRun) kill(c *childRun) {
	require.NoError(r.t, c.cmd.Process.Kill())
	for c.lines.Scan() {
	}
	require.Error(r.t, c.cmd.Wait())
	require.False(r.t, c.cmd.ProcessState.Exited(), "the child failed")
}

// TestReadersBesideAWriter kills a writer and readers, in turn, and starts them again:
// every view that a reader gets is a prefix of every writer's history.
func TestReadersBesideAWriter(t *testing.T) {
	t.Parallel() // it mostly waits for children
	r := &followRun{t: t, dir: filepath.Join(t.TempDir(), "store")}
	rng := rand.New(rand.NewPCG(7, 62))
	reader := r.start("follow", 0)
	for round := range max(scale.Count(4, 12), 3) {
		writer := r.start("write", round)
		go func() {
			for writer.lines.Scan() { // it does not wait for us
			}
		}()
		views := 5 + rng.IntN(40)
		require.Equal(t, views, reader.read(views), "round %d: the reader failed", round)
		r.views += views
		if round%3 == 2 {
			r.kill(reader)
			reader = r.start("follow", round)
			require.Equal(t, 1, reader.read(1), "round %d: the reader failed", round)
		}
		require.NoError(t, writer.cmd.Process.Kill())
		require.Error(t, writer.cmd.Wait())
		require.False(t, writer.cmd.ProcessState.Exited(), "round %d: the writer failed", round)
	}
	r.kill(reader)
	db := stores.OpenDir(t, r.dir, nil)
	storetest.RequireOnlyLiveFiles(t, db)
	require.Empty(t, storetest.RegisteredReaders(t, r.dir), "readers that were killed leave nothing behind")
	require.NoError(t, db.Close())
	t.Logf("%d views", r.views)
}
