package siftraft

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/hashicorp/raft"

	"github.com/siftkv/siftkv/kv"
)

// IsMonotonic has raft remove all of the log when it installs a snapshot, which is one write here, however many
// entries there are. Otherwise it keeps some of those that the snapshot is in place of, which need not be those that
// the cluster committed, and sends them to others if it leads one day.
//
// Gaps are no error nonetheless: see StoreLogs.
func (s *Store) IsMonotonic() bool { return true }

// FirstIndex returns the index of the first entry, 0 if there are none. It reads no disk.
func (s *Store) FirstIndex() (uint64, error) {
	e, err := s.bounds()
	return e.first, err
}

// LastIndex returns the index of the last entry, 0 if there are none. It reads no disk.
func (s *Store) LastIndex() (uint64, error) {
	e, err := s.bounds()
	return e.last, err
}

// GetLog reads the entry at index, [raft.ErrLogNotFound] if it is not there. All fields of e are set, and what they
// refer to is the caller's.
func (s *Store) GetLog(index uint64, e *raft.Log) error {
	record, err := s.db.Get(s.entryKey(index))
	switch {
	case errors.Is(err, kv.ErrNotFound):
		return raft.ErrLogNotFound // itself: raft compares
	case err != nil:
		return err
	}
	return decodeEntry(e, index, record)
}

// StoreLog stores one entry, as StoreLogs does.
func (s *Store) StoreLog(e *raft.Log) error { return s.StoreLogs([]*raft.Log{e}) }

// StoreLogs stores entries, all or none; they are on stable storage when it returns nil. An entry whose index is
// taken replaces the one that is there.
//
// Where entries leave a gap behind the last one, those before the gap are removed in the same step: raft leaves a gap
// only behind a snapshot, if a crash has kept it from removing what the snapshot is in place of.
func (s *Store) StoreLogs(entries []*raft.Log) error {
	if len(entries) == 0 {
		return nil
	}
	s.writing.Lock()
	defer s.writing.Unlock()
	now, err := s.bounds()
	if err != nil {
		return err
	}
	first, last := entries[0].Index, entries[0].Index
	for _, e := range entries {
		first, last = min(first, e.Index), max(last, e.Index)
	}
	b := s.db.NewBatch()
	if s.doubtful {
		_ = b.DeleteRange(s.entryKey(first), s.log.hi)
		now.last = min(now.last, first-1)
		now.some = now.some && now.first < first
	}
	if now.some && first > now.last && first-now.last > 1 {
		_ = b.DeleteRange(s.log.lo, s.entryKey(first))
		now.some = false
	}
	var record []byte
	for _, e := range entries {
		record = appendEntry(record[:0], e)
		_ = b.Set(s.entryKey(e.Index), record)
	}
	staged := s.staged.Load()
	if staged > s.committed {
		_ = b.Set(s.key(kindCommit), binary.BigEndian.AppendUint64(nil, staged))
	}
	if now.some {
		first, last = min(first, now.first), max(last, now.last)
	}
	if err := s.commit(b); err != nil {
		s.doubtful = true
		return fmt.Errorf("siftraft: store entries %d to %d: %w", entries[0].Index, entries[len(entries)-1].Index, err)
	}
	s.doubtful, s.committed = false, max(s.committed, staged)
	s.setBounds(ends{known: true, some: true, first: first, last: last})
	return nil
}

// DeleteRange removes the entries from one index to another, both included. It is one write, however many there are,
// and on stable storage when it returns nil.
func (s *Store) DeleteRange(from, to uint64) error {
	s.writing.Lock()
	defer s.writing.Unlock()
	now, err := s.bounds()
	if err != nil {
		return err
	}
	if !now.some || from > to || from > now.last || to < now.first {
		return nil
	}
	b := s.db.NewBatch()
	_ = b.DeleteRange(s.entryKey(from), s.after(to))
	if err := s.commit(b); err != nil {
		return fmt.Errorf("siftraft: delete entries %d to %d: %w", from, to, err)
	}
	switch {
	case from <= now.first && to >= now.last:
		now = ends{known: true}
	case from <= now.first:
		now.first, err = s.neighbour(to, func(it *kv.Iterator) bool { return it.SeekGE(s.after(to)) })
	case to >= now.last:
		now.last, err = s.neighbour(from, func(it *kv.Iterator) bool { return it.SeekLT(s.entryKey(from)) })
	}
	if err != nil {
		now = ends{}
	}
	s.setBounds(now)
	return nil
}

// neighbour returns the index of the entry that seek finds, which is there beside those deleted from or to index.
func (s *Store) neighbour(index uint64, seek func(*kv.Iterator) bool) (found uint64, err error) {
	it, err := s.db.NewIter(&kv.IterOptions{LowerBound: s.log.lo, UpperBound: s.log.hi})
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, it.Close()) }()
	if !seek(it) {
		return 0, errors.Join(fmt.Errorf("siftraft: no entry next to %d", index), it.Error())
	}
	return s.index(it.Key())
}

// commit writes a batch, durably. After an error the ends of the log are read again.
func (s *Store) commit(b *kv.Batch) error {
	err := b.Commit(kv.Sync)
	if err != nil {
		s.setBounds(ends{})
	}
	return err
}

// StageCommitIndex has the next StoreLogs store the index up to which entries are committed, in the same step.
func (s *Store) StageCommitIndex(index uint64) error {
	s.staged.Store(index)
	return nil
}

// GetCommitIndex returns the commit index that was stored last, at most the last index of the log; 0 if there is none.
//
// With RestoreCommittedLogs of raft.Config, NewRaft hands the entries up to it to the FSM before it returns. Raft
// 1.8.0 hangs there if the entries since the last snapshot are more than 128 times MaxAppendEntries (8192 by
// default).
func (s *Store) GetCommitIndex() (uint64, error) {
	index, err := s.number(s.key(kindCommit))
	if errors.Is(err, ErrKeyNotFound) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	e, err := s.bounds()
	return min(index, e.last), err
}
