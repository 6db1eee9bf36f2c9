package version

import (
	"fmt"
	"io/fs"
	"runtime"
	"slices"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/siftkv/siftkv/internal/base"
	"github.com/siftkv/siftkv/internal/manifest"
	"github.com/siftkv/siftkv/internal/property"
	"github.com/siftkv/siftkv/internal/scale"
	"github.com/siftkv/siftkv/internal/tablecache"
	"github.com/siftkv/siftkv/internal/vfs"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// A versionModel is the tables of a version by number, and the edits that a manifest has.
type versionModel struct {
	v      *Version
	state  *ManifestState
	tables map[uint64]manifest.AddedTable
	num    uint64
	seq    base.SeqNum
}

// edit returns a random edit: in each of four runs, one of them of level 0, and once more in
// level 0, where each table is a run, slot i of a key space is free, or has one table.
func (m *versionModel) edit(t *rapid.T) *manifest.Edit {
	m.seq++
	e := &manifest.Edit{LastSeq: m.seq}
	runs := []RunID{{}, {Run: 1 << 40}, {Level: 5}, {Level: 6, Run: 3}, {Level: 6}}
	taken := map[string]uint64{}
	for num, a := range m.tables {
		taken[fmt.Sprint(a.Level, a.Run, string(a.Table.Smallest))] = num
	}
	for range rapid.IntRange(1, 10).Draw(t, "changes") {
		id := rapid.SampledFrom(runs).Draw(t, "run")
		slot := rapid.IntRange(0, 20).Draw(t, "slot")
		place := fmt.Sprint(id.Level, id.Run, string(keyAt(slot)))
		num, full := taken[place]
		switch {
		case !full:
			m.num++
			a := manifest.AddedTable{Level: id.Level, Run: id.Run, Table: manifest.Table{Num: m.num, Size: 1,
				Entries: 1, Smallest: keyAt(slot), Largest: keyAt(slot), LargestSeq: m.seq}}
			if rapid.Bool().Draw(t, "tombstones") {
				a.Table.RangeDeletes = 1
			}
			e.Added = append(e.Added, a)
			taken[place] = m.num
		case slices.ContainsFunc(e.Added, func(a manifest.AddedTable) bool { return a.Table.Num == num }):
		default:
			a := m.tables[num]
			delete(taken, place)
			e.Deleted = append(e.Deleted, manifest.DeletedTable{Level: a.Level, Num: num})
			to := rapid.SampledFrom(runs).Draw(t, "to")
			if moved := fmt.Sprint(to.Level, to.Run, string(keyAt(slot))); taken[moved] == 0 {
				a.Level, a.Run = to.Level, to.Run
				e.Added = append(e.Added, a)
				taken[moved] = num
			}
		}
	}
	for _, d := range e.Deleted {
		delete(m.tables, d.Num)
	}
	for _, a := range e.Added {
		m.tables[a.Table.Num] = a
	}
	return e
}

func (m *versionModel) check(t *rapid.T, v *Version) {
	found := map[uint64]manifest.AddedTable{}
	e := &manifest.Edit{}
	v.Describe(e)
	for _, a := range e.Added {
		found[a.Table.Num] = a
	}
	require.Equal(t, m.tables, found)
	require.Len(t, e.Added, len(m.tables))
	want := Totals{}
	v.All(func(level int, tb *Table) {
		a := m.tables[tb.Num]
		id, ok := v.RunOf(tb)
		require.True(t, ok)
		require.Equal(t, runOf(&a), id)
		want.Tables++
		want.RangeDeletes += tb.RangeDeletes
		want.LargestSeq = max(want.LargestSeq, tb.LargestSeq)
	})
	for _, seq := range []base.SeqNum{0, m.seq / 2, m.seq - min(m.seq, 3), m.seq} {
		var newer []*Table
		v.All(func(_ int, tb *Table) {
			if tb.LargestSeq > seq {
				newer = append(newer, tb)
			}
		})
		require.Equal(t, newer, v.WrittenAfter(seq))
	}
	var totals Totals
	for n := range v.Levels {
		totals.Tables += v.Levels[n].Len()
		totals.RangeDeletes += v.Levels[n].RangeDeletes
	}
	require.Equal(t, []any{want.Tables, want.RangeDeletes, want.LargestSeq},
		[]any{totals.Tables, totals.RangeDeletes, v.LargestSeq})
	require.Equal(t, m.seq, v.LastSeq)
	require.True(t, slices.IsSortedFunc(v.Levels[0].Runs, func(a, b *Run) int { return compareAge(b, a) }))
	for i, r := range v.Runs {
		if i > 0 {
			before := v.Runs[i-1]
			require.True(t, before.Level < r.Level || before.Level == r.Level && (r.Level == 0 || before.Num > r.Num))
		}
		var with []*Table
		if r.WithTombstones != nil {
			with = r.WithTombstones.Tables()
		}
		require.Equal(t, withTombstones(r.Tables()), with)
	}
}

func (v *Version) fileIndex() map[uint64]*Table {
	tables := map[uint64]*Table{}
	v.All(func(_ int, tb *Table) { tables[tb.Num] = tb })
	return tables
}

// Edits make versions that hold what the edits say and share the tables that stay, whether
// each is applied to the version before, or a follower applies several at once that it has
// read of a manifest, and may drop what comes of it.
func TestVersionsHoldWhatEditsSay(t *testing.T) {
	property.Check(t, func(t *rapid.T) {
		m := &versionModel{v: &Version{}, state: NewManifestState(), tables: map[uint64]manifest.AddedTable{}}
		view := &Version{}
		for range rapid.IntRange(1, 15).Draw(t, "edits") {
			e := m.edit(t)
			next, err := m.v.Apply(e)
			require.NoError(t, err)
			m.check(t, next)
			before := m.v.fileIndex()
			for num, tb := range next.fileIndex() {
				require.True(t, before[num] == nil || before[num] == tb)
			}
			m.v = next
			require.NoError(t, m.state.Apply(e))
			switch rapid.IntRange(0, 2).Draw(t, "the follower") {
			case 0: // waits
			case 1:
				_, err := m.state.Version(view) // and drops it
				require.NoError(t, err)
			case 2:
				followed, err := m.state.Version(view)
				require.NoError(t, err)
				m.check(t, followed)
				before := view.fileIndex()
				for num, tb := range followed.fileIndex() {
					require.True(t, before[num] == nil || before[num] == tb)
				}
				view = followed
			}
		}
	})
}

// An edit of a version with many tables makes and visits little of it, and so does a follower
// that comes to know of it.
func TestAnEditCostsWhatItChanges(t *testing.T) {
	scale.OneGoroutine(t, "edits of one; TestReadersHoldTablesWhileVersionsChange has several")
	allocated := func(f func()) uint64 {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		f()
		runtime.ReadMemStats(&after)
		return after.TotalAlloc - before.TotalAlloc
	}
	var edits, views []uint64
	for _, tables := range []int{1_000, 10_000, 100_000} {
		v, num := wide(t, tables)
		whole, s := &manifest.Edit{}, NewManifestState()
		v.Describe(whole)
		require.NoError(t, s.Apply(whole))
		view, err := s.Version(&Version{})
		require.NoError(t, err)
		nodes := nodesOf(v.Runs[0].root)
		e := replacing(num, tables/2)
		var next *Version
		edits = append(edits, allocated(func() {
			if next, err = v.Apply(e); err != nil {
				panic(err)
			}
		}))
		made := 0
		for n := range nodesOf(next.Runs[0].root) {
			if !nodes[n] {
				made++
			}
		}
		require.LessOrEqual(t, made, 2*height(next.Runs[0].root), "%d of %d nodes", made, len(nodes))
		require.NoError(t, s.Apply(e))
		views = append(views, allocated(func() {
			if _, err = s.Version(view); err != nil {
				panic(err)
			}
		}))
	}
	for i := range edits[1:] {
		require.Less(t, edits[i+1], 3*edits[i], "bytes of edits: %v", edits)
		require.Less(t, views[i+1], 3*views[i], "bytes of views: %v", views)
	}
}

// The files that a version has and the one before it has not are opened side by side, up to a limit.
func TestNewFilesAreOpenedSideBySide(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		opened := map[string]bool{}
		var mutex sync.Mutex
		open := func(name string) (vfs.ReadFile, error) {
			time.Sleep(time.Second)
			mutex.Lock()
			defer mutex.Unlock()
			opened[name] = true
			return nil, fmt.Errorf("%s: %w", name, fs.ErrNotExist)
		}
		path := func(num uint64) string { return strconv.Itoa(int(num)) }
		c, blobs := &tablecache.Cache{Path: path, OpenFile: open}, &BlobCache{Path: path, OpenFile: open}
		v, num := wide(t, 3)
		e := &manifest.Edit{AddedBlobs: []manifest.BlobFile{{Num: num, Size: 1000, Records: 1}}}
		v, err := v.Apply(e)
		require.NoError(t, err)
		began := time.Now()
		require.ErrorIs(t, v.OpenNew(c, blobs, 3), fs.ErrNotExist)
		require.Equal(t, map[string]bool{path(num): true}, opened)
		clear(opened)
		e.Added = append(e.Added, wideTable(num+1, 3), wideTable(num+2, 4), wideTable(num+3, 5))
		v, err = (&Version{}).Apply(e)
		require.NoError(t, err)
		require.ErrorIs(t, v.OpenNew(c, blobs, 3), fs.ErrNotExist)
		require.Len(t, opened, 4)
		require.Equal(t, 3*time.Second, time.Since(began))
		require.NoError(t, v.CloseNew(c))
	})
}
