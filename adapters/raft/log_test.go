package siftraft

import (
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/hashicorp/raft"
	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/kv"
)

// openStore opens a store in memory, which ends with the test.
func openStore(t testing.TB) *Store {
	t.Helper()
	s, err := Open("", &kv.Options{InMemory: true})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	return s
}

// entry returns an entry that tells its index and its term.
func entry(index, term uint64) *raft.Log {
	return &raft.Log{Index: index, Term: term, Data: fmt.Appendf(nil, "%d/%d", index, term)}
}

func entries(first, last, term uint64) (all []*raft.Log) {
	for i := first; i <= last; i++ {
		all = append(all, entry(i, term))
	}
	return all
}

// requireLog checks that the log has entries of a term from one index to another, and no others; first 0: none.
func requireLog(t testing.TB, s raft.LogStore, first, last, term uint64) {
	t.Helper()
	requireEnds(t, s, first, last)
	var got raft.Log
	if first == 0 {
		require.Equal(t, raft.ErrLogNotFound, s.GetLog(1, &got))
		return
	}
	for i := first; i <= last; i++ {
		require.NoError(t, s.GetLog(i, &got))
		require.Equal(t, *entry(i, term), got)
	}
	require.Equal(t, raft.ErrLogNotFound, s.GetLog(first-1, &got))
	require.Equal(t, raft.ErrLogNotFound, s.GetLog(last+1, &got))
}

func requireEnds(t testing.TB, s raft.LogStore, first, last uint64) {
	t.Helper()
	gotFirst, err := s.FirstIndex()
	require.NoError(t, err)
	gotLast, err := s.LastIndex()
	require.NoError(t, err)
	require.Equal(t, []uint64{first, last}, []uint64{gotFirst, gotLast})
}

func TestLog(t *testing.T) {
	s := openStore(t)
	requireLog(t, s, 0, 0, 0)
	require.NoError(t, s.StoreLogs(nil))
	requireLog(t, s, 0, 0, 0)
	require.NoError(t, s.StoreLogs(entries(1, 3, 7)))
	requireLog(t, s, 1, 3, 7)
	require.NoError(t, s.StoreLog(entry(4, 7)))
	requireLog(t, s, 1, 4, 7)
}

func TestALogBeginsAnywhere(t *testing.T) {
	s := openStore(t)
	require.NoError(t, s.StoreLogs(entries(10_000, 10_004, 1)))
	requireLog(t, s, 10_000, 10_004, 1)
}

func TestALogMayEndAtTheLastIndex(t *testing.T) {
	s := openStore(t)
	require.NoError(t, s.StoreLog(entry(math.MaxUint64-1, 1)))
	require.NoError(t, s.StoreLog(entry(math.MaxUint64, 1)))
	requireEnds(t, s, math.MaxUint64-1, math.MaxUint64)
	require.NoError(t, s.DeleteRange(math.MaxUint64, math.MaxUint64))
	requireEnds(t, s, math.MaxUint64-1, math.MaxUint64-1)
	require.NoError(t, s.DeleteRange(0, math.MaxUint64))
	requireEnds(t, s, 0, 0)
}

func TestEntriesComeBackWhole(t *testing.T) {
	s := openStore(t)
	at := time.Date(2024, 2, 29, 23, 59, 59, 999_999_999, time.FixedZone("east", 7200))
	for i, want := range []raft.Log{
		{},
		{Data: []byte("data")},
		{Type: raft.LogConfiguration, Term: math.MaxUint64, Data: []byte{0}, Extensions: []byte("ext")},
		{Type: raft.LogNoop, Term: 1, Extensions: []byte{0, 1, 2}},
		{Type: 255, AppendedAt: at.UTC()},
		{AppendedAt: time.Unix(-1, 1).UTC()},
	} {
		want.Index = uint64(i) + 1
		require.NoError(t, s.StoreLog(&want))
		got := raft.Log{Index: 99, Term: 99, Type: 99, Data: []byte("x"), Extensions: []byte("x"), AppendedAt: at}
		require.NoError(t, s.GetLog(want.Index, &got))
		require.Equal(t, want, got, "nothing of what was there before is left")
		require.Equal(t, want.AppendedAt.IsZero(), got.AppendedAt.IsZero())
	}
	require.NoError(t, s.StoreLog(&raft.Log{Index: 7, AppendedAt: at}))
	var got raft.Log
	require.NoError(t, s.GetLog(7, &got))
	require.True(t, at.Equal(got.AppendedAt), "the moment is the same, in UTC")
}

