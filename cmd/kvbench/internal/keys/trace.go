package keys

import (
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"time"

	"github.com/siftkv/siftkv/cmd/kvbench/internal/bench"
	"github.com/siftkv/siftkv/internal/lookuptrace"
)

// Trace is a source whose keys are those of a lookup trace: present are the keys that
// some lookup found, absent the others. In place of hashes it makes keys up, of the
// recorded sizes (8 bytes at least). More keys may be present that no lookup asked for, see
// Request.Fill. The distinct keys stay in memory, with 8 bytes for each and 4 for each
// lookup, and more while they are read.
type Trace struct {
	listed
	asked [2][]uint32 // by kind, present keys first
}

// A Replay describes the lookups of a trace.
type Replay struct {
	Start      time.Time     `json:"start"`
	Span       time.Duration `json:"span_ns"` // until the last lookup
	Hashed     bool          `json:"hashed"`  // the keys are made up
	OneIn      uint32        `json:"one_in"`  // keys that were recorded
	Existing   int           `json:"existing_lookups"`
	Absent     int           `json:"absent_lookups"`
	Missed     int           `json:"missed_lookups"` // of keys that were found at other times; they count as existing
	Beyond     int           `json:"beyond"`         // absent keys that are not between two present ones
	Dropped    uint64        `json:"dropped"`        // lookups that the trace is known to lack
	Unfinished bool          `json:"unfinished"`
	Filled     int           `json:"filled"` // keys that are there and were not in the trace
}

func isTrace(path string) bool {
	f, err := os.Open(path)
	if err != nil {
		return false
	}
	defer func() { _ = f.Close() }() // it was only read
	_, err = lookuptrace.NewReader(f, path)
	return !errors.Is(err, lookuptrace.ErrNotTrace)
}

// OpenTrace reads a trace, and adds so many keys to those that are present. A trace without
// an end is taken as far as it goes, and says so in its description; one that is damaged, or
// in which no key was found, is an error.
func OpenTrace(path string, fill int, seed uint64) (*Trace, error) {
	t := &Trace{listed: listed{set: newSet(), about: Description{Origin: "trace", Path: path, Seed: seed}}}
	asks, err := t.read(path)
	if err != nil {
		return nil, err
	}
	found := make([]bool, t.set.len())
	for _, a := range asks {
		found[a.key] = found[a.key] || a.found
	}
	if !slices.Contains(found, true) {
		return nil, bench.Usagef("trace %s: no key was found in %d lookups: there is nothing to fill a store with",
			path, len(asks))
	}
	found = t.fill(fill, found, seed)
	t.set.seal()
	t.about.Replay.Filled = fill
	t.deal(found, seed)
	t.order(asks, found)
	t.describe()
	return t, nil
}

// Keys that are made up take memory for which the trace has but a number. Those of an honest
// trace are small on average, or few.
const (
	madeUpMean = 4 << 10
	madeUpFree = 64 << 20
)

// An ask is a lookup while a trace is read.
type ask struct {
	at    time.Duration
	key   uint32 // number in the set
	found bool
}

// read collects the lookups of a trace and sorts them by time.
func (t *Trace) read(path string) ([]ask, error) {
	var asks []ask
	var scratch []byte
	madeUp, keys := int64(0), int64(0)
	w, err := WalkTrace(path, func(l *lookuptrace.Lookup) error {
		key := l.Key
		if key == nil {
			scratch = appendMadeUp(scratch[:0], l.Hash, l.Size)
			key = scratch
		}
		number, added := t.set.add(key)
		if added && l.Key == nil {
			madeUp, keys = madeUp+int64(len(key)), keys+1
			if madeUp > madeUpFree+keys*madeUpMean {
				return bench.Usagef("trace %s: it has hashes in place of keys, and the keys of %d bytes that stand "+
					"for them would not fit into memory; record one with keys", path, madeUp/keys)
			}
		}
		asks = append(asks, ask{l.At, number, l.Found})
		return nil
	}, func(*lookuptrace.Scan) error { return nil })
	if err != nil {
		return nil, err
	}
	slices.SortStableFunc(asks, func(a, b ask) int { return cmp.Compare(a.at, b.at) })
	about := &Replay{Start: w.Start, Hashed: !w.Keys, OneIn: w.OneIn, Dropped: w.Dropped, Unfinished: w.Unfinished}
	if n := len(asks); n > 0 {
		about.Span = asks[n-1].at
	}
	t.about.Replay = about
	return asks, nil
}

// appendMadeUp appends a key of so many bytes, 8 at least, in place of a hash.
func appendMadeUp(dst []byte, hash uint64, size int) []byte {
	end := len(dst) + max(8, size)
	for word := hash; len(dst) < end; word = Mix(word) {
		dst = binary.BigEndian.AppendUint64(dst, word)
	}
	return dst[:end]
}

