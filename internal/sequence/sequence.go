package sequence

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	mrand "math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/siftkv/siftkv/internal/base"
	"github.com/siftkv/siftkv/objstore"
)

// Options of a Sequence.
type Options struct {
	// Patience is how long the pauses between tries of a call may be together, so that a call that nothing is wrong
	// with does not fail however slow the machine is. 0: without bound.
	Patience time.Duration
}

// A Sequence is a store's sequence of entries. It is safe for concurrent use.
type Sequence struct {
	store    objstore.Store
	prefix   string
	tag      uint32
	id       atomic.Uint64                             // of the store, from the first data; 0 if not known yet
	Wait     func(ctx context.Context, tries int) bool // before the next try; false if ctx has ended
	tailData atomic.Uint64                             // the newest data that the last Tail has shown

	mu      sync.Mutex
	trims   int    // calls of Trim
	trimmed uint64 // below this slot, the last Trim has left no data
}

// New returns the sequence of the objects with a key prefix, such as "entry/". It sends no requests.
func New(store objstore.Store, prefix string, opts Options) *Sequence {
	return &Sequence{store: store, prefix: prefix, tag: base.Checksum(0, 0, []byte(prefix)), Wait: opts.Pause}
}

// Prefix returns the key prefix.
func (s *Sequence) Prefix() string { return s.prefix }

// Adopt says which store the entries belong to, unless that is known.
func (s *Sequence) Adopt(store uint64) { s.id.CompareAndSwap(0, store) }

// Store returns the number of the store that the entries belong to; 0 before data was read or written.
func (s *Sequence) Store() uint64 { return s.id.Load() }

// The pauses between tries double from the first to the last; each is shortened at random, by half at most, so that
// clients that failed together do not come back together.
const (
	firstPause = 10 * time.Millisecond
	lastPause  = 2 * time.Second
)

// Pause waits before the next try, unless ctx or the patience has ended.
func (o Options) Pause(ctx context.Context, tries int) bool {
	spent := time.Duration(0)
	for i := 0; i < tries && o.Patience > spent; i++ {
		spent += longest(i)
	}
	return (o.Patience <= 0 || spent < o.Patience) && backOff(ctx, tries)
}

func longest(tries int) time.Duration { return min(firstPause<<min(tries, 20), lastPause) }

func backOff(ctx context.Context, tries int) bool {
	pause := longest(tries)
	select {
	case <-time.After(pause - mrand.N(pause/2)):
		return true
	case <-ctx.Done():
		return false
	}
}

// Encode returns an entry as the object of its slot.
func (s *Sequence) Encode(e Entry) []byte { return e.encode(s.tag) }

// decode checks an object, and that it is of this store.
func (s *Sequence) decode(b []byte, slot uint64) (Entry, error) {
	key := s.Key(slot)
	e, err := decodeEntry(b, key, s.tag, slot)
	if err != nil {
		return Entry{}, err
	}
	if !e.Fence && !s.id.CompareAndSwap(0, e.Store) && s.id.Load() != e.Store {
		return Entry{}, base.Corruptf(key, 24, "an entry of store %016x, not %016x; the object was copied", e.Store,
			s.id.Load())
	}
	return e, nil
}

// CheckOrder checks that an entry may come after one of an epoch.
func (s *Sequence) CheckOrder(e Entry, epoch uint64) error {
	if e.Epoch < epoch {
		return base.Corruptf(s.Key(e.Slot), 40, "an entry of epoch %d after one of epoch %d: the store has let both "+
			"writers put", e.Epoch, epoch)
	}
	return nil
}

// RandomID returns a unique number, which is not 0.
func RandomID() uint64 {
	var b [8]byte
	_, _ = rand.Read(b[:]) // never fails
	return binary.LittleEndian.Uint64(b[:]) | 1
}
