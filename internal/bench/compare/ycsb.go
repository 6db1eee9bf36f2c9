package compare

import (
	"bytes"
	"context"
	"fmt"
	"time"

	"github.com/siftkv/siftkv/internal/bench/engine"
	"github.com/siftkv/siftkv/internal/bench/keys"
	"github.com/siftkv/siftkv/internal/bench/measure"
)

// A verb is what one operation of YCSB does.
type verb uint8

const (
	read verb = iota
	update
	insert
	scan
	modify // read-modify-write
)

// A mix is one of the core workloads of YCSB (B. Cooper et al., "Benchmarking cloud
// serving systems with YCSB", SoCC 2010, and workloads/workload[a-f] of its source):
// a first verb with its share, another for the rest, and the popularity of records.
// Scans have 1 to maxScan records, each number as likely as any other.
type mix struct {
	first, other verb
	share        float64 // of first
	latest       bool    // popular is what was inserted last; else some records anywhere
}

const maxScan = 100

var mixes = map[string]mix{
	"ycsb-a": {first: read, share: 0.5, other: update},
	"ycsb-b": {first: read, share: 0.95, other: update},
	"ycsb-c": {first: read, share: 1},
	"ycsb-d": {first: read, share: 0.95, other: insert, latest: true},
	"ycsb-e": {first: scan, share: 0.95, other: insert},
	"ycsb-f": {first: read, share: 0.5, other: modify},
}

// An operation is drawn before the clock runs.
type operation struct {
	verb    verb
	limit   int  // of a scan
	updated bool // the form of the value that an update writes
}

// ycsbChunk is the number of operations between two readings of the clock.
const ycsbChunk = 256

// ycsb is a loop of one mix, in one goroutine.
type ycsb struct {
	w          *worker
	mix        mix
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

	n    int64
	took time.Duration
	cpu  time.Duration
}

func newYCSB(w *worker, name string, pass uint64) (*ycsb, error) {
	m, ok := mixes[name]
	if !ok {
		return nil, fmt.Errorf("no job named %q", name)
	}
	u := w.universe
	r, err := w.store.NewReader(engine.Get, engine.Existing)
	return &ycsb{
		w: w, mix: m, reader: r, random: keys.NewRandom(u.seed^mixDraw, pass),
		popularity: keys.NewPermutation(u.n, keys.Mix(u.seed^zipfOrder)),
		audit:      m.first == scan && pass == 0,
		dst:        make([]byte, 0, w.start.ValueSize+64),
	}, err
}

func (y *ycsb) done() (int64, time.Duration, time.Duration) { return y.n, y.took, y.cpu }

// close looks, in one pass of a mix with scans, whether they can have left something
// out: how many entries come between two is not known to a scan of a store that grows.
func (y *ycsb) close() error {
	if !y.audit {
		return y.reader.Close()
	}
	y.entries, y.previous, y.first, y.wrong = 0, 0, nil, nil
	if err := y.w.store.Scan(nil, 0, y.visit); err != nil {
		return err
	}
	if y.wrong != nil || y.entries != y.w.written {
		return &measure.WrongAnswer{Kind: engine.Existing, Key: y.wrong, What: fmt.Sprintf("a scan of everything has %d entries of %d", y.entries, y.w.written)}
	}
	return y.reader.Close()
}

// draw chooses a chunk. An insert counts for the operations behind it.
func (y *ycsb) draw() error {
	u := y.w.universe
	y.operations, y.keys, y.values, y.ends = y.operations[:0], y.keys[:0], y.values[:0], y.ends[:0]
	for range ycsbChunk {
		o := operation{verb: y.mix.other, updated: y.random.Next()&1 == 1}
		if y.random.Float() < y.mix.share {
			o.verb = y.mix.first
		}
		record := y.record()
		switch o.verb {
		case scan:
			o.limit = 1 + y.random.Below(maxScan)
		case insert:
			if y.w.written-u.n >= u.spare() {
				return fmt.Errorf("all %d keys that were left to insert are used up; ask for more keys, or less seconds", u.spare())
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
	return nil
}

// record draws one that exists.
func (y *ycsb) record() int {
	rank := y.w.popular.Draw(y.random.Float())
	if y.mix.latest {
		return y.w.written - 1 - rank
	}
	return y.popularity.At(rank)
}

// next does a chunk of operations.
func (y *ycsb) next(ctx context.Context) (bool, error) {
	if err := y.draw(); err != nil {
		return false, err
	}
	size := y.w.universe.keySize
	visit := y.visit
	from := 0
	cpu, start := cpuTime(), time.Now()
	for i, o := range y.operations {
		key, value := y.keys[i*size:(i+1)*size:(i+1)*size], y.values[from:y.ends[i]]
		from = y.ends[i]
		if err := y.one(o, key, value, visit); err != nil {
			return false, err
		}
	}
	y.took += time.Since(start)
	y.cpu += cpuTime() - cpu
	y.n += int64(len(y.operations))
	return true, ctx.Err()
}

// one does one operation.
func (y *ycsb) one(o operation, key, value []byte, visit func(key, value []byte)) error {
	switch o.verb {
	case update, insert:
		return y.w.store.Set(key, value)
	case scan:
		y.entries, y.previous, y.first, y.wrong = 0, 0, key, nil
		if err := y.w.store.Scan(key, o.limit, visit); err != nil {
			return err
		}
		if y.wrong != nil || y.entries == 0 || y.entries > o.limit {
			return &measure.WrongAnswer{Kind: engine.Existing, Key: bytes.Clone(key), What: fmt.Sprintf("a scan from here of up to %d entries: %d came, the first wrong one is %x", o.limit, y.entries, y.wrong)}
		}
		return nil
	}
	got, found, err := y.reader.Get(y.dst[:0], key)
	if err != nil {
		return err
	}
	ok, updated := y.w.universe.right(key, got)
	if !found || !ok {
		return wrongLookup(engine.Existing, key, got, found)
	}
	if o.verb == modify {
		y.dst = y.w.universe.appendValue(y.dst[:0], key, !updated)
		return y.w.store.Set(key, y.dst)
	}
	return nil
}

// visit checks one entry of a scan: it begins at its first key, which exists, goes up
// from there, and each value belongs to its key.
func (y *ycsb) visit(key, value []byte) {
	p := position(key)
	ok, _ := y.w.universe.right(key, value)
	if y.wrong == nil && (!ok || y.entries > 0 && p <= y.previous || y.entries == 0 && y.first != nil && !bytes.Equal(key, y.first)) {
		y.wrong = bytes.Clone(key)
	}
	y.previous = p
	y.entries++
}
