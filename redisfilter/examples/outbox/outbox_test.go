package main

import (
	"context"
	"fmt"
	"io"
	"log"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/internal/scale"
	"github.com/siftkv/siftkv/kv"
	"github.com/siftkv/siftkv/redisfilter/internal/redistest"
)

// child makes the test binary, with a directory and an address, the program, or the process that is killed.
const child = "OUTBOX_TEST_CHILD"

func TestMain(m *testing.M) {
	switch os.Getenv(child) {
	case "":
		os.Exit(m.Run())
	case "program":
		main()
	default:
		log.Fatal(orderAndPublish(os.Args[1], os.Args[2]))
	}
}

func command(t *testing.T, as, dir string, server *redistest.Server) *exec.Cmd {
	t.Helper()
	self, err := os.Executable()
	require.NoError(t, err)
	cmd := exec.CommandContext(t.Context(), self, dir, server.Addr)
	cmd.Env = append(os.Environ(), child+"="+as)
	cmd.Stderr = t.Output()
	return cmd
}

// orderAndPublish places orders, and publishes them, for as long as it lives and Redis does. It prints o for each
// order, and p when the stream has it.
func orderAndPublish(dir, addr string) error {
	db, err := kv.Open(dir, &kv.Options{MemtableSize: 64 << 10})
	if err != nil {
		return err
	}
	slot, err := openOutbox(context.Background(), db)
	if err != nil {
		return err
	}
	ordered := make(chan struct{}, 20)
	go func() {
		for ; ; ordered <- struct{}{} {
			if err := order(db, "bread"); err != nil {
				log.Fatal(err)
			}
			fmt.Print("o")
		}
	}()
	client := redis.NewClient(redistest.Patient(&redis.UniversalOptions{Addrs: []string{addr}}).Simple())
	for err == nil {
		<-ordered
		err = publish(context.Background(), db, slot, client)
		fmt.Print("p")
	}
	return err
}

// The publisher is killed at any moment, and so is Redis. In the end the stream has each order's events once, in order.
func TestEventsAreInTheStreamOnce(t *testing.T) {
	t.Parallel()
	redistest.RequireReal(t)
	server := redistest.Start(t, "--appendonly", "yes", "--appendfsync", "always")
	dir := t.TempDir()
	r := rand.New(rand.NewPCG(1, 0))
	letter := make([]byte, 1)
	for round := range scale.Count(8, 100) {
		cmd := command(t, "orders", dir, server)
		out, err := cmd.StdoutPipe()
		require.NoError(t, err)
		require.NoError(t, cmd.Start())
		n := 1 + r.IntN(100)
		for range n {
			_, err := io.ReadFull(out, letter)
			require.NoError(t, err, "the child has ended in round %d", round)
		}
		if round%2 == 1 {
			server.Restart() // what fails then may fail: the child ends
		}
		_ = cmd.Process.Kill() // an error says that it has ended
		_ = cmd.Wait()
	}

	db, err := kv.Open(dir, nil)
	require.NoError(t, err)
	slot, err := openOutbox(t.Context(), db)
	require.NoError(t, err)
	require.NoError(t, publish(t.Context(), db, slot, server.Client()))
	require.NoError(t, slot.Close())
	requireAllOnce(t, db, server.Client())
	require.NoError(t, db.Close())
}

// requireAllOnce holds that the stream has what the store's orders say, and nothing else.
func requireAllOnce(t *testing.T, db *kv.DB, client *redis.Client) {
	t.Helper()
	var want, got []string
	var failed error
	for _, item := range db.All(&kv.IterOptions{Prefix: []byte("order/")}, &failed) {
		want = append(want, fmt.Sprintf("order %d: %s", len(want)/2+1, item), "reserve "+string(item))
	}
	require.NoError(t, failed)
	entries, err := client.XRange(t.Context(), stream, "-", "+").Result()
	require.NoError(t, err)
	for _, e := range entries {
		got = append(got, e.Values["event"].(string))
	}
	orders, err := db.Get([]byte("orders"))
	require.NoError(t, err)
	require.Equal(t, strconv.Itoa(len(want)/2), string(orders))
	require.Equal(t, want, got)
}

