package kills

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/internal/harness"
	"github.com/siftkv/siftkv/internal/storetest"
	"github.com/siftkv/siftkv/internal/storetest/stores"
	"github.com/siftkv/siftkv/kv"
)

// streamedValue is what the write of a number stores. The parent computes it too.
func streamedValue(n int) string {
	return strings.Repeat(strconv.Itoa(n)+" ", 1+n*7919%100_000)
}

func init() { children["stream"] = streamUntilKilled }

// streamUntilKilled is the child that writes values as they are read. It prints the number of each that was written.
func streamUntilKilled(dir string) error {
	db, err := kv.Open(dir, stores.With(harness.Harness{MinStreamed: 1000}, &kv.Options{}))
	if err != nil {
		return err
	}
	n := 0
	if v, err := db.Get([]byte("k")); err == nil {
		if n, err = strconv.Atoi(strings.Fields(string(v))[0]); err != nil {
			return err
		}
	}
	for {
		n++
		v := streamedValue(n)
		if err := db.SetReader(context.Background(), []byte("k"), int64(len(v)), strings.NewReader(v),
			kv.NoSync); err != nil {
			return err
		}
		fmt.Println(n)
		if n%20 == 0 {
			if err := db.Flush(context.Background()); err != nil {
				return err
			}
		}
	}
}

// A process that is killed while it writes values as they are read leaves whole values, each one that it said it had
// written, and no unneeded file once the store was opened.
func TestKillWhileValuesAreRead(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for round := range 6 {
		cmd := storetest.Child(t, "stream", dir, round)
		stdout, err := cmd.StdoutPipe()
		require.NoError(t, err)
		require.NoError(t, cmd.Start())
		lines := bufio.NewScanner(stdout)
		said := 0
		for range 5 + round*7 {
			require.True(t, lines.Scan())
			said, err = strconv.Atoi(lines.Text())
			require.NoError(t, err)
		}
		require.NoError(t, cmd.Process.Kill())
		for lines.Scan() {
			said, err = strconv.Atoi(lines.Text())
			require.NoError(t, err)
		}
		require.Error(t, cmd.Wait())
		require.NoError(t, kv.Verify(t.Context(), dir, io.Discard))
		db, err := kv.Open(dir, nil)
		require.NoError(t, err)
		v, err := db.Get([]byte("k"))
		require.NoError(t, err)
		n, err := strconv.Atoi(strings.Fields(string(v))[0])
		require.NoError(t, err)
		require.True(t, streamedValue(n) == string(v), "write %d is whole", n)
		require.GreaterOrEqual(t, n, said)
		storetest.RequireBlobs(t, db)
		require.NoError(t, db.Compact(t.Context(), nil, nil))
		require.Equal(t, 1, storetest.RequireBlobs(t, db))
		require.NoError(t, db.Close())
	}
}
