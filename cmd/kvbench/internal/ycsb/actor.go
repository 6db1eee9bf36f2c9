// Package ycsb runs the core workloads of YCSB (B. Cooper et al., "Benchmarking cloud
// serving systems with YCSB", SoCC 2010, and workloads/workload[a-f] of its source),
// and reads of absent keys, which YCSB lacks, in a closed loop or at a rate.
package ycsb

import (
	"bytes"
	"errors"
	"fmt"
	"sync"

	"github.com/siftkv/siftkv/cmd/kvbench/internal/engine"
	"github.com/siftkv/siftkv/cmd/kvbench/internal/keys"
	"github.com/siftkv/siftkv/cmd/kvbench/internal/measure"
)

// A Verb is what one operation does.
type Verb uint8

// Verbs.
const (
	Read Verb = iota
	Update
	Insert
	Scan
	Modify // read-modify-write
	Absent // a read of a key that is not there
	verbs
)

// String returns the verb's name in reports.
func (v Verb) String() string {
	return [verbs]string{"read", "update", "insert", "scan", "read-modify-write", "absent read"}[v]
}

// A Mix is a workload: a first verb with its share, another for the rest, and the
// popularity of records. Scans have 1 to MaxScan records, each number as likely as any
// other.
type Mix struct {
	First, Other Verb
	Share        float64 // of First
	Latest       bool    // popular is what was inserted last; else some records anywhere
}

// MaxScan is the most records that a scan has.
const MaxScan = 100

// Mixes are the workloads by their letters, and absent.
var Mixes = map[string]Mix{
	"a":      {First: Read, Share: 0.5, Other: Update},
	"b":      {First: Read, Share: 0.95, Other: Update},
	"c":      {First: Read, Share: 1},
	"d":      {First: Read, Share: 0.95, Other: Insert, Latest: true},
	"e":      {First: Scan, Share: 0.95, Other: Insert},
	"f":      {First: Read, Share: 0.5, Other: Modify},
	"absent": {First: Absent, Share: 1},
}

// Names lists the workloads in the order of reports.
var Names = []string{"a", "b", "c", "d", "e", "f", "absent"}

// Records are the keys of a workload and what is to be found under each: the value that
// was loaded, or the one that updates write.
type Records interface {
	AppendKey(dst []byte, record int) []byte
	AppendAbsentKey(dst []byte, n int) []byte // n is less than Absent
	Absent() int
	AppendValue(dst, key []byte, updated bool) []byte
	Right(key, value []byte) bool
}

// An Operation is drawn before the clock runs.
type Operation struct {
	Verb  Verb
	Limit int // of a scan

	key, value []byte
	record     int
}

// An Actor does the operations of a mix in one goroutine and checks every answer.
type Actor struct {
	Mix      Mix
	Store    engine.Live
	Records  Records
	Frontier *Frontier
	Zipf     *keys.Zipf
	Popular  keys.Permutation // which loaded record has a rank
	Random   *keys.Random

	existing, absent engine.Reader
	drawn            int

	// What the last operation has seen.
	got         []byte
	found       bool
	visit       func(key, value []byte)
	seen        int
	first       []byte // key that a scan begins with; nil: any
	last, wrong []byte // keys
}

// Open makes the readers, which Close closes.
func (a *Actor) Open() (err error) {
	a.visit = a.see
	if a.existing, err = a.Store.NewReader(engine.Get, engine.Existing); err == nil && a.Mix.First == Absent {
		a.absent, err = a.Store.NewReader(engine.Get, engine.Absent)
	}
	return err
}

// Close closes the readers.
func (a *Actor) Close() error {
	err := a.existing.Close()
	if a.absent != nil {
		err = errors.Join(err, a.absent.Close())
	}
	return err
}

// Draw chooses an operation, and prepares its key and what it writes.
func (a *Actor) Draw(o *Operation) error {
	o.Verb = a.Mix.Other
	if a.Random.Float() < a.Mix.Share {
		o.Verb = a.Mix.First
	}
	rank := a.Zipf.Draw(a.Random.Float())
	switch {
	case o.Verb == Absent:
		o.key = a.Records.AppendAbsentKey(o.key[:0], a.Random.Below(a.Records.Absent()))
		return nil
	case o.Verb == Insert:
		n, ok := a.Frontier.take()
		if !ok {
			return fmt.Errorf("all %d keys that were left to insert are used up", a.Frontier.limit-a.Frontier.first)
		}
		o.record = n
	case a.Mix.Latest:
		o.record = a.Frontier.Records() - 1 - rank
	default:
		o.record = a.Popular.At(rank)
	}
	a.drawn++
	o.key = a.Records.AppendKey(o.key[:0], o.record)
	switch o.Verb {
	case Scan:
		o.Limit = 1 + a.Random.Below(MaxScan)
	case Update, Modify:
		o.value = a.Records.AppendValue(o.value[:0], o.key, a.drawn%2 == 0)
	case Insert:
		o.value = a.Records.AppendValue(o.value[:0], o.key, false)
	}
	return nil
}

