package version

import (
	"sync"
	"testing"

	"github.com/siftkv/siftkv/internal/manifest"
	"github.com/siftkv/siftkv/internal/property"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// A historyModel knows of each version in use which tables it lists.
type historyModel struct {
	h       History
	current *Version
	lists   map[*Version]map[*Table]bool
	refs    []*Version // references of readers
	closed  map[*Table]bool
	last    map[*Table]bool // what the version lists that was installed last
	num     uint64
}

func (m *historyModel) install(t *rapid.T) {
	e := &manifest.Edit{}
	if m.current != nil {
		m.current.All(func(level int, tb *Table) {
			switch rapid.IntRange(0, 5).Draw(t, "what of a table") {
			case 0: // it goes
				e.Deleted = append(e.Deleted, manifest.DeletedTable{Level: level, Num: tb.Num})
			case 1: // it moves
				e.Deleted = append(e.Deleted, manifest.DeletedTable{Level: level, Num: tb.Num})
				e.Added = append(e.Added, manifest.AddedTable{Level: (level + 1) % 7, Run: tb.Num, Table: tb.Table})
			}
		})
	}
	for range rapid.IntRange(0, 3).Draw(t, "new tables") {
		m.num++
		e.Added = append(e.Added, manifest.AddedTable{Table: manifest.Table{Num: m.num}})
	}
	base := m.current
	if base == nil {
		base = &Version{}
	}
	next, err := base.Apply(e)
	require.NoError(t, err)
	if rapid.IntRange(0, 4).Draw(t, "dropped") == 0 {
		return // an edit that could not be written
	}
	old := m.current
	m.h.Install(next)
	m.current, m.lists[next] = next, map[*Table]bool{}
	next.All(func(_ int, tb *Table) { m.lists[next][tb] = true })
	m.last = m.lists[next]
	if old != nil {
		m.unref(t, old)
	}
}

// unref gives a reference up: with a version's last one, exactly the tables that no other
// lists are not needed any more.
func (m *historyModel) unref(t *rapid.T, v *Version) {
	last := v.Unref()
	require.Equal(t, !last, v.InUse())
	if !last {
		return
	}
	want := map[*Table]bool{}
	for tb := range m.lists[v] {
		want[tb] = true
		for other, list := range m.lists {
			if other != v && list[tb] {
				delete(want, tb)
			}
		}
	}
	delete(m.lists, v)
	unused := m.h.retire(v).tables
	require.Len(t, unused, len(want))
	for _, tb := range unused {
		require.True(t, want[tb])
		require.False(t, m.closed[tb], "once")
		m.closed[tb] = true
		require.Equal(t, !m.last[tb], tb.obsolete, "what the last version lists stays")
	}
}

func TestTablesGoWithTheLastVersionThatListsThem(t *testing.T) {
	property.Check(t, func(t *rapid.T) {
		m := &historyModel{lists: map[*Version]map[*Table]bool{}, closed: map[*Table]bool{}}
		release := func() {
			i := rapid.IntRange(0, len(m.refs)-1).Draw(t, "reader")
			v := m.refs[i]
			m.refs = append(m.refs[:i], m.refs[i+1:]...)
			m.unref(t, v)
		}
		for range rapid.IntRange(1, 40).Draw(t, "steps") {
			switch what := rapid.IntRange(0, 3).Draw(t, "what"); {
			case what == 0 && m.current != nil:
				m.current.Ref()
				m.refs = append(m.refs, m.current)
			case what == 1 && len(m.refs) > 0:
				release()
			default:
				m.install(t)
			}
		}
		if v := m.current; v != nil { // the store is closed
			m.current = nil
			m.unref(t, v)
			for len(m.refs) > 0 {
				release()
			}
			for tb := range m.last {
				require.True(t, m.closed[tb])
			}
		}
		require.Empty(t, m.lists)
		require.Nil(t, m.h.newest)
	})
}

// Readers hold versions while an installer replaces them and one goroutine retires them: no
// reader sees a table that was given up.
func TestReadersHoldTablesWhileVersionsChange(t *testing.T) {
	var h History
	var mu sync.Mutex // the store's
	retired := make(chan *Version, 1000)
	current, err := (&Version{}).Apply(&manifest.Edit{})
	require.NoError(t, err)
	h.Install(current)
	unref := func(v *Version) {
		if v.Unref() {
			retired <- v
		}
	}
	var closed sync.Map
	var retirer, readers sync.WaitGroup
	retirer.Go(func() {
		for v := range retired {
			for _, tb := range h.retire(v).tables {
				_, twice := closed.LoadOrStore(tb, true)
				require.False(t, twice)
			}
		}
	})
	for range 4 {
		readers.Go(func() {
			for range 2000 {
				mu.Lock()
				v := current
				v.Ref()
				mu.Unlock()
				v.All(func(_ int, tb *Table) {
					_, gone := closed.Load(tb)
					require.False(t, gone)
				})
				unref(v)
			}
		})
	}
	for i := range uint64(2000) {
		e := &manifest.Edit{Added: []manifest.AddedTable{{Table: manifest.Table{Num: i + 1}}}}
		if i >= 5 {
			e.Deleted = []manifest.DeletedTable{{Num: i - 4}}
		}
		next, err := current.Apply(e)
		require.NoError(t, err)
		mu.Lock()
		old := current
		h.Install(next)
		current = next
		mu.Unlock()
		unref(old)
	}
	readers.Wait()
	unref(current)
	close(retired)
	retirer.Wait()
	n := 0
	closed.Range(func(any, any) bool { n++; return true })
	require.Equal(t, 2000, n)
}
