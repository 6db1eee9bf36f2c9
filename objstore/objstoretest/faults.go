package objstoretest

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/siftkv/siftkv/objstore"
)

// ErrInjected is the error of calls if a [Fault] names none, in addition to [objstore.ErrUnknown] for writes.
var ErrInjected = errors.New("injected fault")

// ErrCut is the error of calls after [Faults.Cut], and in a partition, in addition to [objstore.ErrUnknown] for writes.
var ErrCut = errors.New("cut off from the object store")

// An Outcome says what becomes of a call. Late and LostReply of reads and listings are NotPerformed.
type Outcome uint8

// The outcomes of calls.
const (
	Performed    Outcome = iota // as if there were no fault
	NotPerformed                // it fails with Fault.Err and has not reached the store
	LostReply                   // it is performed; the caller gets ErrUnknown
	Late                        // the caller gets ErrUnknown; it is performed when Faults.Deliver is called
)

// A Fault is what happens to one call. The zero value is none.
type Fault struct {
	Delay     time.Duration // before the call reaches the store; ends early with the call's context
	Bandwidth int64         // bytes per second: Call.Size bytes delay it further; 0: no limit
	Outcome   Outcome
	Err       error // of NotPerformed, such as objstore.ErrThrottled; nil: ErrInjected
	Cut       bool  // the client is cut off when this call has had its outcome, and never learns it

	Truncate bool // of GetRange: half of the bytes arrive, and then io.ErrUnexpectedEOF
	Corrupt  bool // of GetRange: one bit of what arrives is flipped, without an error
	Stale    int  // of List: the number of the newest objects that are missing
}

// A Call is one that a [Rule] decides about.
type Call struct {
	N    int64 // of all calls of the Faults; the first is 1
	Nth  int64 // of the calls of this kind for this key; the first is 1
	Kind objstore.Kind
	Key  string // of List, the prefix
	Size int64  // bytes to be written, or room for those to be read

	// Rand depends on the seed, Kind, Key and Nth alone: on no order of calls for several keys.
	Rand *rand.Rand
}

// A Rule says what happens to a call. It is called from several goroutines. It may block, to hold a call up until a
// test has done something else, and may call methods of the Faults.
type Rule func(Call) Fault

// Faults is a client of a store that has troubles. It is safe for concurrent use. Several on one store are several
// clients: one that was cut is a dead process's, and its successor has another.
type Faults struct {
	s    objstore.Store
	seed uint64

	mu        sync.Mutex
	rule      Rule
	calls     int64
	nth       map[callID]int64
	cut       bool
	partition bool
	late      []func() error
}

type callID struct {
	kind objstore.Kind
	key  string
}

// NewFaults returns a client of s without troubles. Closing it closes s.
func NewFaults(s objstore.Store, seed uint64) *Faults {
	return &Faults{s: s, seed: seed, nth: map[callID]int64{}, rule: func(Call) Fault { return Fault{} }}
}

// Inject makes a rule that of all later calls.
func (f *Faults) Inject(rule Rule) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.rule = rule
}

// Cut makes all later calls fail, and those under way that have not reached the store, as if the process were dead.
func (f *Faults) Cut() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.cut = true
}

// Partition makes calls fail as Cut does, until it is called with false.
func (f *Faults) Partition(on bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.partition = on
}

// Calls returns how many calls there were, those that failed included.
func (f *Faults) Calls() int64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.calls
}

// Deliver performs the calls that are [Late], in their order, and returns what became of each. It does so after a
// Cut and in a partition too: the network held them.
func (f *Faults) Deliver() (results []error) {
	f.mu.Lock()
	late := f.late
	f.late = nil
	f.mu.Unlock()
	for _, perform := range late {
		results = append(results, perform())
	}
	return results
}

// begin decides about a call and waits out its delay. An error is that of a call that does not reach the store.
func (f *Faults) begin(ctx context.Context, kind objstore.Kind, key string, size int64) (Call, Fault, error) {
	call, rule := f.next(kind, key, size)
	fault := rule(call)
	delay := fault.Delay
	if fault.Bandwidth > 0 {
		delay += time.Duration(float64(size) / float64(fault.Bandwidth) * float64(time.Second))
	}
	if err := sleep(ctx, delay); err != nil {
		return call, fault, call.failure(err)
	}
	if err := f.reachable(); err != nil {
		return call, fault, call.failure(err)
	}
	if fault.Outcome == NotPerformed || fault.Outcome != Performed && !call.isWrite() {
		if f.end(fault) == nil && fault.Err != nil {
			return call, fault, &objstore.Error{Op: kind, Key: key, Err: fault.Err}
		}
		return call, fault, call.failure(ErrInjected)
	}
	return call, fault, nil
}

func (f *Faults) next(kind objstore.Kind, key string, size int64) (Call, Rule) {
	f.mu.Lock()
	defer f.mu.Unlock()
	id := callID{kind, key}
	f.calls++
	f.nth[id]++
	h := fnv.New64a()
	fmt.Fprintf(h, "%d %d %s", kind, f.nth[id], key)
	random := rand.New(rand.NewPCG(f.seed, h.Sum64()))
	return Call{N: f.calls, Nth: f.nth[id], Kind: kind, Key: key, Size: size, Rand: random}, f.rule
}

// end cuts the client off if the call does, and returns why no answer reaches it, if none does.
func (f *Faults) end(fault Fault) error {
	if fault.Cut {
		f.Cut()
	}
	return f.reachable()
}

// reachable returns why the store cannot be reached, if it cannot.
func (f *Faults) reachable() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.cut || f.partition {
		return ErrCut
	}
	return nil
}

func (c Call) isWrite() bool { return c.Kind != objstore.Get && c.Kind != objstore.List }

// failure returns the error of a call that got no answer.
func (c Call) failure(err error) error {
	if c.isWrite() {
		err = fmt.Errorf("%w: %w", objstore.ErrUnknown, err)
	}
	return &objstore.Error{Op: c.Kind, Key: c.Key, Err: err}
}

func sleep(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		return nil
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
