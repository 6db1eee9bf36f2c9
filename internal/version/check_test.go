package version

import (
	"io/fs"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/internal/base"
	"github.com/siftkv/siftkv/internal/manifest"
	"github.com/siftkv/siftkv/internal/vfs"
)

// A missing file and a shorter one are damage, which a caller may tolerate of blob files.
func TestCheckFiles(t *testing.T) {
	t.Parallel()
	const size = 1000
	mem := vfs.NewMem()
	require.NoError(t, mem.MkdirAll("db"))
	write := func(name, content string) {
		f, err := mem.Create(name)
		require.NoError(t, err)
		_, err = f.Write([]byte(content))
		require.NoError(t, err)
		require.NoError(t, f.Close())
	}
	v, err := (&Version{}).Apply(&manifest.Edit{Added: []manifest.AddedTable{{Table: tableOf(2)}},
		AddedBlobs: []manifest.BlobFile{{Num: 3, Size: size, Records: 1}}})
	require.NoError(t, err)
	write("db/000003.blob", strings.Repeat("x", size))
	err = v.CheckFiles(mem, "db", "repair it", nil)
	require.ErrorIs(t, err, fs.ErrNotExist)
	require.ErrorContains(t, err, "000002.sst")
	require.ErrorContains(t, err, "repair it")
	write("db/000002.sst", "123")
	require.NoError(t, v.CheckFiles(mem, "db", "", nil))
	write("db/000003.blob", "1")
	err = v.CheckFiles(mem, "db", "", nil)
	require.ErrorIs(t, err, base.ErrCorruption)
	require.ErrorContains(t, err, "a blob file has 1 bytes, and had 1000 when it was written")
	tolerated := uint64(0)
	require.NoError(t, v.CheckFiles(mem, "db", "", func(num uint64, _ error) { tolerated = num }))
	require.EqualValues(t, 3, tolerated)
}
