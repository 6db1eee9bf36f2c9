package siftraft

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/hashicorp/raft"
	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/kv"
)

func stream(b []byte) io.ReadCloser { return io.NopCloser(bytes.NewReader(b)) }

// A sink keeps what a snapshot writes, up to room bytes.
type sink struct {
	bytes.Buffer
	room             int
	closed, canceled int
}

var errSinkFull = errors.New("the sink is full")

func (s *sink) Write(b []byte) (int, error) {
	if s.room < len(b) {
		return 0, errSinkFull
	}
	s.room -= len(b)
	return s.Buffer.Write(b)
}

func (s *sink) Close() error  { s.closed++; return nil }
func (s *sink) Cancel() error { s.canceled++; return nil }
func (s *sink) ID() string    { return "sink" }

// persist returns the stream of a snapshot of f.
func persist(t testing.TB, f *FSM) []byte {
	t.Helper()
	snap, err := f.Snapshot()
	require.NoError(t, err)
	s := &sink{room: 1 << 30}
	require.NoError(t, snap.Persist(s))
	require.Equal(t, []int{1, 0}, []int{s.closed, s.canceled})
	snap.Release()
	return s.Bytes()
}

// names returns what is in an FSM's directory.
func names(t testing.TB, dir string) (all []string) {
	t.Helper()
	list, err := os.ReadDir(dir)
	require.NoError(t, err)
	for _, e := range list {
		all = append(all, e.Name())
	}
	return all
}

func TestASnapshotIsTheStateOfItsMoment(t *testing.T) {
	dir := t.TempDir()
	f := openFSM(t, dir, nil)
	require.Nil(t, f.Apply(set(t, 5, "a", "1")))
	snap, err := f.Snapshot()
	require.NoError(t, err)
	require.Nil(t, f.Apply(set(t, 6, "a", "2")))
	s := &sink{room: 1 << 30}
	require.NoError(t, snap.Persist(s))
	require.Equal(t, []string{"CURRENT", "snapshot-2", "store-1"}, names(t, dir))
	snap.Release()
	require.Equal(t, []string{"CURRENT", "store-1"}, names(t, dir))
	require.Equal(t, "a=2 ", contents(t, f))

	there := t.TempDir()
	other := openFSM(t, there, nil)
	require.Nil(t, other.Apply(set(t, 1, "b", "old")))
	require.NoError(t, other.Restore(stream(s.Bytes())))
	require.Equal(t, "a=1 ", contents(t, other))
	require.Equal(t, Position{5, 1}, other.Applied())
	require.Equal(t, []string{"CURRENT", "store-2"}, names(t, there))
	require.Nil(t, other.Apply(set(t, 6, "a", "2")))
	require.Equal(t, "a=2 ", contents(t, other))

	require.NoError(t, other.Close())
	again := openFSM(t, there, nil)
	require.Equal(t, "a=2 ", contents(t, again))
	require.Equal(t, Position{6, 1}, again.Applied())
	require.NoError(t, again.Restore(stream(persist(t, f))))
	require.Equal(t, "a=2 ", contents(t, again))
	require.Equal(t, []string{"CURRENT", "store-3"}, names(t, there))
}

// Raft restores a snapshot that is older than the state when a node starts, and then applies what came after it.
func TestAnOlderSnapshotIsRestoredToo(t *testing.T) {
	f := openFSM(t, t.TempDir(), &FSMOptions{Apply: count})
	f.ApplyBatch(data(1, 3))
	old := persist(t, f)
	f.ApplyBatch(data(4, 6))
	require.NoError(t, f.Restore(stream(old)))
	require.Equal(t, Position{3, 1}, f.Applied())
	f.ApplyBatch(data(4, 7))
	require.Equal(t, "chain=1;2;3;4;5;6;7; last=7 ", contents(t, f))
}

func TestADamagedSnapshotChangesNothing(t *testing.T) {
	f := openFSM(t, t.TempDir(), nil)
	require.Nil(t, f.Apply(set(t, 1, "a", "1")))
	whole := persist(t, f)
	dir := t.TempDir()
	other := openFSM(t, dir, nil)
	require.Nil(t, other.Apply(set(t, 9, "b", "2")))
	refused := func(name string, s []byte) {
		require.Error(t, other.Restore(stream(s)), name)
		require.Equal(t, "b=2 ", contents(t, other), name)
		require.Equal(t, Position{9, 1}, other.Applied(), name)
		require.Equal(t, []string{"CURRENT", "store-1"}, names(t, dir), name)
	}
	for n := 0; n < len(whole); n += 1 + len(whole)/50 {
		refused("cut short", whole[:n])
		flipped := slices.Clone(whole)
		flipped[n] ^= 0x10
		refused("a bit", flipped)
	}
	refused("something else", []byte("no snapshot"))
	require.Nil(t, other.Apply(set(t, 10, "c", "3")))
	require.Equal(t, "b=2 c=3 ", contents(t, other))
	require.NoError(t, other.Restore(stream(whole)))
	require.Equal(t, "a=1 ", contents(t, other))
}

