//go:build linux

package sstable

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/filterpolicy"
	"github.com/siftkv/siftkv/internal/base"
	"github.com/siftkv/siftkv/internal/vfs"
)

// openMapped opens a mapped file of n keys, and returns its path.
func openMapped(t *testing.T, data []byte) (*Reader, string) {
	path := filepath.Join(t.TempDir(), "f.sst")
	require.NoError(t, os.WriteFile(path, data, 0o644))
	f, err := vfs.OS.Open(path)
	require.NoError(t, err)
	r, err := NewReader(f, int64(len(data)), &ReaderOptions{Map: true, CacheSize: -1, Name: path})
	require.NoError(t, err)
	require.NotNil(t, r.mapped)
	return r, path
}

func get(r *Reader, i int, p *Probe) ([]byte, bool, error) {
	key := keyOf(i)
	value, _, ok, err := r.Find([]byte("before"), key, filterpolicy.Hash(key), base.MaxSeqNum, p)
	return value, ok, err
}

func TestAMappedFileGivesTheSameAnswers(t *testing.T) {
	const n = 3000
	data := plainFile(t, n, WriterOptions{Compression: NoCompression, ID: 1})
	r, path := openMapped(t, data)
	require.NoError(t, os.Remove(path), "a name is not needed")
	var p Probe
	for i := range n {
		value, ok, err := get(r, i, &p)
		require.NoError(t, err)
		require.True(t, ok)
		require.Len(t, value, len("before")+100)
	}
	require.Equal(t, r.dataCount, p.BlocksFromDisk)
	require.Equal(t, n-r.dataCount, p.BlocksFromCache)
	_, ok, err := get(r, n+1, &p)
	require.NoError(t, err)
	require.False(t, ok)
	it := r.NewIter(IterOptions{})
	seen := 0
	for ok := it.First(); ok; ok = it.Next() {
		seen++
	}
	require.NoError(t, it.Error())
	require.Equal(t, n, seen)
	require.NoError(t, r.Verify())
	require.NoError(t, r.Close())
}

func TestDamageInAMappedFileIsNoticed(t *testing.T) {
	data := plainFile(t, 3000, WriterOptions{Compression: NoCompression, ID: 1})
	data[5000] ^= 1
	r, _ := openMapped(t, data)
	var p Probe
	failed := 0
	for i := range 3000 {
		if _, _, err := get(r, i, &p); err != nil {
			require.ErrorIs(t, err, ErrCorruption)
			failed++
		}
	}
	require.Greater(t, failed, 10)
	require.Less(t, failed, 60)
	require.NoError(t, r.Close())
}

// What lies past the end of a truncated file is a fault of the processor, which must
// come out as an error, of lookups and of iterators.
func TestATruncatedMappedFileIsAnError(t *testing.T) {
	data := plainFile(t, 3000, WriterOptions{Compression: NoCompression, Filter: mustParse("none"), ID: 1})
	r, path := openMapped(t, data)
	require.NoError(t, os.Truncate(path, 64<<10))
	var p Probe
	failed := 0
	for i := range 3000 {
		value, _, err := get(r, i, &p)
		if err != nil {
			require.ErrorContains(t, err, path)
			require.ErrorContains(t, err, "truncated")
			require.Equal(t, "before", string(value))
			failed++
		}
	}
	require.Greater(t, failed, 2000)
	require.Less(t, failed, 2700)
	it := r.NewIter(IterOptions{})
	seen := 0
	for ok := it.First(); ok; ok = it.Next() {
		seen++
	}
	require.ErrorContains(t, it.Error(), "truncated")
	require.Greater(t, seen, 300)
	require.NoError(t, r.Close())
}

// The page in which a truncated file ends reads as zeros, which must not pass for a block
// without the key, though the block was verified before.
func TestWhatATruncationZeroedIsNotTakenForAbsent(t *testing.T) {
	data := plainFile(t, 3000, WriterOptions{Compression: NoCompression, Filter: mustParse("none"), ID: 1})
	r, path := openMapped(t, data)
	var p Probe
	for i := range 3000 {
		_, ok, err := get(r, i, &p)
		require.NoError(t, err)
		require.True(t, ok)
	}
	require.NoError(t, os.Truncate(path, 64<<10+100))
	for i := range 3000 {
		value, ok, err := get(r, i, &p)
		if err == nil {
			require.True(t, ok, "key %d", i)
			continue
		}
		require.ErrorContains(t, err, "truncated")
		require.Equal(t, "before", string(value))
	}
	it := r.NewIter(IterOptions{})
	seen := 0
	for ok := it.First(); ok; ok = it.Next() {
		require.Equal(t, fmt.Sprintf("key-%012d", 2*seen), string(it.Key().User), "nothing is passed over")
		seen++
	}
	require.ErrorContains(t, it.Error(), "truncated")
	require.NoError(t, r.Close())
}