func TestWhatGetLogReturnsIsTheCallers(t *testing.T) {
	s := openStore(t)
	written := entry(1, 1)
	written.Extensions = []byte("ext")
	require.NoError(t, s.StoreLog(written))
	copy(written.Data, "xxx")
	var a, b raft.Log
	require.NoError(t, s.GetLog(1, &a))
	require.Equal(t, "1/1", string(a.Data))
	copy(a.Data, "yyy")
	copy(a.Extensions, "yyy")
	require.Equal(t, "ext", string(written.Extensions))
	require.NoError(t, s.GetLog(1, &b))
	require.Equal(t, "1/1 ext", string(b.Data)+" "+string(b.Extensions))
}

func TestDeleteRange(t *testing.T) {
	for name, c := range map[string]struct{ from, to, first, last uint64 }{
		"nothing":                        {1000, 999, 1000, 1109},
		"in front":                       {0, 999, 1000, 1109},
		"behind":                         {1110, 5000, 1000, 1109},
		"the first":                      {1000, 1000, 1001, 1109},
		"a prefix":                       {1000, 1050, 1051, 1109},
		"a prefix and what is not there": {0, 1050, 1051, 1109},
		"the last":                       {1109, 1109, 1000, 1108},
		"a suffix":                       {1051, 1109, 1000, 1050},
		"a suffix and what is not there": {1051, math.MaxUint64, 1000, 1050},
		"all but the last":               {1000, 1108, 1109, 1109},
		"all":                            {1000, 1109, 0, 0},
		"all and more":                   {0, math.MaxUint64, 0, 0},
	} {
		t.Run(name, func(t *testing.T) {
			s := openStore(t)
			require.NoError(t, s.StoreLogs(entries(1000, 1109, 3)))
			require.NoError(t, s.DeleteRange(c.from, c.to))
			requireLog(t, s, c.first, c.last, 3)

			again, err := New(s.db, nil)
			require.NoError(t, err)
			requireLog(t, again, c.first, c.last, 3)

			next := c.last + 1
			require.NoError(t, s.StoreLog(entry(next, 3)))
			requireLog(t, s, max(c.first, min(next, 1)), next, 3)
		})
	}
}

func TestAHoleInTheMiddleIsKept(t *testing.T) {
	s := openStore(t)
	require.NoError(t, s.StoreLogs(entries(1, 9, 1)))
	require.NoError(t, s.DeleteRange(4, 6))
	requireEnds(t, s, 1, 9)
	for i := uint64(1); i <= 9; i++ {
		want := error(nil)
		if i >= 4 && i <= 6 {
			want = raft.ErrLogNotFound
		}
		require.Equal(t, want, s.GetLog(i, new(raft.Log)), "%d", i)
	}
	require.NoError(t, s.DeleteRange(1, 5))
	requireEnds(t, s, 7, 9)
	require.NoError(t, s.DeleteRange(8, 9))
	requireEnds(t, s, 7, 7)
}

func TestAnEntryReplacesTheOneOfItsIndex(t *testing.T) {
	s := openStore(t)
	require.NoError(t, s.StoreLogs(entries(1, 5, 1)))
	require.NoError(t, s.StoreLogs(entries(3, 3, 2)))
	requireEnds(t, s, 1, 5)
	var got raft.Log
	require.NoError(t, s.GetLog(3, &got))
	require.Equal(t, *entry(3, 2), got)
	require.NoError(t, s.GetLog(4, &got))
	require.Equal(t, *entry(4, 1), got)
}

