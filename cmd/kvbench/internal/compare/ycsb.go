package compare

import (
	"bytes"
	"errors"
	"fmt"

	"github.com/siftkv/siftkv/cmd/kvbench/internal/engine"
	"github.com/siftkv/siftkv/cmd/kvbench/internal/keys"
	"github.com/siftkv/siftkv/cmd/kvbench/internal/measure"
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

// A mix is a workload of YCSB: a first verb with its share, another for the rest, and the popularity of records.
type mix struct {
	first, other verb
	share        float64 // of first
	latest       bool    // popular is what was inserted last; else some records anywhere
}

// maxScan bounds the records of a scan, which are 1 to maxScan, uniformly.
const maxScan = 100

// mixes are the core workloads of YCSB (B. Cooper et al., "Benchmarking cloud serving systems with YCSB", SoCC 2010,
// and workloads/workload[a-f] of its source) by their jobs.
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
	verb       verb
	limit      int // of a scan
	key, value []byte
	record     int
}

// ycsbChunk is the number of operations between two readings of the clock.
const ycsbChunk = 256

// mixed is a loop of one mix, in one goroutine, which checks every answer.
type mixed struct {
	mix
	w          *worker
	popular    keys.Permutation // which loaded record has a rank
	random     *keys.Random
	reader     engine.Reader
	operations [ycsbChunk]operation
	drawn      int
	audit      bool // look, at the end, whether scans can have missed something

	// What the last operation has seen.
	got         []byte
	found       bool
	visit       func(key, value []byte)
	seen        int
	from        []byte // key that a scan begins with; nil: any
	last, wrong []byte // keys
}

func newYCSB(w *worker, name string, pass uint64) (*mixed, error) {
	m, ok := mixes[name]
	if !ok {
		return nil, fmt.Errorf("no job named %q", name)
	}
	u := w.keyspace
	y := &mixed{mix: m, w: w, popular: keys.NewPermutation(u.n, keys.Mix(u.seed^zipfOrder)),
		random: keys.NewRandom(u.seed^mixDraw, pass), audit: m.first == scan && pass == 0}
	y.visit = y.see
	var err error
	y.reader, err = w.store.NewReader(engine.Get, engine.Existing)
	return y, err
}

// draw chooses operations, and prepares their keys and what they write.
func (y *mixed) draw() (int, error) {
	for i := range y.operations {
		if err := y.drawOne(&y.operations[i]); err != nil {
			return 0, err
		}
	}
	return len(y.operations), nil
}

func (y *mixed) drawOne(o *operation) error {
	u := y.w.keyspace
	o.verb = y.other
	if y.random.Float() < y.share {
		o.verb = y.first
	}
	rank := y.w.popular.Draw(y.random.Float())
	switch {
	case o.verb == insert:
		if y.w.inserts == u.spare() {
			return fmt.Errorf("all %d keys that were left to insert are used up; ask for more keys, or less seconds",
				u.spare())
		}
		o.record = u.n + y.w.inserts
		y.w.inserts++
	case y.latest:
		o.record = u.n + y.w.inserted - 1 - rank
	default:
		o.record = y.popular.At(rank)
	}
	y.drawn++
	o.key = u.AppendKey(o.key[:0], o.record)
	switch o.verb {
	case scan:
		o.limit = 1 + y.random.Below(maxScan)
	case update, modify:
		o.value = u.AppendValue(o.value[:0], o.key, y.drawn%2 == 0)
	case insert:
		o.value = u.AppendValue(o.value[:0], o.key, false)
	}
	return nil
}

func (y *mixed) do() error {
	for i := range y.operations {
		if err := y.doOne(&y.operations[i]); err != nil {
			return err
		}
		if err := y.check(&y.operations[i]); err != nil {
			return err
		}
	}
	return nil
}

func (y *mixed) doOne(o *operation) (err error) {
	store := y.w.store
	switch o.verb {
	case update:
		return store.Set(o.key, o.value)
	case insert:
		if err := store.Set(o.key, o.value); err != nil {
			return err
		}
		y.w.inserted++
		return nil
	case scan:
		return y.scan(o.key, o.limit)
	}
	if y.got, y.found, err = y.reader.Get(y.got[:0], o.key); err == nil && o.verb == modify {
		err = store.Set(o.key, o.value)
	}
	return err
}

// check returns an error if the answer to the operation that was done last is wrong.
func (y *mixed) check(o *operation) error {
	switch {
	case o.verb == update || o.verb == insert:
		return nil
	case o.verb == scan && (y.wrong != nil || y.seen == 0 || y.seen > o.limit):
		return &measure.WrongAnswer{Kind: engine.Existing, Key: bytes.Clone(o.key),
			What: fmt.Sprintf("a scan from here of up to %d entries: %d came, the first wrong one is %x", o.limit,
				y.seen, y.wrong)}
	case o.verb != scan && (!y.found || !y.w.keyspace.Right(o.key, y.got)):
		return wrongLookup(engine.Existing, o.key, y.got, y.found)
	}
	return nil
}

// close scans everything, if scans were made: every record that was loaded or inserted is there, once. How many entries
// come between two is not known to a scan of a store that grows.
func (y *mixed) close() (err error) {
	if y.audit {
		err = y.scan(nil, 0)
		if want := y.w.keyspace.n + y.w.inserted; err == nil && (y.wrong != nil || y.seen != want) {
			err = &measure.WrongAnswer{Kind: engine.Existing, Key: y.wrong,
				What: fmt.Sprintf("a scan of everything has %d entries of %d", y.seen, want)}
		}
	}
	return errors.Join(err, y.reader.Close())
}

func (y *mixed) scan(from []byte, limit int) error {
	y.seen, y.from, y.last, y.wrong = 0, from, y.last[:0], nil
	return y.w.store.Scan(from, limit, y.visit)
}

// see checks one entry of a scan: keys go up from the first, which exists, and each value belongs to its key.
func (y *mixed) see(key, value []byte) {
	if y.wrong == nil && (!y.w.keyspace.Right(key, value) || y.seen > 0 && bytes.Compare(key, y.last) <= 0 ||
		y.seen == 0 && y.from != nil && !bytes.Equal(key, y.from)) {
		y.wrong = bytes.Clone(key)
	}
	y.last = append(y.last[:0], key...)
	y.seen++
}
