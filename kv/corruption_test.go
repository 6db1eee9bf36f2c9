package kv

import (
	"bytes"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/internal/manifest"
	"github.com/siftkv/siftkv/internal/storetest"
	"github.com/siftkv/siftkv/sstable"
)

// damageStore makes a store with one table in the last level and a log, both of
// 200 synced keys, and returns what it holds.
func damageStore(t *testing.T) (dir string, m storetest.Model) {
	t.Helper()
	dir, m = t.TempDir(), storetest.Model{}
	db := openDir(t, dir, &Options{Compression: sstable.NoCompression, BlockSize: 512})
	rng := rand.New(rand.NewPCG(4, 4))
	write := func(prefix string) {
		b := db.NewBatch()
		for i := range 200 {
			k, v := fmt.Sprintf("%s%03d", prefix, i), string(randomBytes(rng, 100))
			m[k] = v
			if require.NoError(t, b.Set([]byte(k), []byte(v))); i%10 == 9 {
				require.NoError(t, b.Commit(Sync))
				b.Reset()
			}
		}
	}
	write("table/")
	require.NoError(t, db.Compact(t.Context(), nil, nil))
	write("log/")
	db.abandonLikeACrash(t)
	return dir, m
}

// abandonLikeACrash lets go of a store's directory without closing the store in
// good order: what a killed process would leave.
func (d *DB) abandonLikeACrash(t *testing.T) {
	t.Helper()
	d.settle()
	require.NoError(t, d.abandon())
}

// requireDamage checks that an error matches ErrCorruption and names the file, the
// offset (if it is known) and the command to run.
func requireDamage(t *testing.T, err error, name string, offset int64) {
	t.Helper()
	require.ErrorIs(t, err, ErrCorruption)
	var damage *CorruptionError
	require.ErrorAs(t, err, &damage)
	require.Equal(t, name, damage.File)
	require.ErrorContains(t, err, name)
	if offset >= 0 {
		require.Equal(t, offset, damage.Offset, err.Error())
		require.ErrorContains(t, err, fmt.Sprintf("offset %d", offset))
	}
	require.ErrorContains(t, err, "verify "+filepath.Dir(name))
}

func TestDamagedTablesAreNamedAtOpen(t *testing.T) {
	t.Parallel()
	for what, hurt := range map[string]func(name string) (offset int64){
		"missing": func(name string) int64 {
			require.NoError(t, os.Remove(name))
			return -1
		},
		"truncated": func(name string) int64 {
			require.NoError(t, os.Truncate(name, 1000))
			return 1000
		},
		"longer": func(name string) (size int64) {
			rewrite(t, name, func(b []byte) []byte {
				size = int64(len(b))
				return append(b, 'x')
			})
			return size
		},
	} {
		dir, _ := damageStore(t)
		table := only(t, dir, manifest.FileTable)
		offset := hurt(table)
		before := readDir(t, dir)
		for _, o := range []*Options{nil, {ReadOnly: true}} {
			_, err := Open(dir, o)
			requireDamage(t, err, table, offset)
		}
		requireDamage(t, Verify(t.Context(), dir, io.Discard), table, offset)
		after := readDir(t, dir)
		require.Equal(t, before, after, "%s: the evidence was touched", what)
	}
}

func TestADamagedBlockIsNamedAndTheRestIsRead(t *testing.T) {
	dir, m := damageStore(t)
	table := only(t, dir, manifest.FileTable)
	rewrite(t, table, flip(700)) // in the second block
	db := openDir(t, dir, nil)
	failed := 0
	for k, v := range m {
		got, err := db.Get([]byte(k))
		if err != nil {
			failed++
			requireDamage(t, err, table, -1)
			_, err = db.Has([]byte(k))
			require.ErrorIs(t, err, ErrCorruption)
			continue
		}
		require.Equal(t, v, string(got))
	}
	require.InDelta(t, 5, failed, 3, "one block of 512 bytes is lost")

	it, err := db.NewIter(nil)
	require.NoError(t, err)
	for _, start := range []func() bool{it.First, it.Last} {
		move := it.Next
		if ok := start(); string(it.Key()) > "table/1" {
			require.True(t, ok)
			move = it.Prev
		}
		for move() {
		}
		requireDamage(t, it.Error(), table, -1)
		require.False(t, it.Valid())
	}
	require.True(t, it.SeekGE([]byte("table/1")), "it goes on elsewhere")
	require.NoError(t, it.Error())
	require.NoError(t, it.Close())
	require.NoError(t, db.Close())
	var out bytes.Buffer
	requireDamage(t, Verify(t.Context(), dir, &out), table, -1)
	require.Contains(t, out.String(), "DAMAGED")
}