// Wherever within a block the file ends: what is left of a block's last bytes may say
// that it is one of another version.
func TestAMappedFileIsTruncatedAnywhereInABlock(t *testing.T) {
	for _, perBlock := range []int{1, 3} { // one restart, and a table
		data := plainFile(t, 20, WriterOptions{BlockSize: perBlock * 100, RestartInterval: 1,
			Compression: NoCompression, Filter: mustParse("none"), ID: 1})
		r, path := openMapped(t, data)
		offset, length := r.place(location{block: 2})
		first := 2 * perBlock // key of the block
		var p Probe
		_, ok, err := get(r, first, &p)
		require.NoError(t, err)
		require.True(t, ok)
		for cut := length; cut >= 0; cut-- {
			require.NoError(t, os.Truncate(path, int64(offset)+int64(cut)))
			value, ok, err := get(r, first, &p)
			it := r.NewIter(IterOptions{})
			sought := it.SeekGE(base.SearchKey(keyOf(first), base.MaxSeqNum))
			if cut < length-trailerSize {
				require.ErrorContains(t, err, "truncated", "%d of %d bytes", cut, length)
				require.Equal(t, "before", string(value))
				require.False(t, sought)
				require.ErrorContains(t, it.Error(), "truncated")
				continue
			}
			if err == nil {
				require.True(t, ok)
				require.Len(t, value, len("before")+100)
			}
			require.True(t, sought || it.Error() != nil)
		}
		require.NoError(t, r.Close())
	}
}

// A verified block whose bytes change is trusted; that must not end the process.
func TestAHashTableThatChangedDoesNotPanic(t *testing.T) {
	data := plainFile(t, 3000, WriterOptions{Compression: NoCompression, Filter: mustParse("none"), ID: 1})
	r, path := openMapped(t, data)
	var p Probe
	_, ok, err := get(r, 0, &p)
	require.NoError(t, err)
	require.True(t, ok)
	offset, length := r.place(location{block: 0})
	b := viewBlock(data[offset : int(offset)+length-trailerSize])
	require.NotEmpty(t, b.slots)
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	require.NoError(t, err)
	wrong := make([]byte, len(b.slots))
	fingerprint := fingerprintOf(filterpolicy.Hash(keyOf(0)))
	for i := 0; i < len(wrong); i += slotSize {
		wrong[i], wrong[i+1] = slotRestarts-1, fingerprint
	}
	_, err = f.WriteAt(wrong, int64(offset)+int64(len(b.entries)+len(b.restarts)))
	require.NoError(t, err)
	require.NoError(t, f.Close())
	_, _, err = get(r, 0, &p)
	require.ErrorIs(t, err, ErrCorruption)
	require.NoError(t, r.Close())
}

func TestAMappedFileThatWasClosed(t *testing.T) {
	r, _ := openMapped(t, plainFile(t, 3000, WriterOptions{Compression: NoCompression, ID: 1}))
	it := r.NewIter(IterOptions{})
	require.True(t, it.First())
	require.NoError(t, r.Close())
	var p Probe
	_, _, err := get(r, 0, &p)
	require.ErrorIs(t, err, ErrClosed)
	require.False(t, it.First())
	require.ErrorIs(t, it.Error(), ErrClosed)
}

func TestFindInAMappedFileDoesNotAllocate(t *testing.T) {
	r, _ := openMapped(t, plainFile(t, 3000, WriterOptions{Compression: NoCompression, ID: 1}))
	key := fmt.Appendf(nil, "key-%012d", 2*777)
	hash := filterpolicy.Hash(key)
	dst := make([]byte, 0, 200)
	require.Zero(t, testing.AllocsPerRun(1000, func() {
		var p Probe
		if _, _, ok, err := r.Find(dst, key, hash, base.MaxSeqNum, &p); err != nil || !ok {
			t.Fatal(ok, err)
		}
	}))
	require.NoError(t, r.Close())
}
