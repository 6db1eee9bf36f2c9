package kv

import (
	"bytes"
	"encoding/binary"
	"errors"
	"maps"
	"math/rand/v2"
	"runtime"
	"slices"
	"sort"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/internal/scale"
	"github.com/siftkv/siftkv/internal/storetest"
)

// A serialRun lets goroutines run random transactions and batches against one store, and keeps what each of them saw.
type serialRun struct {
	t  *testing.T
	db *DB

	mu   sync.Mutex
	logs []serialLog
}

// A serialLog is one transaction or batch that was committed, or a transaction that
// was refused or only read: its steps, in order, with their outcomes.
type serialLog struct {
	seq   uint64 // of its first write; of one that wrote nothing, of what it saw last
	wrote bool
	steps []serialStep
}

type serialStep struct {
	verb   byte   // g Get, h Has, s Set, m Merge, d Delete, r DeleteRange; F, L, n, p, G, l moves
	key    string // or the lower bound
	hi     string // r: upper bound
	value  string // of s and m; what g and moves found
	found  bool
	at     string // where a move led
	scan   int    // of moves: which iterator of the transaction
	bounds [2]string
}

func serialKey(rng *rand.Rand) string { return string([]byte{'a' + byte(rng.IntN(12))}) }

// transaction runs one random transaction.
func (r *serialRun) transaction(rng *rand.Rand) {
	tx := beginTx(r.t, r.db, true)
	log := serialLog{seq: uint64(tx.view.at)}
	scans := 0
	for range 1 + rng.IntN(5) {
		runtime.Gosched() // so that others come in between
		s := serialStep{key: serialKey(rng), value: string(randomBytes(rng, 1+rng.IntN(40)))}
		switch n := rng.IntN(12); {
		case n == 10:
			s.verb = 'm'
			require.NoError(r.t, tx.Merge([]byte(s.key), []byte(s.value)))
		case n == 11:
			s.verb = 'h'
			found, err := tx.Has([]byte(s.key))
			require.NoError(r.t, err)
			s.found = found
		case n < 4:
			s.verb = 'g'
			v, err := tx.Get([]byte(s.key))
			s.value, s.found = string(v), err == nil
			require.True(r.t, err == nil || errors.Is(err, ErrNotFound), "%v", err)
		case n < 6:
			s.verb = 's'
			require.NoError(r.t, tx.Set([]byte(s.key), []byte(s.value)))
		case n < 7:
			s.verb = 'd'
			require.NoError(r.t, tx.Delete([]byte(s.key)))
		case n < 8:
			s.verb, s.hi = 'r', s.key+serialKey(rng)
			if rng.IntN(3) == 0 {
				s.hi = serialKey(rng)
			}
			require.NoError(r.t, tx.DeleteRange([]byte(s.key), []byte(s.hi)))
		default:
			log.steps = append(log.steps, r.scan(rng, tx, scans)...)
			scans++
			continue
		}
		log.steps = append(log.steps, s)
	}
	record := tx.writes.batch.repr.Record() // Commit writes its sequence number there
	err := tx.Commit([]*WriteOptions{Sync, NoSync, Async}[rng.IntN(3)])
	if err == nil && len(record) > 0 {
		log.seq, log.wrote = binary.LittleEndian.Uint64(record), true
	} else if err != nil {
		require.ErrorIs(r.t, err, ErrConflict)
	}
	r.add(log)
}

// scan moves an iterator at random.
func (r *serialRun) scan(rng *rand.Rand, tx *Tx, n int) (steps []serialStep) {
	o, bounds := &IterOptions{}, [2]string{}
	if rng.IntN(2) == 0 {
		bounds[0] = serialKey(rng)
		o.LowerBound = []byte(bounds[0])
	}
	if rng.IntN(2) == 0 {
		bounds[1] = serialKey(rng)
		o.UpperBound = []byte(bounds[1])
	}
	it, err := tx.NewIter(o)
	require.NoError(r.t, err)
	for range 1 + rng.IntN(5) {
		s := serialStep{verb: "FLnpnpGl"[rng.IntN(8)], key: serialKey(rng), scan: n, bounds: bounds}
		switch s.verb {
		case 'F':
			s.found = it.First()
		case 'L':
			s.found = it.Last()
		case 'n':
			s.found = it.Next()
		case 'p':
			s.found = it.Prev()
		case 'G':
			s.found = it.SeekGE([]byte(s.key))
		case 'l':
			s.found = it.SeekLT([]byte(s.key))
		}
		s.at, s.value = string(it.Key()), string(it.Value())
		steps = append(steps, s)
	}
	require.NoError(r.t, it.Close())
	return steps
}

