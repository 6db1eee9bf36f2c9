package kv

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"runtime"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/internal/harness"
	"github.com/siftkv/siftkv/internal/storetest"
	"github.com/siftkv/siftkv/internal/vfs"
)

// streamedValue is what the write of a number stores: anybody can compute it.
func streamedValue(n int) string {
	return strings.Repeat(strconv.Itoa(n)+" ", 1+n*7919%100_000)
}

// streamUntilKilled is the child that writes values as they are read. It prints the number of each that was written.
func streamUntilKilled(dir string) error {
	db, err := Open(dir, &Options{harness: harness.Harness{MinStreamed: 1000}})
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
			NoSync); err != nil {
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

// A process that is killed while it writes values as they are read leaves whole values, every one that it said it had
// written, and no file that nobody needs once the store was opened.
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
		require.NoError(t, Verify(t.Context(), dir, io.Discard))
		db, err := Open(dir, nil)
		require.NoError(t, err)
		v, err := db.Get([]byte("k"))
		require.NoError(t, err)
		n, err := strconv.Atoi(strings.Fields(string(v))[0])
		require.NoError(t, err)
		require.True(t, streamedValue(n) == string(v), "write %d is whole", n)
		require.GreaterOrEqual(t, n, said)
		requireBlobs(t, db)
		require.NoError(t, db.Compact(t.Context(), nil, nil))
		require.Equal(t, 1, requireBlobs(t, db))
		require.NoError(t, db.Close())
	}
}

// A value that is written and read piece by piece takes little memory, however long it is.
func TestStreamsTakeLittleMemory(t *testing.T) {
	db, err := Open(t.TempDir(), nil)
	require.NoError(t, err)
	const size = 96 << 20
	block := bytes.Repeat([]byte("0123456789abcdef"), 4096)
	left := size
	src := readerFunc(func(b []byte) (int, error) {
		n := copy(b[:min(len(b), left)], block)
		left -= n
		return n, nil
	})
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	require.NoError(t, db.SetReader(t.Context(), []byte("k"), size, src, nil))
	for range 2 {
		r, err := db.GetReader([]byte("k"))
		require.NoError(t, err)
		n, err := io.Copy(io.Discard, r)
		require.NoError(t, err)
		require.EqualValues(t, size, n)
		require.NoError(t, r.Close())
		require.NoError(t, db.Compact(t.Context(), nil, nil))
	}
	runtime.ReadMemStats(&after)
	require.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(16<<20))
	require.Len(t, blobsOnDisk(t, vfs.OS, db.dir), 1)
	require.NoError(t, db.Close())
}