func TestASnapshotThatCannotBeWrittenIsCanceled(t *testing.T) {
	dir := t.TempDir()
	f := openFSM(t, dir, nil)
	require.Nil(t, f.Apply(set(t, 1, "a", "1")))
	snap, err := f.Snapshot()
	require.NoError(t, err)
	s := &sink{room: 100}
	require.ErrorIs(t, snap.Persist(s), errSinkFull)
	require.Equal(t, []int{0, 1}, []int{s.closed, s.canceled})
	snap.Release()
	require.Equal(t, []string{"CURRENT", "store-1"}, names(t, dir))
}

// A view of a state that is not current any more ends with the state that it began with, which goes with it.
func TestAViewOutlivesARestore(t *testing.T) {
	f := openFSM(t, t.TempDir(), nil)
	require.Nil(t, f.Apply(set(t, 1, "a", "1")))
	s := persist(t, f)
	require.Nil(t, f.Apply(set(t, 2, "a", "2")))
	require.NoError(t, f.View(func(view *kv.Snapshot) error {
		require.NoError(t, f.Restore(stream(s)))
		require.Equal(t, "a=1 ", contents(t, f))
		require.Equal(t, []string{"CURRENT", "store-1", "store-3"}, names(t, f.dir))
		value, err := view.Get([]byte("a"))
		require.NoError(t, err)
		require.Equal(t, "2", string(value))
		return nil
	}))
	require.Equal(t, []string{"CURRENT", "store-3"}, names(t, f.dir))
}

func TestAnFSMThatFailedTakesASnapshot(t *testing.T) {
	f := openFSM(t, t.TempDir(), nil)
	require.Nil(t, f.Apply(set(t, 1, "a", "1")))
	s := persist(t, f)
	failed := f.fail(errors.New("the disk is broken"))
	require.Equal(t, failed, f.Apply(set(t, 2, "a", "2")))
	require.NoError(t, f.Restore(stream(s)))
	require.NoError(t, f.Err())
	require.Nil(t, f.Apply(set(t, 2, "a", "2")))
	require.Equal(t, "a=2 ", contents(t, f))
}

// snapshotOf puts a snapshot of f in a store, as raft does.
func snapshotOf(t testing.TB, snaps raft.SnapshotStore, f *FSM, index uint64) {
	t.Helper()
	_, trans := raft.NewInmemTransport("")
	s, err := snaps.Create(1, index, 7, raft.Configuration{}, 1, trans)
	require.NoError(t, err)
	snap, err := f.Snapshot()
	require.NoError(t, err)
	require.NoError(t, snap.Persist(s))
	snap.Release()
}

func TestCatchUp(t *testing.T) {
	dir := t.TempDir()
	snaps, err := raft.NewFileSnapshotStore(t.TempDir(), 2, io.Discard)
	require.NoError(t, err)
	f := openFSM(t, dir, &FSMOptions{Apply: count})
	require.NoError(t, f.CatchUp(snaps), "there is none")
	f.ApplyBatch(data(1, 3))
	snapshotOf(t, snaps, f, 5) // entries 4 and 5 are no commands
	f.ApplyBatch(data(6, 6))
	require.NoError(t, f.CatchUp(snaps))
	require.Equal(t, []string{"CURRENT", "store-1"}, names(t, dir), "the state is newer than the snapshot")

	// A node that was killed when it had received a snapshot, and not restored it yet.
	behind := openFSM(t, t.TempDir(), &FSMOptions{Apply: count})
	behind.ApplyBatch(data(1, 2))
	require.NoError(t, behind.CatchUp(snaps))
	require.Equal(t, "chain=1;2;3; last=3 ", contents(t, behind))
	require.Equal(t, Position{5, 7}, behind.Applied(), "the snapshot's, not its last command's")
	where := names(t, behind.dir)
	require.NoError(t, behind.CatchUp(snaps))
	require.Equal(t, where, names(t, behind.dir), "it has come as far")
	behind.ApplyBatch(data(6, 6))
	require.Equal(t, contents(t, f), contents(t, behind))
	require.NoError(t, behind.Close())
	again := openFSM(t, behind.dir, nil)
	require.Equal(t, Position{6, 1}, again.Applied())
}

// Raft takes the newest snapshot for what the FSM has: an older one in its place would lose what is between.
func TestCatchUpTakesTheNewestSnapshotOrNone(t *testing.T) {
	where := t.TempDir()
	snaps, err := raft.NewFileSnapshotStore(where, 2, io.Discard)
	require.NoError(t, err)
	f := openFSM(t, t.TempDir(), nil)
	require.Nil(t, f.Apply(set(t, 1, "a", "1")))
	snapshotOf(t, snaps, f, 1)
	require.Nil(t, f.Apply(set(t, 2, "a", "2")))
	snapshotOf(t, snaps, f, 2)
	list, err := snaps.List()
	require.NoError(t, err)
	state := filepath.Join(where, "snapshots", list[0].ID, "state.bin")
	require.NoError(t, os.WriteFile(state, []byte("damaged"), 0o600))
	behind := openFSM(t, t.TempDir(), nil)
	require.ErrorContains(t, behind.CatchUp(snaps), "up to entry 2")
	require.Zero(t, behind.Applied())
}