func TestADamagedFilterCostsReadsAndNoAnswer(t *testing.T) {
	dir, m := damageStore(t)
	table := only(t, dir, manifest.FileTable)
	r, err := sstable.Open(table, nil)
	require.NoError(t, err)
	p := r.Properties()
	require.NoError(t, r.Close())
	require.NotZero(t, p.FilterBytes)
	rewrite(t, table, flip(int(p.DataBytes)+40)) // the filter is the first block of the tail
	db := openDir(t, dir, nil)
	requireContents(t, m, db)
	for k, v := range m {
		got, err := db.Get([]byte(k))
		require.NoError(t, err)
		require.Equal(t, v, string(got))
		_, err = db.Get([]byte(k + "x"))
		require.ErrorIs(t, err, ErrNotFound)
	}
	metrics := db.Metrics()
	require.EqualValues(t, 1, metrics.UnusableFilters)
	require.NotZero(t, metrics.Lookup().Unfiltered)
	require.NoError(t, db.Close())
	require.ErrorIs(t, Verify(t.Context(), dir, io.Discard), ErrCorruption)
}

func TestADamagedLogIsNamedAndATornOneIsNot(t *testing.T) {
	t.Parallel()
	dir, _ := damageStore(t)
	log := only(t, dir, manifest.FileWAL)
	rewrite(t, log, flip(3000))
	for _, o := range []*Options{nil, {ReadOnly: true}} {
		_, err := Open(dir, o)
		requireDamage(t, err, log, -1)
		require.Regexp(t, `offset [1-9]\d*:`, err.Error())
	}

	dir, m := damageStore(t)
	log = only(t, dir, manifest.FileWAL)
	rewrite(t, log, func(b []byte) []byte { return b[:len(b)-1] })
	for i := 190; i < 200; i++ { // the last batch
		delete(m, fmt.Sprintf("log/%03d", i))
	}
	db := openDir(t, dir, &Options{ReadOnly: true})
	requireContents(t, m, db)
	require.NoError(t, db.Close())
	db = openDir(t, dir, nil)
	requireContents(t, m, db)
	require.NoError(t, db.Close())
}

// A power cut may keep later pages of what was not synced and lose earlier ones.
func TestALostPageThatNobodySyncedIsATornTail(t *testing.T) {
	dir := t.TempDir()
	db := openDir(t, dir, nil)
	for i := range 100 {
		set(t, db, fmt.Sprintf("%02d", i), strings.Repeat("x", 1000))
	}
	db.abandonLikeACrash(t)
	rewrite(t, only(t, dir, manifest.FileWAL), func(b []byte) []byte {
		clear(b[40960:45056])
		return b
	})
	db = openDir(t, dir, nil)
	n := 0
	for ; ; n++ {
		if ok, err := db.Has(fmt.Appendf(nil, "%02d", n)); !ok {
			require.NoError(t, err)
			break
		}
	}
	require.InDelta(t, 39, n, 1)
	for i := n; i < 100; i++ {
		ok, err := db.Has(fmt.Appendf(nil, "%02d", i))
		require.NoError(t, err)
		require.False(t, ok, "a hole before %d", i)
	}
	require.NoError(t, db.Close())
}

func TestADamagedManifestIsNamed(t *testing.T) {
	t.Parallel()
	dir, _ := damageStore(t)
	name := only(t, dir, manifest.FileManifest)
	rewrite(t, name, flip(45)) // in the first edit: later ones follow
	_, err := Open(dir, nil)
	requireDamage(t, err, name, 32)

	dir, _ = damageStore(t)
	name = only(t, dir, manifest.FileManifest)
	require.NoError(t, os.Remove(name))
	_, err = Open(dir, nil)
	require.Error(t, err)
	require.ErrorContains(t, err, name)

	dir, _ = damageStore(t)
	name = filepath.Join(dir, manifest.CurrentName)
	line, err := os.ReadFile(name)
	require.NoError(t, err)
	for at := range line {
		require.NoError(t, os.WriteFile(name, flip(at)(slices.Clone(line)), 0o600))
		_, err := Open(dir, nil)
		require.Error(t, err)
		require.ErrorContains(t, err, name)
		require.NotErrorIs(t, err, ErrForeignDirectory)
	}
	require.NoError(t, os.Remove(name))
	_, err = Open(dir, nil)
	require.ErrorIs(t, err, ErrCorruption)
	require.ErrorContains(t, err, name)
}

// A manifest ends in an edit that was not acknowledged: the store is as before it.
func TestATornManifestIsTheStoreBefore(t *testing.T) {
	dir, m := damageStore(t)
	name := only(t, dir, manifest.FileManifest)
	rewrite(t, name, func(b []byte) []byte { return append(b, 1, 2, 3, 4, 5) })
	db := openDir(t, dir, nil)
	requireContents(t, m, db)
	require.NoError(t, db.Close())
}
