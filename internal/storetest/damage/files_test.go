package damage

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"iter"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/internal/manifest"
	"github.com/siftkv/siftkv/internal/storetest"
	"github.com/siftkv/siftkv/internal/storetest/stores"
	"github.com/siftkv/siftkv/kv"
	"github.com/siftkv/siftkv/sstable"
)

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
			storetest.Rewrite(t, name, func(b []byte) []byte {
				size = int64(len(b))
				return append(b, 'x')
			})
			return size
		},
	} {
		dir, _ := stores.Damageable(t)
		table := storetest.OnlyFile(t, dir, manifest.FileTable)
		offset := hurt(table)
		before := storetest.ReadDir(t, dir)
		for _, o := range []*kv.Options{nil, {ReadOnly: true}} {
			_, err := kv.Open(dir, o)
			storetest.RequireDamage(t, err, table, offset)
		}
		storetest.RequireDamage(t, kv.Verify(t.Context(), dir, io.Discard), table, offset)
		after := storetest.ReadDir(t, dir)
		require.Equal(t, before, after, "%s: the evidence was touched", what)
	}
}

func TestADamagedBlockIsNamedAndTheRestIsRead(t *testing.T) {
	dir, m := stores.Damageable(t)
	table := storetest.OnlyFile(t, dir, manifest.FileTable)
	storetest.Rewrite(t, table, storetest.Flip(700)) // in the second block
	db := stores.OpenDir(t, dir, nil)
	failed := 0
	for k, v := range m {
		got, err := db.Get([]byte(k))
		if err != nil {
			failed++
			storetest.RequireDamage(t, err, table, -1)
			_, err = db.Has([]byte(k))
			require.ErrorIs(t, err, kv.ErrCorruption)
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
		storetest.RequireDamage(t, it.Error(), table, -1)
		require.False(t, it.Valid())
	}
	require.True(t, it.SeekGE([]byte("table/1")), "it goes on elsewhere")
	require.NoError(t, it.Error())
	require.NoError(t, it.Close())
	require.NoError(t, db.Close())
	var out bytes.Buffer
	storetest.RequireDamage(t, kv.Verify(t.Context(), dir, &out), table, -1)
	require.Contains(t, out.String(), "DAMAGED")
}

func TestADamagedFilterCostsReadsAndNoAnswer(t *testing.T) {
	dir, m := stores.Damageable(t)
	table := storetest.OnlyFile(t, dir, manifest.FileTable)
	r, err := sstable.Open(table, nil)
	require.NoError(t, err)
	p := r.Properties()
	require.NoError(t, r.Close())
	require.NotZero(t, p.FilterBytes)
	storetest.Rewrite(t, table, storetest.Flip(int(p.DataBytes)+40)) // the filter is the first block of the tail
	db := stores.OpenDir(t, dir, nil)
	storetest.RequireContents(t, m, db)
	for k, v := range m {
		got, err := db.Get([]byte(k))
		require.NoError(t, err)
		require.Equal(t, v, string(got))
		_, err = db.Get([]byte(k + "x"))
		require.ErrorIs(t, err, kv.ErrNotFound)
	}
	metrics := db.Metrics()
	require.EqualValues(t, 1, metrics.UnusableFilters)
	require.NotZero(t, metrics.Lookup().Unfiltered)
	require.NoError(t, db.Close())
	require.ErrorIs(t, kv.Verify(t.Context(), dir, io.Discard), kv.ErrCorruption)
}

func TestADamagedLogIsNamedAndATornOneIsNot(t *testing.T) {
	t.Parallel()
	dir, _ := stores.Damageable(t)
	log := storetest.OnlyFile(t, dir, manifest.FileWAL)
	storetest.Rewrite(t, log, storetest.Flip(3000))
	for _, o := range []*kv.Options{nil, {ReadOnly: true}} {
		_, err := kv.Open(dir, o)
		storetest.RequireDamage(t, err, log, -1)
		require.Regexp(t, `offset [1-9]\d*:`, err.Error())
	}

	dir, m := stores.Damageable(t)
	log = storetest.OnlyFile(t, dir, manifest.FileWAL)
	storetest.Rewrite(t, log, func(b []byte) []byte { return b[:len(b)-1] })
	for i := 190; i < 200; i++ { // the last batch
		delete(m, fmt.Sprintf("log/%03d", i))
	}
	db := stores.OpenDir(t, dir, &kv.Options{ReadOnly: true})
	storetest.RequireContents(t, m, db)
	require.NoError(t, db.Close())
	db = stores.OpenDir(t, dir, nil)
	storetest.RequireContents(t, m, db)
	require.NoError(t, db.Close())
}

// A power cut may keep later pages of what was not synced and lose earlier ones.
func TestALostPageThatNobodySyncedIsATornTail(t *testing.T) {
	dir := t.TempDir()
	db := stores.OpenDir(t, dir, nil)
	for i := range 100 {
		stores.Set(t, db, fmt.Sprintf("%02d", i), strings.Repeat("x", 1000))
	}
	stores.Crash(t, db)
	storetest.Rewrite(t, storetest.OnlyFile(t, dir, manifest.FileWAL), func(b []byte) []byte {
		clear(b[40960:45056])
		return b
	})
	db = stores.OpenDir(t, dir, nil)
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
	dir, _ := stores.Damageable(t)
	name := storetest.OnlyFile(t, dir, manifest.FileManifest)
	storetest.Rewrite(t, name, storetest.Flip(45)) // in the first edit: later ones follow
	_, err := kv.Open(dir, nil)
	storetest.RequireDamage(t, err, name, 32)

	dir, _ = stores.Damageable(t)
	name = storetest.OnlyFile(t, dir, manifest.FileManifest)
	require.NoError(t, os.Remove(name))
	_, err = kv.Open(dir, nil)
	require.Error(t, err)
	require.ErrorContains(t, err, name)

	dir, _ = stores.Damageable(t)
	name = filepath.Join(dir, manifest.CurrentName)
	line, err := os.ReadFile(name)
	require.NoError(t, err)
	for at := range line {
		require.NoError(t, os.WriteFile(name, storetest.Flip(at)(slices.Clone(line)), 0o600))
		_, err := kv.Open(dir, nil)
		require.Error(t, err)
		require.ErrorContains(t, err, name)
		require.NotErrorIs(t, err, kv.ErrForeignDirectory)
	}
	require.NoError(t, os.Remove(name))
	_, err = kv.Open(dir, nil)
	require.ErrorIs(t, err, kv.ErrCorruption)
	require.ErrorContains(t, err, name)
}

// A manifest ends in an edit that was not acknowledged: the store is as before it.
func TestATornManifestIsTheStoreBefore(t *testing.T) {
	dir, m := stores.Damageable(t)
	name := storetest.OnlyFile(t, dir, manifest.FileManifest)
	storetest.Rewrite(t, name, func(b []byte) []byte { return append(b, 1, 2, 3, 4, 5) })
	db := stores.OpenDir(t, dir, nil)
	storetest.RequireContents(t, m, db)
	require.NoError(t, db.Close())
}

// A damaged block ends a loop with an error, in both directions, with and without values.
func TestAllOfADamagedStore(t *testing.T) {
	dir, m := stores.Damageable(t)
	table := storetest.OnlyFile(t, dir, manifest.FileTable)
	storetest.Rewrite(t, table, storetest.Flip(9000)) // in the middle
	for _, mapped := range []bool{false, true} {
		db := stores.OpenDir(t, dir, &kv.Options{MemoryMap: mapped})
		for _, keysOnly := range []bool{false, true} {
			o, before := &kv.IterOptions{KeysOnly: keysOnly, Prefix: []byte("table/")}, errors.New("of before the loop")
			err := before
			for name, seq := range map[string]iter.Seq2[[]byte, []byte]{"All": db.All(o, &err),
				"Backward": db.Backward(o, &err)} {
				n := 0
				for k, v := range seq {
					if n++; !keysOnly {
						require.Equal(t, m[string(k)], string(v))
					}
				}
				require.NotZero(t, n, "%s: there are blocks before it", name)
				require.Less(t, n, 200)
				storetest.RequireDamage(t, err, table, -1)
				err = before
				for range seq {
					break
				}
				require.NoError(t, err, "the loop did not reach it")
			}
		}
		require.NoError(t, db.Close())
	}
}
