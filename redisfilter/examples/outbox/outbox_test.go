package main

import (
	"context"
	"fmt"
	"io"
	"log"
	"math/rand/v2"
	"os"
	"os/exec"
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
		err = publish(context.Background(), slot, client, lastChange(db))
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
	require.NoError(t, publish(t.Context(), slot, server.Client(), lastChange(db)))
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

// An entry whose acknowledgement was lost comes again, and Redis refuses it.
func TestAnEntryThatComesAgainIsRefused(t *testing.T) {
	t.Parallel()
	redistest.RequireReal(t)
	server := redistest.Start(t)
	db, err := kv.Open(t.TempDir(), nil)
	require.NoError(t, err)
	slot, err := openOutbox(t.Context(), db)
	require.NoError(t, err)
	for _, item := range []string{"bread", "milk"} {
		require.NoError(t, order(db, item))
	}
	require.NoError(t, publish(t.Context(), slot, server.Client(), lastChange(db)))
	requireAllOnce(t, db, server.Client())
	entries, err := server.Client().XRange(t.Context(), stream, "-", "+").Result()
	require.NoError(t, err)
	for _, e := range entries {
		err := server.Client().XAdd(t.Context(), &redis.XAddArgs{Stream: stream, ID: e.ID, Values: e.Values}).Err()
		require.True(t, isThere(err), "%v", err)
	}
	require.NoError(t, slot.Close())
	require.NoError(t, db.Close())
}

// A stream that is ahead of the store would refuse events that it has not: it is of another store, or the store was
// restored from a backup.
func TestAStreamThatIsAheadIsAnError(t *testing.T) {
	t.Parallel()
	redistest.RequireReal(t)
	server := redistest.Start(t)
	require.NoError(t, server.Client().XAdd(t.Context(), &redis.XAddArgs{Stream: stream, ID: "1000-0",
		Values: []string{"event", "of another store"}}).Err())
	db, err := kv.Open(t.TempDir(), nil)
	require.NoError(t, err)
	slot, err := openOutbox(t.Context(), db)
	require.NoError(t, err)
	require.NoError(t, order(db, "bread"))
	require.ErrorIs(t, publish(t.Context(), slot, server.Client(), lastChange(db)), kv.ErrSlotLost)
	require.NoError(t, slot.Close())
	require.NoError(t, db.Close())
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
