package siftraft

import (
	"bytes"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/hashicorp/raft"
	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/kv"
	"github.com/siftkv/siftkv/kv/objects"
)

func openFSM(t testing.TB, dir string, o *FSMOptions) *FSM {
	t.Helper()
	f, err := OpenFSM(dir, o)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, f.Close()) })
	return f
}

// set returns an entry with a command that sets a key.
func set(t testing.TB, index uint64, key, value string) *raft.Log {
	var c Command
	require.NoError(t, c.Set([]byte(key), []byte(value)))
	return &raft.Log{Index: index, Term: 1, Type: raft.LogCommand, Data: c.Bytes()}
}

// contents returns what an FSM's state has, as text, without the FSM's own key.
func contents(t testing.TB, f *FSM) string {
	t.Helper()
	var text strings.Builder
	require.NoError(t, f.View(func(s *kv.Snapshot) error {
		it, err := s.NewIter(nil)
		require.NoError(t, err)
		for ok := it.First(); ok; ok = it.Next() {
			if string(it.Key()) != AppliedKey {
				fmt.Fprintf(&text, "%s=%s ", it.Key(), it.Value())
			}
		}
		return errors.Join(it.Error(), it.Close())
	}))
	return text.String()
}

func TestApply(t *testing.T) {
	dir := t.TempDir()
	f := openFSM(t, dir, nil)
	require.Zero(t, f.Applied())
	require.Nil(t, f.Apply(set(t, 2, "a", "1")))
	require.Equal(t, Position{2, 1}, f.Applied())

	var deletes Command
	require.NoError(t, deletes.Delete([]byte("a")))
	require.NoError(t, deletes.DeleteRange([]byte("x"), nil))
	responses := f.ApplyBatch([]*raft.Log{
		set(t, 3, "x", "1"), set(t, 4, "y", "2"), set(t, 5, "b", "3"),
		{Index: 6, Term: 2, Type: raft.LogConfiguration, Data: []byte("not a command")},
		{Index: 7, Term: 2, Type: raft.LogCommand, Data: []byte("nor is this")},
		{Index: 9, Term: 2, Type: raft.LogCommand, Data: deletes.Bytes()},
		set(t, 10, "c", "4"),
	})
	require.Len(t, responses, 7)
	require.ErrorIs(t, responses[4].(error), ErrCommand)
	responses[4] = nil
	require.Equal(t, make([]any, 7), responses)
	require.Equal(t, "b=3 c=4 ", contents(t, f))
	require.Equal(t, Position{10, 1}, f.Applied())

	require.NoError(t, f.Close())
	again := openFSM(t, dir, nil)
	require.Equal(t, Position{10, 1}, again.Applied())
	require.Equal(t, "b=3 c=4 ", contents(t, again))
}

// count is an Apply that does something else when it does it twice: it counts entries, and chains their data.
func count(tx *kv.Tx, e *raft.Log) any {
	chain, err := tx.Get([]byte("chain"))
	if err != nil && !errors.Is(err, kv.ErrNotFound) {
		return err
	}
	chain = append(append(chain, e.Data...), ';')
	return errors.Join(tx.Set([]byte("chain"), chain), tx.Set([]byte("last"), e.Data))
}

func data(first, last uint64) (all []*raft.Log) {
	for i := first; i <= last; i++ {
		all = append(all, &raft.Log{Index: i, Term: 1, Type: raft.LogCommand, Data: fmt.Appendf(nil, "%d", i)})
	}
	return all
}

func TestEntriesAreAppliedOnce(t *testing.T) {
	dir := t.TempDir()
	o := &FSMOptions{Apply: count}
	f := openFSM(t, dir, o)
	require.Equal(t, make([]any, 3), f.ApplyBatch(data(1, 3)))
	require.Equal(t, make([]any, 3), f.ApplyBatch(data(1, 3)), "as after a restart")
	require.Equal(t, make([]any, 4), f.ApplyBatch(data(2, 5)))
	require.Nil(t, f.Apply(data(5, 5)[0]))
	require.Equal(t, "chain=1;2;3;4;5; last=5 ", contents(t, f))
	require.NoError(t, f.Close())

	again := openFSM(t, dir, o)
	require.Equal(t, make([]any, 6), again.ApplyBatch(data(1, 6)))
	require.Equal(t, "chain=1;2;3;4;5;6; last=6 ", contents(t, again))
}

