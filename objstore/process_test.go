package objstore_test

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/internal/scale"
	"github.com/siftkv/siftkv/objstore"
)

// childEnv makes the test program do a child's work instead of testing: "create DIR NAME" or "put DIR KEY".
const childEnv = "OBJSTORE_TEST_CHILD"

func TestMain(m *testing.M) {
	work := strings.Fields(os.Getenv(childEnv))
	if len(work) == 0 {
		os.Exit(m.Run())
	}
	s, err := objstore.OpenDir(work[1])
	if err == nil && work[0] == "create" {
		err = createAll(s, work[2])
	} else if err == nil {
		err = s.Put(context.Background(), work[2], stuckReader{}, 64<<20)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

var raceRounds = scale.Count(40, 200)

// createAll creates one key after the other. It says which it won, and waits for the other process after each.
func createAll(s objstore.Store, name string) error {
	in := bufio.NewReader(os.Stdin)
	for round := range raceRounds {
		if _, err := in.ReadString('\n'); err != nil {
			return err
		}
		err := s.PutIfAbsent(context.Background(), raceKey(round), bytes.Repeat([]byte(name), 5000))
		switch {
		case err == nil:
			fmt.Println("won")
		case errors.Is(err, objstore.ErrExists):
			fmt.Println("lost")
		default:
			return err
		}
	}
	return nil
}

func raceKey(round int) string { return fmt.Sprintf("manifest/%020d", round) }

// A stuckReader gives a part of what is asked for, says so, and then nothing more.
type stuckReader struct{}

func (stuckReader) ReadAt(p []byte, off int64) (int, error) {
	if off < 32<<20 {
		return len(p), nil
	}
	fmt.Println("stuck")
	select {}
}

// A child is another process with a client of a directory.
type child struct {
	cmd *exec.Cmd
	in  io.Writer
	out *bufio.Reader
}

func startChild(t *testing.T, work ...string) child {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), childEnv+"="+strings.Join(work, " "))
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	require.NoError(t, err)
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	return child{cmd, in, bufio.NewReader(out)}
}

func (c child) line(t *testing.T) string {
	t.Helper()
	line, err := c.out.ReadString('\n')
	require.NoError(t, err)
	return strings.TrimSpace(line)
}

// TestProcessesRace has two processes create the same keys at the same time.
func TestProcessesRace(t *testing.T) {
	dir := t.TempDir()
	s := openDir(t, dir)
	names := []string{"a", "b"}
	var children []child
	for _, name := range names {
		children = append(children, startChild(t, "create", dir, name))
	}
	for round := range raceRounds {
		for _, c := range children {
			_, err := io.WriteString(c.in, "\n")
			require.NoError(t, err)
		}
		var winners []string
		for i, c := range children {
			if c.line(t) == "won" {
				winners = append(winners, names[i])
			}
		}
		require.Len(t, winners, 1, "winners of round %d", round)
		got, err := objstore.ReadAll(t.Context(), s, raceKey(round), 5000)
		require.NoError(t, err)
		require.Equal(t, strings.Repeat(winners[0], 5000), string(got))
	}
	for _, c := range children {
		require.NoError(t, c.cmd.Wait())
	}
}

// TestKilledPut kills a process that has written half of an object.
func TestKilledPut(t *testing.T) {
	dir := t.TempDir()
	s, ctx := openDir(t, dir), t.Context()
	c := startChild(t, "put", dir, "sst/half")
	require.Equal(t, "stuck", c.line(t))
	absent := func() {
		for o, err := range s.List(ctx, "", "") {
			require.NoError(t, err)
			require.Fail(t, "there is an object", o.Key)
		}
		_, err := s.GetRange(ctx, "sst/half", 0, make([]byte, 1))
		require.ErrorIs(t, err, objstore.ErrNotExist)
	}
	absent()
	require.NoError(t, c.cmd.Process.Kill())
	require.Error(t, c.cmd.Wait())
	absent()
	require.NoError(t, s.PutIfAbsent(ctx, "sst/half", []byte("whole")))
	got, err := objstore.ReadAll(ctx, s, "sst/half", 5)
	require.NoError(t, err)
	require.Equal(t, "whole", string(got))
}
