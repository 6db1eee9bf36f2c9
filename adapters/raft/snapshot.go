package siftraft

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/hashicorp/raft"

	"github.com/siftkv/siftkv/kv"
)

// Snapshot makes a checkpoint of the state: it flushes the memtable and links files, so that it takes as long as
// that, and no longer for a large state. All that was applied before is durable in the state's store when it returns.
func (f *FSM) Snapshot() (raft.FSMSnapshot, error) {
	if err := f.Err(); err != nil {
		return nil, err
	}
	g, err := f.acquire()
	if err != nil {
		return nil, err
	}
	defer f.release(g)
	dir := f.newName(snapshotPrefix)
	if err := g.db.Checkpoint(context.Background(), dir); err != nil {
		return nil, err
	}
	o := f.kv
	o.ReadOnly, o.CacheSize, o.MemoryLimit, o.Events = true, -1, 0, kv.Events{}
	return &snapshot{dir, &o}, nil
}

// A snapshot is a checkpoint in a directory of its own.
type snapshot struct {
	dir  string
	opts *kv.Options
}

// Persist writes the checkpoint to sink, as a stream of [kv.DB.Backup], and closes sink.
func (s *snapshot) Persist(sink raft.SnapshotSink) error {
	err := s.write(sink)
	if err == nil {
		err = sink.Close()
	}
	if err != nil {
		return errors.Join(fmt.Errorf("siftraft: write a snapshot: %w", err), sink.Cancel())
	}
	return nil
}

func (s *snapshot) write(w io.Writer) (err error) {
	db, err := kv.Open(s.dir, s.opts)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	_, err = db.Backup(context.Background(), w, kv.BackupMark{})
	return err
}

// Release removes the checkpoint.
func (s *snapshot) Release() {
	_ = os.RemoveAll(s.dir) // what is left of it is removed by the next OpenFSM
}

// Restore makes the state that of a snapshot, which it checks while it reads it. It is made beside the state that is
// there, and takes its place in one step, durably: after an error or a crash the state is the one or the other. Views
// that are under way go on with the one before.
func (f *FSM) Restore(stream io.ReadCloser) error {
	if err := f.restore(stream, nil); err != nil {
		return fmt.Errorf("siftraft: restore a snapshot: %w", err)
	}
	return nil
}

// restore is Restore of a snapshot that has all up to a position, which the stream says itself if at is nil: it then
// does not count the entries behind the last command, which change no state.
func (f *FSM) restore(stream io.Reader, at *Position) error {
	before, err := f.acquire()
	if err != nil {
		return err
	}
	defer f.release(before)
	dir := f.newName(storePrefix)
	db, applied, err := f.receive(stream, dir, at)
	if err != nil {
		return errors.Join(err, os.RemoveAll(dir))
	}
	if err := f.replace(before, &generation{db: db, dir: dir, users: 1}, applied); err != nil {
		return errors.Join(err, db.Close()) // CURRENT may name it
	}
	return nil
}

// receive makes a store of a snapshot, and opens it.
func (f *FSM) receive(stream io.Reader, dir string, at *Position) (*kv.DB, Position, error) {
	if err := kv.Restore(context.Background(), stream, dir, &f.kv); err != nil {
		return nil, Position{}, err
	}
	db, err := kv.Open(dir, &f.kv)
	if err != nil {
		return nil, Position{}, err
	}
	applied, err := readPosition(db)
	if err == nil && at != nil {
		applied = *at
		err = db.Set([]byte(AppliedKey), applied.record(), kv.Sync)
	}
	if err != nil {
		return nil, Position{}, errors.Join(err, db.Close())
	}
	return db, applied, nil
}

// CatchUp restores the newest snapshot of a node if the state has not come as far. With NoSnapshotRestoreOnStart of
// [raft.Config] raft leaves that to its caller, and the state need not be read from a snapshot whenever a node
// starts: call CatchUp before NewRaft, always. A node that was killed between the arrival of a snapshot and its
// restore would lack what is in it.
func (f *FSM) CatchUp(snapshots raft.SnapshotStore) error {
	list, err := snapshots.List()
	if err != nil || len(list) == 0 || list[0].Index <= f.Applied().Index {
		return err
	}
	at := Position{list[0].Index, list[0].Term}
	_, stream, err := snapshots.Open(list[0].ID)
	if err == nil {
		err = errors.Join(f.restore(stream, &at), stream.Close())
	}
	if err != nil {
		return fmt.Errorf("siftraft: restore the snapshot up to entry %d: %w", at.Index, err)
	}
	return nil
}
