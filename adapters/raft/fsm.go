package siftraft

import (
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/hashicorp/raft"

	"github.com/siftkv/siftkv/kv"
	"github.com/siftkv/siftkv/kv/metrics"
)

// AppliedKey is the key of an FSM's store under which the FSM keeps what it has applied: the index of the last entry
// and its term, 8 bytes each, big-endian. Nobody else may write it.
const AppliedKey = "\x00siftraft/applied"

// FSMOptions say how entries are applied. The zero value, or nil, has the defaults.
type FSMOptions struct {
	// Store are the options of the FSM's stores. InMemory, ReadOnly and Objects must not be set.
	Store *kv.Options

	// Apply applies an entry of type [raft.LogCommand]: it writes what the entry says to tx, and what it returns is the
	// response to the entry. The transaction reads what all entries before this one have written. Apply must do the
	// same on every node, and so may look at nothing but tx and the entry; it must not keep the entry's data, nor end
	// tx. It checks what it writes: a write that tx refuses, for its size, ends the FSM as a broken disk does, on all
	// nodes (see Err). Writes to AppliedKey are overwritten. By default, entries are Commands, and the response is nil
	// or an error that matches ErrCommand.
	Apply func(tx *kv.Tx, entry *raft.Log) any

	// Durability of what is applied: kv.NoSync by default. Whatever it is, nothing is lost: see the package's
	// documentation.
	Durability *kv.WriteOptions
}

// An FSM is a state machine whose state is a kv.DB. It is a [raft.BatchingFSM].
//
// Raft calls Apply, ApplyBatch, Snapshot and Restore from one goroutine. All other methods are safe for concurrent use
// beside them.
type FSM struct {
	dir  string
	opts FSMOptions
	kv   kv.Options // of the stores

	made int // numbers the directories of stores and snapshots; of the goroutine that applies

	mu      sync.Mutex
	idle    sync.Cond // busy has become 0
	busy    int       // acquired generations that are not released
	closed  bool      // nobody acquires one any more
	now     *generation
	applied Position
	failed  error
}

// A Position is the index and the term of an entry.
type Position struct{ Index, Term uint64 }

var _ raft.BatchingFSM = (*FSM)(nil)

// portionBytes is how many bytes of entries are committed together at most, unless one has more. A portion then fits
// in a memtable of the default size.
const portionBytes = 4 << 20

// View calls read with the state as it is now, which does not change meanwhile. It waits for nobody, and nobody waits
// for it, but Close. What read returns is returned. For a linearizable read, call VerifyLeader and Barrier of raft
// before.
func (f *FSM) View(read func(s *kv.Snapshot) error) error {
	g, err := f.acquire()
	if err != nil {
		return err
	}
	defer f.release(g)
	s := g.db.NewSnapshot()
	return errors.Join(read(s), s.Close())
}

// Metrics returns those of the store that has the state.
func (f *FSM) Metrics() (*metrics.Store, error) {
	g, err := f.acquire()
	if err != nil {
		return nil, err
	}
	defer f.release(g)
	return g.db.Metrics(), nil
}

// Applied returns the last entry that is part of the state.
func (f *FSM) Applied() Position {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.applied
}

// Err returns the error that has ended the FSM's work, nil if there is none: the store could not write what was
// committed. From then on entries are not applied, Snapshot fails, and the response to every entry is this error. The
// cluster has the entries: restart the node, or let raft install a snapshot.
func (f *FSM) Err() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.failed
}

func (f *FSM) fail(err error) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.failed = fmt.Errorf("siftraft: what raft committed after entry %d cannot be applied: %w", f.applied.Index, err)
	return f.failed
}

// Apply applies one entry, as ApplyBatch does.
func (f *FSM) Apply(entry *raft.Log) any { return f.ApplyBatch([]*raft.Log{entry})[0] }

// ApplyBatch applies entries and returns a response to each, nil for those that are no commands. What entries write and
// the index of the last one go into the store in one step. Entries that are part of the state already are passed over.
func (f *FSM) ApplyBatch(entries []*raft.Log) []any {
	responses := make([]any, len(entries))
	for from := 0; from < len(entries); {
		to, size := from, 0
		for to < len(entries) && (to == from || size+len(entries[to].Data) <= portionBytes) {
			size += len(entries[to].Data)
			to++
		}
		if err := f.applyPortion(entries[from:to], responses[from:to]); err != nil {
			for i := from; i < len(responses); i++ {
				responses[i] = err
			}
			break
		}
		from = to
	}
	return responses
}

func (f *FSM) applyPortion(entries []*raft.Log, responses []any) error {
	if err := f.Err(); err != nil {
		return err
	}
	g, err := f.acquire()
	if err != nil {
		return err
	}
	defer f.release(g)
	applied := f.Applied()
	next := slices.IndexFunc(entries, func(e *raft.Log) bool { return e.Index > applied.Index })
	if next < 0 {
		return nil
	}
	entries, responses = entries[next:], responses[next:]
	last := entries[len(entries)-1]
	position := Position{last.Index, last.Term}
	if f.opts.Apply == nil {
		err = f.applyCommands(g.db, entries, responses, position)
	} else {
		err = f.applyInTx(g.db, entries, responses, position)
	}
	if err != nil {
		return f.fail(err)
	}
	f.setApplied(position)
	return nil
}

func (f *FSM) setApplied(p Position) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.applied = p
}

func (f *FSM) applyCommands(db *kv.DB, entries []*raft.Log, responses []any, position Position) error {
	b := db.NewBatch()
	for i, e := range entries {
		if e.Type != raft.LogCommand {
			continue
		}
		if err := applyCommand(b, e.Data); errors.Is(err, ErrCommand) {
			responses[i] = err
		} else if err != nil {
			return err
		}
	}
	if err := b.Set([]byte(AppliedKey), position.record()); err != nil {
		return err
	}
	return b.Commit(f.opts.Durability)
}

func (f *FSM) applyInTx(db *kv.DB, entries []*raft.Log, responses []any, position Position) (err error) {
	tx, err := db.Begin(true)
	if err != nil {
		return err
	}
	for i, e := range entries {
		if e.Type == raft.LogCommand {
			responses[i] = f.opts.Apply(tx, e)
		}
	}
	if err := tx.Set([]byte(AppliedKey), position.record()); err != nil {
		return errors.Join(err, tx.Discard())
	}
	return tx.Commit(f.opts.Durability) // nobody else writes: there are no conflicts
}

func (p Position) record() []byte {
	return binary.BigEndian.AppendUint64(binary.BigEndian.AppendUint64(nil, p.Index), p.Term)
}

// readPosition returns what a store has applied; the zero position if it has none.
func readPosition(db *kv.DB) (Position, error) {
	record, err := db.Get([]byte(AppliedKey))
	switch {
	case errors.Is(err, kv.ErrNotFound):
		return Position{}, nil
	case err != nil:
		return Position{}, err
	case len(record) != 16:
		return Position{}, fmt.Errorf("siftraft: the record of what was applied has %d bytes, and not 16", len(record))
	}
	return Position{binary.BigEndian.Uint64(record), binary.BigEndian.Uint64(record[8:])}, nil
}
