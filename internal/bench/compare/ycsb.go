package compare

import (
	"bytes"
	"fmt"
	"strings"

	"github.com/siftkv/siftkv/internal/bench/engine"
	"github.com/siftkv/siftkv/internal/bench/keys"
	"github.com/siftkv/siftkv/internal/bench/measure"
	"github.com/siftkv/siftkv/internal/bench/ycsb"
)

// The verbs of a mix.
const (
	read   = ycsb.Read
	update = ycsb.Update
	insert = ycsb.Insert
	scan   = ycsb.Scan
	modify = ycsb.Modify
)

const maxScan = ycsb.MaxScan

// An operation is drawn before the clock runs.
type operation struct {
	verb    ycsb.Verb
	limit   int  // of a scan
	updated bool // the form of the value that an update writes
}

// ycsbChunk is the number of operations between two readings of the clock.
const ycsbChunk = 256

// mixed is a loop of one mix, in one goroutine.
type mixed struct {
	w          *worker
	mix        ycsb.Mix
	random     *keys.Random
	popularity keys.Permutation // which loaded record has a rank
	reader     engine.Reader
	operations []operation
	keys       []byte
	values     []byte // one for each operation; empty for those that write nothing
	ends       []int
	dst        []byte

	audit bool // scan everything at the end

	// What a scan has seen.
	entries  int
	previous uint64
	first    []byte
	wrong    []byte // the first wrong key, if there was one
}

func newYCSB(w *worker, name string, pass uint64) (*mixed, error) {
	m, ok := ycsb.Mixes[strings.TrimPrefix(name, "ycsb-")]
	if !ok {
		return nil, fmt.Errorf("no job named %q", name)
	}
	u := w.keyspace
	r, err := w.store.NewReader(engine.Get, engine.Existing)
	return &mixed{
		w: w, mix: m, reader: r, random: keys.NewRandom(u.seed^mixDraw, pass),
		popularity: keys.NewPermutation(u.n, keys.Mix(u.seed^zipfOrder)),
		audit:      m.First == scan && pass == 0,
		dst:        make([]byte, 0, w.start.ValueSize+64),
	}, err
}

// close looks, in one pass of a mix with scans, whether they can have left something
// out: how many entries come between two is not known to a scan of a store that grows.
func (y *mixed) close() error {
	if !y.audit {
		return y.reader.Close()
	}
	y.entries, y.previous, y.first, y.wrong = 0, 0, nil, nil
	if err := y.w.store.Scan(nil, 0, y.visit); err != nil {
		return err
	}
	if y.wrong != nil || y.entries != y.w.written {
		return &measure.WrongAnswer{Kind: engine.Existing, Key: y.wrong,
			What: fmt.Sprintf("a scan of everything has %d entries of %d", y.entries, y.w.written)}
	}
	return y.reader.Close()
}

// draw chooses a chunk. Later operations may ask for what is inserted.
func (y *mixed) draw() (int, error) {
	u := y.w.keyspace
	y.operations, y.keys, y.values, y.ends = y.operations[:0], y.keys[:0], y.values[:0], y.ends[:0]
	for range ycsbChunk {
		o := operation{verb: y.mix.Other, updated: y.random.Next()&1 == 1}
		if y.random.Float() < y.mix.Share {
			o.verb = y.mix.First
		}
		record := y.record()
		switch o.verb {
		case scan:
			o.limit = 1 + y.random.Below(maxScan)
		case insert:
			if y.w.written-u.n >= u.spare() {
				return 0, fmt.Errorf("all %d keys that were left to insert are used up; ask for more keys, or less "+
					"seconds", u.spare())
			}
			record, o.updated = y.w.written, false
			y.w.written++
		}
		from := len(y.keys)
		y.keys = u.appendRecord(y.keys, record)
		if o.verb == update || o.verb == insert {
			y.values = u.appendValue(y.values, y.keys[from:], o.updated)
		}
		y.ends = append(y.ends, len(y.values))
		y.operations = append(y.operations, o)
	}
	return len(y.operations), nil
}

// record draws one that exists.
func (y *mixed) record() int {
	rank := y.w.popular.Draw(y.random.Float())
	if y.mix.Latest {
		return y.w.written - 1 - rank
	}
	return y.popularity.At(rank)
}

func (y *mixed) do() error {
	size, visit, from := y.w.keyspace.keySize, y.visit, 0
	for i, o := range y.operations {
		key, value := y.keys[i*size:(i+1)*size:(i+1)*size], y.values[from:y.ends[i]]
		from = y.ends[i]
		if err := y.one(o, key, value, visit); err != nil {
			return err
		}
	}
	return nil
}

// one does one operation.
func (y *mixed) one(o operation, key, value []byte, visit func(key, value []byte)) error {
	switch o.verb {
	case update, insert:
		return y.w.store.Set(key, value)
	case scan:
		y.entries, y.previous, y.first, y.wrong = 0, 0, key, nil
		if err := y.w.store.Scan(key, o.limit, visit); err != nil {
			return err
		}
		if y.wrong != nil || y.entries == 0 || y.entries > o.limit {
			return &measure.WrongAnswer{Kind: engine.Existing, Key: bytes.Clone(key),
				What: fmt.Sprintf("a scan from here of up to %d entries: %d came, the first wrong one is %x", o.limit,
					y.entries, y.wrong)}
		}
		return nil
	}
	got, found, err := y.reader.Get(y.dst[:0], key)
	if err != nil {
		return err
	}
	ok, updated := y.w.keyspace.right(key, got)
	if !found || !ok {
		return wrongLookup(engine.Existing, key, got, found)
	}
	if o.verb == modify {
		y.dst = y.w.keyspace.appendValue(y.dst[:0], key, !updated)
		return y.w.store.Set(key, y.dst)
	}
	return nil
}

// visit checks one entry of a scan: it begins at its first key, which exists, goes up
// from there, and each value belongs to its key.
func (y *mixed) visit(key, value []byte) {
	p := position(key)
	ok, _ := y.w.keyspace.right(key, value)
	if y.wrong == nil && (!ok || y.entries > 0 && p <= y.previous || y.entries == 0 && y.first != nil &&
		!bytes.Equal(key, y.first)) {
		y.wrong = bytes.Clone(key)
	}
	y.previous = p
	y.entries++
}
