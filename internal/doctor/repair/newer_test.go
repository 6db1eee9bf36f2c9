package repair

import (
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/internal/base"
	"github.com/siftkv/siftkv/internal/doctor"
	"github.com/siftkv/siftkv/internal/manifest"
	"github.com/siftkv/siftkv/internal/scale"
	"github.com/siftkv/siftkv/internal/sstable"
	"github.com/siftkv/siftkv/internal/survey"
	"github.com/siftkv/siftkv/kv"
)

// footerSize is the length in bytes of the footer of a sorted file: see docs/format.md.
const footerSize = 56

// A table of a newer format is told by name and never taken for damage, although the manifest can be
// read and lists it: a newer version of the program had the store. No repair touches it, not even for
// the sake of another table that is damaged.
func TestATableOfANewerFormatIsNoDamage(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "store")
	db, err := kv.Open(dir, nil)
	require.NoError(t, err)
	for i := range 2 {
		require.NoError(t, db.Set(fmt.Appendf(nil, "key%d", i), []byte("value"), kv.Sync))
		require.NoError(t, db.Flush(t.Context()))
	}
	require.NoError(t, db.Close())
	tables := filesOf(t, dir, manifest.FileTable)
	require.Len(t, tables, 2)
	data, err := os.ReadFile(tables[0])
	require.NoError(t, err)
	footer := data[len(data)-footerSize:]
	binary.LittleEndian.PutUint32(footer[40:], base.Checksum(sstable.FormatVersion+1, 0, footer[:40]))
	binary.LittleEndian.PutUint32(footer[44:], sstable.FormatVersion+1)
	require.NoError(t, os.WriteFile(tables[0], data, 0o600))

	refused := func(err error) {
		t.Helper()
		require.ErrorIs(t, err, kv.ErrNewerFormat)
		require.ErrorContains(t, err, filepath.Base(tables[0]))
	}
	var told strings.Builder
	err = kv.Verify(t.Context(), dir, &told)
	refused(err)
	require.NotErrorIs(t, err, kv.ErrCorruption)
	require.NotContains(t, told.String(), "DAMAGED")

	db, err = kv.Open(dir, &kv.Options{ReadOnly: true})
	if err == nil {
		_, err = db.Get([]byte("key0"))
		require.NoError(t, db.Close())
	}
	refused(err)

	require.NoError(t, os.Truncate(tables[1], 100))
	err = kv.Verify(t.Context(), dir, &told)
	refused(err)
	require.ErrorIs(t, err, kv.ErrCorruption, "of the other")
	before := snapshotDir(t, dir)
	out := filepath.Join(t.TempDir(), "out")
	for _, o := range []Options{{DryRun: true}, {Out: out}, {}} {
		_, err = Run(t.Context(), dir, o)
		refused(err)
		require.Equal(t, before, snapshotDir(t, dir))
		require.NoDirExists(t, filepath.Join(dir, LostDir))
		require.NoDirExists(t, out)
	}
}

// A version that is damaged, in a bit of whichever place, costs nothing: verify goes through the other files, and a
// repair takes all entries and all values out of the file.
func TestADamagedVersionCostsNothing(t *testing.T) {
	t.Parallel()
	origin := filepath.Join(t.TempDir(), "origin")
	h := separatedStore(t, origin, 2)
	places := map[manifest.FileKind][]int{manifest.FileTable: {-12}, manifest.FileBlob: {8, -12}}
	for kind, offsets := range places {
		for _, at := range offsets {
			for bit := range 32 {
				if bit%scale.Stride(5, 1) != 0 {
					continue
				}
				dir := filepath.Join(t.TempDir(), "store")
				cloneDir(t, origin, dir)
				names := filesOf(t, dir, kind)
				name := names[bit%len(names)]
				data, err := os.ReadFile(name)
				require.NoError(t, err)
				if at < 0 {
					data[len(data)+at+bit/8] ^= 1 << (bit % 8)
				} else {
					data[at+bit/8] ^= 1 << (bit % 8)
				}
				replace(t, name, data)
				s, err := doctor.Verify(t.Context(), dir, survey.Options{})
				require.NoError(t, err)
				for _, d := range s.Damage {
					require.Equal(t, filepath.Base(name), d.File)
				}
				require.Len(t, s.Tables, len(filesOf(t, dir, manifest.FileTable)))
				r, err := Run(t.Context(), dir, Options{})
				require.NoError(t, err)
				require.True(t, r.Needed)
				require.Empty(t, r.Lost, "%s at %d, bit %d", filepath.Base(name), at, bit)
				require.Equal(t, h.now, contents(t, dir))
			}
		}
	}
}