// A follower that was killed between the snapshot that it installed and the removal of its log begins behind a gap.
// What is in front of the gap may be entries that were never committed.
func TestAGapRemovesWhatIsInFrontOfIt(t *testing.T) {
	s := openStore(t)
	require.NoError(t, s.StoreLogs(entries(1, 5, 1)))
	require.NoError(t, s.StoreLogs(entries(7, 8, 2)))
	requireLog(t, s, 7, 8, 2)
	require.NoError(t, s.StoreLogs(entries(9, 9, 2)))
	requireLog(t, s, 7, 9, 2)
	again, err := New(s.db, nil)
	require.NoError(t, err)
	requireLog(t, again, 7, 9, 2)
}

func TestRaftRemovesTheLogAfterASnapshot(t *testing.T) {
	cache, err := raft.NewLogCache(8, openStore(t))
	require.NoError(t, err)
	require.True(t, cache.IsMonotonic())
}

func TestStoresShareADB(t *testing.T) {
	db, err := kv.Open("", &kv.Options{InMemory: true})
	require.NoError(t, err)
	defer db.Close()
	require.NoError(t, db.Set([]byte("a"), []byte("the host's"), nil))
	require.NoError(t, db.Set([]byte("x"), []byte("the host's"), nil))
	one, err := New(db, []byte("n1/"))
	require.NoError(t, err)
	two, err := New(db, []byte("n2/"))
	require.NoError(t, err)
	require.NoError(t, one.StoreLogs(entries(1, 3, 1)))
	require.NoError(t, two.StoreLogs(entries(10, 20, 2)))
	require.NoError(t, one.SetUint64([]byte("CurrentTerm"), 1))
	requireLog(t, one, 1, 3, 1)
	requireLog(t, two, 10, 20, 2)
	_, err = two.GetUint64([]byte("CurrentTerm"))
	require.Equal(t, ErrKeyNotFound, err)
	require.NoError(t, one.DeleteRange(0, math.MaxUint64))
	requireLog(t, one, 0, 0, 0)
	requireLog(t, two, 10, 20, 2)
	require.NoError(t, one.Close(), "it is not its own")
	value, err := db.Get([]byte("x"))
	require.NoError(t, err)
	require.Equal(t, "the host's", string(value))
}

func TestAPrefixWithOtherKeysIsRefused(t *testing.T) {
	db, err := kv.Open("", &kv.Options{InMemory: true})
	require.NoError(t, err)
	defer db.Close()
	require.NoError(t, db.Set([]byte("apple"), nil, nil))
	require.NoError(t, db.Set([]byte("lime"), nil, nil))
	_, err = New(db, nil)
	require.ErrorContains(t, err, "lime")
}

func TestARecordOfAnotherVersionIsAnError(t *testing.T) {
	s := openStore(t)
	require.NoError(t, s.StoreLog(entry(1, 1)))
	require.NoError(t, s.db.Set(s.entryKey(1), []byte("\x02\x00"), nil))
	err := s.GetLog(1, new(raft.Log))
	require.ErrorIs(t, err, errEntry)
	require.ErrorContains(t, err, "entry 1")
}

func TestTheCommitIndexGoesWithTheNextEntries(t *testing.T) {
	s := openStore(t)
	commit := func(s *Store) uint64 {
		index, err := s.GetCommitIndex()
		require.NoError(t, err)
		return index
	}
	require.Zero(t, commit(s))
	require.NoError(t, s.StageCommitIndex(2))
	require.Zero(t, commit(s), "nothing was stored")
	require.NoError(t, s.StoreLogs(entries(1, 3, 1)))
	require.EqualValues(t, 2, commit(s))
	require.NoError(t, s.StageCommitIndex(9))
	require.NoError(t, s.StoreLogs(entries(4, 4, 1)))
	require.EqualValues(t, 4, commit(s), "no more than there are entries")
	require.NoError(t, s.StoreLogs(entries(5, 10, 1)))
	require.EqualValues(t, 9, commit(s))
	again, err := New(s.db, nil)
	require.NoError(t, err)
	require.EqualValues(t, 9, commit(again))
	require.NoError(t, again.StoreLogs(entries(11, 11, 1)))
	require.EqualValues(t, 9, commit(again), "what is not staged anew stays")
	require.NoError(t, again.DeleteRange(1, 11))
	require.Zero(t, commit(again))
}