// Entries that are larger together than a portion are committed in several steps, of which each says how far it goes.
func TestLargeEntriesAreAppliedInPortions(t *testing.T) {
	f := openFSM(t, t.TempDir(), &FSMOptions{Store: &kv.Options{MemtableSize: 64 << 20}})
	var all []*raft.Log
	for i := range uint64(6) {
		value := string(bytes.Repeat([]byte{'v'}, portionBytes/3*int(i)))
		all = append(all, set(t, i+1, strconv.FormatUint(i, 10), value))
	}
	require.Equal(t, make([]any, 6), f.ApplyBatch(all))
	require.NoError(t, f.View(func(s *kv.Snapshot) error {
		for i := range 6 {
			value, err := s.Get(fmt.Append(nil, i))
			require.NoError(t, err)
			require.Len(t, value, portionBytes/3*i)
		}
		return nil
	}))
	require.Equal(t, Position{6, 1}, f.Applied())
}

func TestTheFSMsKeyOutlivesEveryDeletion(t *testing.T) {
	dir := t.TempDir()
	f := openFSM(t, dir, nil)
	require.Nil(t, f.Apply(set(t, 1, "a", "1")))
	var all Command
	require.NoError(t, all.DeleteRange(nil, nil))
	require.Nil(t, f.Apply(&raft.Log{Index: 2, Term: 1, Data: all.Bytes()}))
	require.Equal(t, "", contents(t, f))
	require.NoError(t, f.Close())
	require.Equal(t, Position{2, 1}, openFSM(t, dir, nil).Applied())
}

func TestAViewIsOneState(t *testing.T) {
	f := openFSM(t, t.TempDir(), nil)
	require.Nil(t, f.Apply(set(t, 1, "a", "1")))
	require.NoError(t, f.View(func(s *kv.Snapshot) error {
		require.Nil(t, f.Apply(set(t, 2, "a", "2")))
		value, err := s.Get([]byte("a"))
		require.NoError(t, err)
		require.Equal(t, "1", string(value))
		return nil
	}))
	require.Equal(t, "a=2 ", contents(t, f))
	wrong := errors.New("wrong")
	require.ErrorIs(t, f.View(func(*kv.Snapshot) error { return wrong }), wrong)
}

// What raft committed and the store cannot write ends the FSM: an entry after it would be applied to another state than
// on other nodes. A snapshot would have raft forget the entry.
func TestAnEntryThatCannotBeWrittenEndsTheFSM(t *testing.T) {
	f := openFSM(t, t.TempDir(), &FSMOptions{Apply: func(tx *kv.Tx, e *raft.Log) any {
		return tx.Set(bytes.Repeat([]byte("k"), len(e.Data)*kv.MaxKeySize), nil)
	}})
	require.Nil(t, f.Apply(&raft.Log{Index: 1, Term: 1, Data: []byte("1")}))
	require.NoError(t, f.Err())
	responses := f.ApplyBatch([]*raft.Log{
		{Index: 2, Term: 1, Data: []byte("12")}, {Index: 3, Term: 1, Data: []byte("1")},
	})
	require.ErrorIs(t, responses[0].(error), kv.ErrTooLarge)
	require.Equal(t, responses[0], responses[1])
	require.ErrorIs(t, f.Err(), kv.ErrTooLarge)
	require.ErrorContains(t, f.Err(), "after entry 1")
	require.Equal(t, f.Err(), f.Apply(&raft.Log{Index: 4, Term: 1, Data: []byte("1")}))
	_, err := f.Snapshot()
	require.Equal(t, f.Err(), err)
	require.Equal(t, Position{1, 1}, f.Applied())
}

func TestAClosedFSM(t *testing.T) {
	f, err := OpenFSM(t.TempDir(), nil)
	require.NoError(t, err)
	require.NoError(t, f.Close())
	require.NoError(t, f.Close())
	require.ErrorIs(t, f.Apply(set(t, 1, "a", "1")).(error), kv.ErrClosed)
	require.ErrorIs(t, f.View(func(*kv.Snapshot) error { return nil }), kv.ErrClosed)
	_, err = f.Metrics()
	require.ErrorIs(t, err, kv.ErrClosed)
	_, err = f.Snapshot()
	require.ErrorIs(t, err, kv.ErrClosed)
	require.ErrorIs(t, f.Restore(stream(nil)), kv.ErrClosed)
}

func TestOptionsOfAnFSM(t *testing.T) {
	for _, o := range []*kv.Options{{InMemory: true}, {ReadOnly: true}, {Objects: &objects.Config{}}} {
		_, err := OpenFSM(t.TempDir(), &FSMOptions{Store: o})
		require.ErrorIs(t, err, kv.ErrInvalidOptions)
	}
	_, err := OpenFSM("", nil)
	require.ErrorIs(t, err, kv.ErrInvalidOptions)
}
