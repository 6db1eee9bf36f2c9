package tablecache

import (
	"bytes"
	"fmt"
	"log/slog"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/internal/base"
	"github.com/siftkv/siftkv/internal/manifest"
	"github.com/siftkv/siftkv/internal/sstable"
	"github.com/siftkv/siftkv/internal/vfs"
)

// A bytesFile is a file in memory that must be closed.
type bytesFile struct{ *bytes.Reader }

func (f bytesFile) Size() (int64, error) { return f.Reader.Size(), nil }
func (bytesFile) Close() error           { return nil }

func fileOf(num uint64) string { return manifest.FileName(manifest.FileTable, num) }

// tablesIn returns n tables of one file each, and a cache of limit bytes to open them with.
func tablesIn(t *testing.T, n int, limit int64) (*Cache, []*Entry) {
	files := map[string][]byte{}
	c := &Cache{Path: fileOf, Log: slog.Default(), Memory: NewMemory(limit, limit)}
	c.Options.Cache = c.Memory.Cache
	t.Cleanup(c.Options.Cache.Release)
	c.OpenFile = func(name string) (vfs.ReadFile, error) { return bytesFile{bytes.NewReader(files[name])}, nil }
	var tables []*Entry
	for num := range uint64(n) {
		var b bytes.Buffer
		w := sstable.NewWriter(&b, &sstable.WriterOptions{ID: num + 1, BlockSize: 64})
		for i := range 1000 {
			require.NoError(t, w.Add(base.MakeKey(fmt.Appendf(nil, "%06d", i), 1, base.KindSet), []byte("value")))
		}
		info, err := w.Finish()
		require.NoError(t, err)
		files[fileOf(num)] = b.Bytes()
		tables = append(tables, &Entry{Table: manifest.Table{Num: num, ID: info.ID}})
	}
	return c, tables
}

// A table that is given up and opened again any number of times keeps nothing of readers that
// nobody uses any more.
func TestClosedReadersAreForgotten(t *testing.T) {
	c, tables := tablesIn(t, 2, 4<<10)
	for range 100 {
		for _, table := range tables {
			_, err := table.Open(c)
			require.NoError(t, err)
			table.traffic.asked.Store(0) // the next takes its place
		}
		runtime.GC()
	}
	require.GreaterOrEqual(t, c.Left.Load(), uint64(198))
	for _, table := range tables {
		require.Less(t, len(table.left), 10)
		require.NoError(t, c.Close(table))
	}
	require.Zero(t, c.Indexes.Load()+c.Filters.Load())
}

// A filter that turned out to be damaged is not read again when its table has another reader, and
// takes no other filter's room.
func TestADamagedFilterIsNotReadForANewReader(t *testing.T) {
	const limit = 1 << 20
	c, tables := tablesIn(t, 1, limit)
	table := tables[0]
	table.FilterBytes = 1000
	open, opened, reads := c.OpenFile, false, 0
	c.OpenFile = func(name string) (vfs.ReadFile, error) {
		f, err := open(name)
		return damagedFile{f, &opened, &reads}, err
	}
	for n := range 3 {
		c.addFilters(limit) // of others: the filter is left on disk
		opened, reads = false, 0
		_, err := table.Open(c)
		require.NoError(t, err)
		c.addFilters(-limit)
		require.EqualValues(t, max(0, 1-n), c.Skipped.Load())
		opened, reads = true, 0
		c.skip(1) // so is another table's
		for range 2 {
			c.Sampled(table, true, true)
		}
		c.skip(-1)
		require.Equal(t, max(0, 1-n), reads)
		require.EqualValues(t, 1, c.Unusable.Load())
		require.Zero(t, c.Skipped.Load())
		require.NoError(t, c.Close(table))
		require.Zero(t, c.Filters.Load())
	}
}

// A damagedFile has zeros wherever it is read after it was opened.
type damagedFile struct {
	vfs.ReadFile
	opened *bool
	reads  *int
}

func (f damagedFile) ReadAt(p []byte, off int64) (int, error) {
	*f.reads++
	n, err := f.ReadFile.ReadAt(p, off)
	if *f.opened {
		clear(p)
	}
	return n, err
}