// Do does an operation. It is what is timed.
func (a *Actor) Do(o *Operation) (err error) {
	switch o.Verb {
	case Update:
		return a.Store.Set(o.key, o.value)
	case Insert:
		if err := a.Store.Set(o.key, o.value); err != nil {
			return err
		}
		a.Frontier.inserted(o.record)
		return nil
	case Scan:
		return a.scan(o.key, o.Limit)
	}
	r := a.existing
	if o.Verb == Absent {
		r = a.absent
	}
	if a.got, a.found, err = r.Get(a.got[:0], o.key); err == nil && o.Verb == Modify {
		err = a.Store.Set(o.key, o.value)
	}
	return err
}

// Check returns an error if the answer to the operation that was done last is wrong.
func (a *Actor) Check(o *Operation) error {
	kind, what := engine.Existing, ""
	switch {
	case o.Verb == Update || o.Verb == Insert:
		return nil
	case o.Verb == Scan && (a.wrong != nil || a.seen == 0 || a.seen > o.Limit):
		what = fmt.Sprintf("a scan from here of up to %d entries: %d came, the first wrong one is %x", o.Limit, a.seen,
			a.wrong)
	case o.Verb == Scan:
		return nil
	case a.found && o.Verb == Absent:
		kind, what = engine.Absent, "found"
	case !a.found && o.Verb != Absent:
		what = "not found"
	case a.found && !a.Records.Right(o.key, a.got):
		what = fmt.Sprintf("found with the wrong value %x", a.got)
	default:
		return nil
	}
	return &measure.WrongAnswer{Kind: kind, Key: bytes.Clone(o.key), What: what}
}

// CheckAll scans everything: every record that was loaded or inserted is there, once.
// How many entries come between two is not known to a scan of a store that grows.
func (a *Actor) CheckAll() error {
	if err := a.scan(nil, 0); err != nil {
		return err
	}
	if want := a.Frontier.Records(); a.wrong != nil || a.seen != want {
		return &measure.WrongAnswer{Kind: engine.Existing, Key: a.wrong,
			What: fmt.Sprintf("a scan of everything has %d entries of %d", a.seen, want)}
	}
	return nil
}

func (a *Actor) scan(from []byte, limit int) error {
	a.seen, a.first, a.last, a.wrong = 0, from, a.last[:0], nil
	return a.Store.Scan(from, limit, a.visit)
}

// see checks one entry of a scan: keys go up from the first, which exists, and each
// value belongs to its key.
func (a *Actor) see(key, value []byte) {
	if a.wrong == nil && (!a.Records.Right(key, value) || a.seen > 0 && bytes.Compare(key, a.last) <= 0 ||
		a.seen == 0 && a.first != nil && !bytes.Equal(key, a.first)) {
		a.wrong = bytes.Clone(key)
	}
	a.last = append(a.last[:0], key...)
	a.seen++
}

// A Frontier numbers records that are inserted by several workers, and knows up to
// which number all are there: only those may be read, as YCSB does it.
type Frontier struct {
	mu    sync.Mutex
	first int
	next  int
	there int // records below it are there
	limit int
	ahead map[int]struct{} // that are there beyond it
}

// NewFrontier is for records of which those below there exist, and those below limit may be
// inserted.
func NewFrontier(there, limit int) *Frontier {
	return &Frontier{first: there, next: there, there: there, limit: limit, ahead: map[int]struct{}{}}
}

// take returns the number of the next record to insert, false if there is none left.
func (f *Frontier) take() (int, bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.next >= f.limit {
		return 0, false
	}
	f.next++
	return f.next - 1, true
}

// inserted says that a record is there.
func (f *Frontier) inserted(n int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.ahead[n] = struct{}{}
	for {
		if _, ok := f.ahead[f.there]; !ok {
			return
		}
		delete(f.ahead, f.there)
		f.there++
	}
}

// Records returns how many there are.
func (f *Frontier) Records() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.there
}