// deal deals the keys into present and absent ones, each in random order.
func (t *Trace) deal(found []bool, seed uint64) {
	load := NewPermutation(len(found), seed^loadOrder)
	for i := range found {
		if n := uint32(load.At(i)); found[n] {
			t.present = append(t.present, n)
		} else {
			t.absent = append(t.absent, n)
		}
	}
	between := t.between()
	for _, n := range t.absent {
		if !between(n) {
			t.about.Replay.Beyond++
		}
	}
}

// order notes which key each lookup asked for.
func (t *Trace) order(asks []ask, found []bool) {
	place := make([]uint32, len(found))
	for _, keys := range [][]uint32{t.present, t.absent} {
		for i, n := range keys {
			place[n] = uint32(i)
		}
	}
	about := t.about.Replay
	for _, a := range asks {
		kind := kindOf(found[a.key])
		if found[a.key] && !a.found {
			about.Missed++
		}
		t.asked[kind] = append(t.asked[kind], place[a.key])
	}
	about.Existing, about.Absent = len(t.asked[0]), len(t.asked[1])
}

// Asked returns what was looked up, in order: of present keys or of absent ones, by
// their numbers. It must not be changed.
func (t *Trace) Asked(present bool) []uint32 { return t.asked[kindOf(present)] }

// kindOf returns where in a Trace lookups of a kind are.
func kindOf(present bool) int {
	if present {
		return 0
	}
	return 1
}

// A Walk is what a lookup trace says of itself, once it was read.
type Walk struct {
	lookuptrace.Header
	Bytes      int64  // of the file
	Lookups    int64  // in it
	Scans      int64  // in it
	Dropped    uint64 // lookups and scans that it is known to lack
	Unfinished bool   // it has no end
}

// WalkTrace visits the lookups and scans of a trace in the order of the file, which is that of time only within a
// frame. A lookup has no key (nil) if the trace has hashes, and its key is good until lookup returns. An error of
// lookup or scan ends the walk. A trace without an end is read as far as it goes; damage is an error, and what is no
// trace matches bench.ErrUsage.
func WalkTrace(path string, lookup func(l *lookuptrace.Lookup) error,
	scan func(s *lookuptrace.Scan) error) (*Walk, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, bench.Usagef("trace: %w", err)
	}
	defer func() { _ = f.Close() }() // it was only read
	r, err := lookuptrace.NewReader(f, path)
	if errors.Is(err, lookuptrace.ErrNotTrace) {
		err = bench.Usagef("%w; lookuptrace.Tracer writes one", err)
	}
	if err != nil {
		return nil, err
	}
	w := &Walk{Header: r.Header()}
	if info, err := f.Stat(); err == nil {
		w.Bytes = info.Size()
	}
	for {
		l, s, err := r.NextRecord()
		w.Unfinished = errors.Is(err, lookuptrace.ErrUnfinished)
		switch {
		case w.Unfinished || errors.Is(err, io.EOF):
			w.Dropped = r.Dropped()
			return w, nil
		case err != nil:
			return nil, fmt.Errorf("after %d good lookups and %d good scans: %w", w.Lookups, w.Scans, err)
		case s != nil:
			err = scan(s)
			w.Scans++
		default:
			err = lookup(&l)
			w.Lookups++
		}
		if err != nil {
			return nil, err
		}
	}
}

// fillPass is the pass of a trace's seed that fillers are drawn by.
const fillPass = 0x66696c6c

// fillTries is how often a filler is made of two keys before it is given bytes of its
// own.
const fillTries = 32

// fill adds n keys that are not in the trace, among those that were found in it: each
// is the head of one key and the tail of another from the same place on, so it looks like
// them, shares prefixes with them and lies between them. Where so few keys were found, or
// so much alike, that this gives no new key, its last eight bytes are random.
func (t *Trace) fill(n int, found []bool, seed uint64) []bool {
	var models []uint32
	for i, there := range found {
		if there {
			models = append(models, uint32(i))
		}
	}
	random := NewRandom(seed, fillPass)
	var key []byte
	for range n {
		for try := 0; ; try++ {
			head, tail := t.set.at(models[random.Below(len(models))]), t.set.at(models[random.Below(len(models))])
			cut := random.Below(len(head) + 1)
			key = append(append(key[:0], head[:cut]...), tail[min(cut, len(tail)):]...)
			if try >= fillTries {
				key = binary.BigEndian.AppendUint64(key[:max(0, len(key)-8)], random.Next())
			}
			if _, added := t.set.add(key); added {
				found = append(found, true)
				break
			}
		}
	}
	return found
}
