package storecmd

import (
	"bufio"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/internal/cli/clitest"
	"github.com/siftkv/siftkv/internal/storecmd/followtest"
	"github.com/siftkv/siftkv/internal/storetest"
	"github.com/siftkv/siftkv/kv"
	"github.com/siftkv/siftkv/kv/objects"
	"github.com/siftkv/siftkv/objstore"
)

// openSlots opens a store at dir:// whose operands are numbers, and makes slots.
func openSlots(t *testing.T, url string, names ...string) *kv.DB {
	t.Helper()
	s, err := objstore.OpenDir(strings.TrimPrefix(url, "dir://"))
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	db, err := kv.Open("", &kv.Options{Merger: kv.Int64Add, MemtableSize: 64 << 10,
		Objects: &objects.Config{Store: s}})
	require.NoError(t, err)
	for _, name := range names {
		slot, snapshot, err := db.CreateSlot(t.Context(), name)
		require.NoError(t, errors.Join(err, snapshot.Close(), slot.Close()))
	}
	return db
}

// Changes of an object store are those that are flushed. The writer goes on, and learns what was acknowledged.
func TestChangesOfAnObjectStore(t *testing.T) {
	t.Parallel()
	url := "dir://" + filepath.Join(t.TempDir(), "objects")
	db := openSlots(t, url, "s")
	set := func(key string) { require.NoError(t, db.Set([]byte(key), nil, nil)) }
	set("a")
	require.NoError(t, db.Flush(t.Context()))
	set("b")
	changes := func(flags ...string) []string {
		output := ok(t, append([]string{"changes", url, "--slot", "s", "--until-now"}, flags...)...)
		if output == "" {
			return nil
		}
		return commits(t, output)
	}
	require.Equal(t, []string{"1"}, changes("--peek"))
	require.Equal(t, []string{"1"}, changes())
	require.Empty(t, changes())
	slots := func() string {
		row := clitest.RequireJSON(t, ok(t, "slots", url, "--json"))[0]
		return fmt.Sprintf("%v %v %v %v", row["slot"], row["acked"], row["behind"], row["lost"])
	}
	require.Equal(t, "s 0 1 ", slots(), "the writer has not learned of it")
	require.NoError(t, db.Flush(t.Context()))
	require.Equal(t, "s 1 1 ", slots())
	require.Equal(t, []string{"2"}, changes())
	set("c")
	require.NoError(t, db.Flush(t.Context()))
	require.EqualValues(t, 2, db.Slots()[0].Acked)

	for line, want := range map[string]string{
		"changes URL --slot none": "DB.CreateSlot", "follow URL DIR --slot none": "DB.CreateSlot",
		"create-slot URL t": "DB.CreateSlot", "drop-slot URL s": "DB.DropSlot",
	} {
		args := strings.NewReplacer("URL", url, "DIR", filepath.Join(t.TempDir(), "copy")).Replace(line)
		status, stdout, stderr := siftkv(t, strings.Fields(args)...)
		require.NotZero(t, status, line)
		require.Empty(t, stdout, line)
		require.Contains(t, stderr, want, line)
	}
	set("d")
	require.NoError(t, db.Close(), "it is not fenced")
}

// A copy of an object store has what is flushed, whatever its writer does meanwhile, and is compared with that.
func TestFollowAnObjectStore(t *testing.T) {
	t.Parallel()
	top := t.TempDir()
	url := "dir://" + filepath.Join(top, "store")
	db := openSlots(t, url, "s0", "s1")
	churn(t, db, rand.New(rand.NewPCG(1, 1)), 100)
	require.NoError(t, db.Flush(t.Context()))
	for round := range 3 {
		for i, to := range []string{filepath.Join(top, "copy"), "dir://" + filepath.Join(top, "objects")} {
			args := []string{"follow", url, to, "--until-now", "--slot", []string{"s0", "s1"}[i]}
			var ended atomic.Bool
			var writing sync.WaitGroup
			writing.Go(func() {
				r := rand.New(rand.NewPCG(uint64(round), uint64(i)))
				for n := 0; n < 100 || !ended.Load(); n++ {
					churn(t, db, r, 1)
				}
			})
			status, stdout, stderr := siftkv(t, args...)
			ended.Store(true)
			writing.Wait()
			require.Zero(t, status, stderr)
			require.Contains(t, stdout, "; verified: ")
			require.NoError(t, errors.Join(db.Set([]byte("last"), nil, nil), db.Flush(t.Context())))
			require.Contains(t, ok(t, args...), "; verified: ")
			followtest.RequireCopy(t, url, to)
		}
	}
	require.NoError(t, db.Close(), "it is not fenced")
	require.Len(t, clitest.RequireJSON(t, ok(t, "slots", url, "--json")), 2)
}

// A copy of what its writer has not flushed waits for that, and says so. It goes on with the writer's first operands.
func TestFollowAnIdleObjectStore(t *testing.T) {
	t.Parallel()
	top := t.TempDir()
	url, to := "dir://"+filepath.Join(top, "store"), "dir://"+filepath.Join(top, "copy")
	db := openSlots(t, url, "s")
	require.NoError(t, db.Set([]byte("key"), nil, nil))
	cmd := (&clitest.Process{Args: []string{"follow", url, to, "--slot", "s"}}).Command(t)
	stderr, err := cmd.StderrPipe()
	require.NoError(t, errors.Join(err, cmd.Start()))
	said, err := bufio.NewReader(stderr).ReadString('\n')
	require.NoError(t, err)
	require.Equal(t, fmt.Sprintf("siftkv: %s has writes up to 1, and %s is flushed up to 0: waiting for its program "+
		"to flush, with DB.Flush or when a memtable is full\n", to, url), said)
	require.NoError(t, db.Flush(t.Context()))
	gets := func(prefix string) {
		storetest.Until(func() bool {
			status, stdout, _ := siftkv(t, "scan", to, "--count", "--prefix", prefix)
			return status == statusOK && stdout == "1\n"
		})
	}
	gets("key")
	require.NoError(t, errors.Join(db.Merge([]byte("count"), kv.AppendInt64(nil, 1), nil), db.Flush(t.Context())))
	gets("count")
	require.NoError(t, cmd.Process.Signal(os.Interrupt))
	_ = cmd.Wait()
	require.Equal(t, statusInterrupted, cmd.ProcessState.ExitCode())
	require.NoError(t, db.Close())
	followtest.RequireCopy(t, url, to)
}
