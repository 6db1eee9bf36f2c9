package wal

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"math/rand/v2"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/siftkv/siftkv/internal/golden"
	"github.com/siftkv/siftkv/internal/property"
	"github.com/siftkv/siftkv/internal/vfs"
)

const testID = 42

// content is a ReadFile over bytes.
type content []byte

func (c content) Size() (int64, error) { return int64(len(c)), nil }
func (c content) Close() error         { return nil }

func (c content) ReadAt(p []byte, off int64) (int, error) {
	return bytes.NewReader(c).ReadAt(p, off)
}

// capture is a WriteFile that keeps what is written, and notes how much of it
// was synced.
type capture struct {
	bytes.Buffer
	synced int
	calls  []string
}

func (c *capture) Write(p []byte) (int, error) {
	c.calls = append(c.calls, "write")
	return c.Buffer.Write(p)
}

func (c *capture) Sync() error {
	c.calls = append(c.calls, "sync")
	c.synced = c.Len()
	return nil
}

func (c *capture) Close() error {
	c.calls = append(c.calls, "close")
	return nil
}

// record makes a record whose bytes, where there are some, are in no other.
func record(i, size int) []byte {
	var seed [32]byte
	binary.LittleEndian.PutUint64(seed[:], uint64(i))
	b := make([]byte, size)
	_, _ = rand.NewChaCha8(seed).Read(b)
	return b
}

// makeLog returns a log that was closed, with a sync after each record whose
// number is in syncs.
func makeLog(t require.TestingT, id uint64, records [][]byte, syncs ...int) []byte {
	var f capture
	w := NewWriter(&f, id)
	for i, r := range records {
		require.NoError(t, w.Append(r))
		for _, s := range syncs {
			if s == i {
				require.NoError(t, w.Sync())
			}
		}
	}
	require.NoError(t, w.Close())
	return f.Bytes()
}

// unclosed takes the end-of-log mark off a log.
func unclosed(log []byte) []byte { return log[:len(log)-minRoom] }

// readAll reads records up to the first error.
func readAll(r *Reader) ([][]byte, error) {
	records := [][]byte{}
	for {
		rec, err := r.Next()
		if err != nil {
			return records, err
		}
		records = append(records, bytes.Clone(rec))
	}
}

func requireClean(t require.TestingT, log []byte, want [][]byte) {
	r := NewReader(content(log), "000042.log", testID)
	got, err := readAll(r)
	require.Equal(t, io.EOF, err)
	require.True(t, r.Clean())
	require.Zero(t, r.Skipped())
	require.Len(t, got, len(want))
	for i := range want {
		require.True(t, bytes.Equal(want[i], got[i]), "record %d", i)
	}
}

func TestRoundTripOfSizes(t *testing.T) {
	sizes := []int{0, 1, 6, 7, 8, 100, 200 << 10}
	firstRoom := blockSize - fileHeaderSize - headerSize
	for _, edge := range []int{firstRoom, firstRoom + blockSize - headerSize, blockSize, 2 * blockSize} {
		for d := -2 * minRoom; d <= 2*minRoom; d++ {
			sizes = append(sizes, edge+d)
		}
	}
	var all [][]byte
	for i, size := range sizes {
		rec := record(i, size)
		all = append(all, rec)
		requireClean(t, makeLog(t, testID, [][]byte{rec, []byte("next"), {}}), [][]byte{rec, []byte("next"), {}})
	}
	requireClean(t, makeLog(t, testID, all, 3, 9, 50), all)
	requireClean(t, makeLog(t, testID, nil), nil)
}

func TestRoundTrip(t *testing.T) {
	property.Check(t, func(t *rapid.T) {
		fsys := vfs.NewMem()
		f, err := fsys.Create("log")
		require.NoError(t, err)
		w := NewWriter(f, testID)
		end := (*Writer).Close
		if rapid.Bool().Draw(t, "sync") {
			end = closeSynced
		}
		var want [][]byte
		for i := range rapid.IntRange(0, 40).Draw(t, "records") {
			size := rapid.OneOf(rapid.IntRange(0, 300), rapid.IntRange(0, 70<<10)).Draw(t, "size")
			want = append(want, record(i, size))
			buffered := w.Buffered()
			require.NoError(t, w.Append(want[i]))
			require.Greater(t, w.Buffered(), buffered+size)
			switch rapid.IntRange(0, 5).Draw(t, "then") {
			case 0:
				require.NoError(t, w.Flush())
				require.Zero(t, w.Buffered())
			case 1:
				require.NoError(t, w.Sync())
			}
			size64, err := fsys.Stat("log")
			require.NoError(t, err)
			require.Equal(t, size64+int64(w.Buffered()), w.Size())
		}
		require.NoError(t, end(w))
		size, err := fsys.Stat("log")
		require.NoError(t, err)
		require.Equal(t, size, w.Size())

		rf, err := fsys.Open("log")
		require.NoError(t, err)
		r := NewReader(rf, "log", testID)
		got, err := readAll(r)
		require.Equal(t, io.EOF, err)
		require.True(t, r.Clean())
		require.Equal(t, len(want), len(got))
		for i := range want {
			require.True(t, bytes.Equal(want[i], got[i]), "record %d", i)
		}
	})
}

func TestGolden(t *testing.T) {
	var records [][]byte
	// The seventh record ends 5 bytes before a block does, the ninth spans three.
	for i, size := range []int{0, 1, 116, 700, 116, 30000, 1719, 9, 66000, 40} {
		records = append(records, bytes.Repeat([]byte{'a' + byte(i)}, size))
	}
	log := makeLog(t, testID, records, 1, 3, 8)
	require.EqualValues(t, blockSize-5, recordEnds(t, log)[6])
	golden.File(t, filepath.Join("testdata", "v1.log"), log)
	requireClean(t, log, records)
}

func ExampleReader() {
	fsys := vfs.NewMem()
	f, _ := fsys.Create("000007.log")
	w := NewWriter(f, 7)
	_ = w.Append([]byte("one"))
	_ = w.Append([]byte("two"))
	_ = w.Close()

	rf, _ := fsys.Open("000007.log")
	r := NewReader(rf, "000007.log", 7)
	for {
		rec, err := r.Next()
		if err != nil {
			fmt.Println(err, r.Clean())
			return
		}
		fmt.Printf("%s at %d\n", rec, r.Offset())
	}
	// Output:
	// one at 32
	// two at 42
	// EOF true
}