// batch commits writes that are no transaction's.
func (r *serialRun) batch(rng *rand.Rand) {
	b := r.db.NewBatch()
	log := serialLog{wrote: true}
	for range 1 + rng.IntN(3) {
		s := serialStep{verb: 's', key: serialKey(rng), value: string(randomBytes(rng, rng.IntN(40)))}
		switch rng.IntN(7) {
		case 6:
			s.verb = 'm'
			require.NoError(r.t, b.Merge([]byte(s.key), []byte(s.value)))
		case 0:
			s.verb = 'd'
			require.NoError(r.t, b.Delete([]byte(s.key)))
		case 1:
			s.verb, s.hi = 'r', s.key+"z"
			require.NoError(r.t, b.DeleteRange([]byte(s.key), []byte(s.hi)))
		default:
			require.NoError(r.t, b.Set([]byte(s.key), []byte(s.value)))
		}
		log.steps = append(log.steps, s)
	}
	require.NoError(r.t, b.Commit(NoSync))
	log.seq = binary.LittleEndian.Uint64(b.repr.Record())
	r.add(log)
}

func (r *serialRun) add(log serialLog) {
	r.mu.Lock()
	r.logs = append(r.logs, log)
	r.mu.Unlock()
}

// replay runs all of it again, one after the other in the order of their sequence numbers, on a sorted map, and
// compares what was seen. Who wrote nothing saw the store as it was when it began.
func (r *serialRun) replay() storetest.Model {
	slices.SortFunc(r.logs, func(a, b serialLog) int {
		if a.seq != b.seq {
			return int(a.seq) - int(b.seq)
		}
		return map[bool]int{true: -1, false: 1}[a.wrote] // what it saw last comes first
	})
	m := storetest.Model{}
	for _, log := range r.logs {
		view := maps.Clone(m)
		scan := &modelScan{number: -1}
		for _, s := range log.steps {
			v, found := view[s.key]
			switch s.verb {
			case 'g':
				require.Equal(r.t, found, s.found, "%q in %+v", s.key, log)
				require.Equal(r.t, v, s.value, "%q in %+v", s.key, log)
			case 'h':
				require.Equal(r.t, found, s.found, "%q in %+v", s.key, log)
			case 's':
				view[s.key] = s.value
			case 'm':
				view.Merge(s.key, s.value)
			case 'd':
				delete(view, s.key)
			case 'r':
				view.DeleteRange([]byte(s.key), []byte(s.hi))
			default:
				if scan.number != s.scan {
					scan = &modelScan{number: s.scan, keys: keysWithin(view, s.bounds)}
				}
				at, ok := scan.move(s)
				require.Equal(r.t, ok, s.found, "%+v in %+v", s, log)
				require.Equal(r.t, at, s.at, "%+v in %+v", s, log)
				require.Equal(r.t, view[at], s.value, "%+v in %+v", s, log)
			}
		}
		if log.wrote {
			m = view
		}
	}
	return m
}

// keysWithin returns the keys between bounds, of which "" is none.
func keysWithin(m storetest.Model, bounds [2]string) (keys []string) {
	for _, k := range m.Keys() {
		if k >= bounds[0] && (bounds[1] == "" || k < bounds[1]) {
			keys = append(keys, k)
		}
	}
	return keys
}

// A modelScan is an iterator over a sorted list.
type modelScan struct {
	number int
	keys   []string
	pos    int
	on     bool
}

func (m *modelScan) move(s serialStep) (at string, ok bool) {
	switch {
	case s.verb == 'F':
		m.pos = 0
	case s.verb == 'L':
		m.pos = len(m.keys) - 1
	case s.verb == 'G':
		m.pos = sort.SearchStrings(m.keys, s.key)
	case s.verb == 'l':
		m.pos = sort.SearchStrings(m.keys, s.key) - 1
	case !m.on:
		m.pos = -1
	case s.verb == 'n':
		m.pos++
	default:
		m.pos--
	}
	if m.on = m.pos >= 0 && m.pos < len(m.keys); m.on {
		return m.keys[m.pos], true
	}
	return "", false
}

// TestTxSerializable runs random transactions concurrently, beside batches, flushes and compactions: those that were
// committed, replayed in the order of their commits, see what they saw, and leave what they left.
func TestTxSerializable(t *testing.T) {
	t.Parallel()
	commits, conflicts := uint64(0), uint64(0)
	for seed := range uint64(scale.Count(20, 50)) {
		rng := rand.New(rand.NewPCG(seed, 8))
		o := randomOptions(rng)
		o.InMemory = true
		db, err := Open("db", o)
		require.NoError(t, err)
		r := &serialRun{t: t, db: db}
		var group sync.WaitGroup
		for w := range 4 {
			group.Go(func() {
				rng := rand.New(rand.NewPCG(seed, uint64(w)))
				for range 60 {
					if rng.IntN(4) == 0 {
						r.batch(rng)
					} else {
						r.transaction(rng)
					}
				}
			})
		}
		group.Go(func() {
			for range 8 {
				require.NoError(t, db.Flush(t.Context()))
				require.NoError(t, db.Compact(t.Context(), []byte("c"), nil))
			}
		})
		group.Wait()
		want := r.replay()
		require.Equal(t, want, contents(t, db, nil))
		var out bytes.Buffer
		require.NoError(t, db.verify(&out), out.String())
		commits, conflicts = commits+db.Metrics().TxCommits, conflicts+db.Metrics().TxConflicts
		require.NoError(t, db.Close())
	}
	require.NotZero(t, conflicts)
	t.Logf("%d transactions were committed, %d refused", commits, conflicts)
}