// A change whose acknowledgement was lost comes again, and its events are not added again.
func TestAChangeThatComesAgainIsNotAddedAgain(t *testing.T) {
	t.Parallel()
	redistest.RequireReal(t)
	server := redistest.Start(t)
	dir := t.TempDir()
	file := filepath.Join(dir, "SLOT-"+slotName)
	for _, item := range []string{"bread", "milk", "eggs"} {
		db, err := kv.Open(dir, nil)
		require.NoError(t, err)
		slot, err := openOutbox(t.Context(), db)
		require.NoError(t, err)
		require.NoError(t, publish(t.Context(), db, slot, server.Client()))
		acknowledged, err := os.ReadFile(file)
		require.NoError(t, err)
		require.NoError(t, order(db, item))
		require.NoError(t, publish(t.Context(), db, slot, server.Client()))
		requireAllOnce(t, db, server.Client())
		require.NoError(t, slot.Close())
		require.NoError(t, db.Close())
		require.NoError(t, os.WriteFile(file, acknowledged, 0o600))
	}
}

// A stream is of the slot that published to it. Another store must not take it for its own, whatever numbers the two
// have: a new store, one that a backup was restored to, and one whose directory is an older copy. All take orders
// before they publish.
func TestAStreamOfAnotherHistoryIsAnError(t *testing.T) {
	t.Parallel()
	redistest.RequireReal(t)
	newer := func(t *testing.T, _ string, _ *redistest.Server) string { return t.TempDir() }
	restored := func(t *testing.T, dir string, server *redistest.Server) string {
		to := filepath.Join(t.TempDir(), "restored")
		db, err := kv.Open(dir, nil)
		require.NoError(t, err)
		require.NoError(t, db.Checkpoint(t.Context(), to))
		require.NoError(t, db.Close())
		require.NoError(t, command(t, "program", dir, server).Run())
		return to
	}
	copied := func(t *testing.T, dir string, server *redistest.Server) string {
		to := t.TempDir()
		require.NoError(t, os.CopyFS(to, os.DirFS(dir)))
		require.NoError(t, command(t, "program", dir, server).Run())
		return to
	}
	for name, other := range map[string]func(t *testing.T, dir string, server *redistest.Server) string{
		"new": newer, "restored": restored, "copied": copied,
	} {
		for _, length := range []int64{1000, 0} { // a stream may be trimmed
			t.Run(fmt.Sprint(name, length), func(t *testing.T) {
				t.Parallel()
				server := redistest.Start(t)
				dir := t.TempDir()
				require.NoError(t, command(t, "program", dir, server).Run())
				dir = other(t, dir, server)
				require.NoError(t, server.Client().XTrimMaxLen(t.Context(), stream, length).Err())
				before, err := server.Client().XRange(t.Context(), stream, "-", "+").Result()
				require.NoError(t, err)
				for range 2 {
					var failed *exec.ExitError
					require.ErrorAs(t, command(t, "program", dir, server).Run(), &failed)
				}
				after, err := server.Client().XRange(t.Context(), stream, "-", "+").Result()
				require.NoError(t, err)
				require.Equal(t, before, after)

				require.NoError(t, server.Client().Del(t.Context(), stream, stream+":at").Err()) // as the error says
				db, err := kv.Open(dir, nil)
				require.NoError(t, err)
				slot, err := openOutbox(t.Context(), db)
				require.NoError(t, err)
				require.NoError(t, publish(t.Context(), db, slot, server.Client()))
				n, err := server.Client().XLen(t.Context(), stream).Result()
				require.NoError(t, err)
				require.EqualValues(t, 2*2*3, n, "of the orders of two runs")
				require.NoError(t, slot.Close())
				require.NoError(t, db.Close())
			})
		}
	}
}

func TestTheProgramPrintsWhatItSays(t *testing.T) {
	t.Parallel()
	redistest.RequireReal(t)
	want, err := os.ReadFile("output.txt")
	require.NoError(t, err)
	got, err := command(t, "program", t.TempDir(), redistest.Start(t)).Output()
	require.NoError(t, err)
	require.Equal(t, string(want), string(got))
}
