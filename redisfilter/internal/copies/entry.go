package copies

import (
	"encoding/binary"
	"sync"
	"sync/atomic"
	"time"
)

// State is what a mirror knows of a string.
type State uint32

// What a mirror may know of a string.
const (
	Unknown State = iota // not fetched yet
	Clean                // as the server had it when the lease began, or newer
	Dirty                // changed since it was fetched, or the connection was lost
	Lost                 // missing, of another length, not valid, or no string
)

// An Entry is the local copy of one string, made by Server.Entry. Any number of goroutines may use it.
type Entry struct {
	mirror *Server
	key    string
	size   int
	value  atomic.Pointer[value] // never nil

	fetched time.Duration // when it was last asked for; the mirror's goroutine alone uses it
	wanted  bool          // guarded by mirror.mu, as is queued
	queued  bool          // it is in mirror.due

	mu        sync.Mutex // guards the fields below and every change of value
	flying    bool       // a fetch is under way
	crossed   bool       // the server invalidated the string meanwhile
	added     []uint32   // the program set these bits meanwhile
	forgotten bool       // no invalidation is announced any more
}

// value is what was fetched once. Its bits are only ever set, never cleared: another fetch makes another value.
type value struct {
	words []uint64 // little-endian; nil unless a string of the right length was fetched
	state atomic.Uint32
}

func (v *value) State() State { return State(v.state.Load()) }

// Load returns the copy and whether it is fresh, which the package's documentation explains. It takes no lock and
// allocates nothing. A copy that is not fresh may be empty.
func (e *Entry) Load() (View, bool) {
	// The lease is read first: it vouches for what had been invalidated when it was written, so a state that is read
	// later includes that.
	leased := e.mirror.leased()
	v := e.value.Load()
	return View{words: v.words, size: e.size}, leased && v.State() == Clean
}

// Or sets bits of the copy, by their offsets as SETBIT counts them. The caller has set them in Redis and has Redis'
// reply; every Load after Or has them. Offsets beyond the string are ignored.
//
// A fetch that was sent before Or may bring the string as it was before: Or's bits are then set in what it brings.
// They are the only ones that a value hands on to the next. Anything else may have gone with a string that was
// deleted or replaced, above all marks that say how much of it is whole.
func (e *Entry) Or(offsets ...uint32) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.value.Load().set(offsets)
	if e.flying {
		e.added = append(e.added, offsets...)
	}
}

// set sets bits, except those beyond the end.
func (v *value) set(offsets []uint32) {
	for _, offset := range offsets {
		if i, mask := place(offset); i < len(v.words) {
			atomic.OrUint64(&v.words[i], mask)
		}
	}
}

// place returns the word that has a bit, and a mask of the bit.
func place(offset uint32) (word int, mask uint64) {
	bit := offset&^7 | (7 - offset&7) // Redis counts from a byte's most significant bit
	return int(offset >> 6), 1 << (bit & 63)
}

// takeOff notes that a fetch is about to be sent.
func (e *Entry) takeOff(now time.Duration) {
	e.fetched = now
	e.mu.Lock()
	defer e.mu.Unlock()
	e.flying, e.crossed, e.added = true, false, e.added[:0]
}

// land puts in place what a fetch brought: the string's bytes if state is Clean, nothing if it is Lost. If state is
// Dirty the fetch failed, and what there was stays, dirty. It reports whether the string is to be fetched again.
func (e *Entry) land(state State, b []byte) (again bool) {
	var words []uint64
	if state == Clean {
		words = wordsOf(b)
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.flying = false
	if state == Dirty {
		e.dirty()
		return true
	}
	v := &value{words: words}
	v.set(e.added)
	if e.crossed || e.forgotten {
		state = Dirty
	}
	v.state.Store(uint32(state))
	e.value.Store(v)
	return e.crossed
}

// spoil notes an invalidation, and reports whether a fetch is under way: then land tells what is to be done.
func (e *Entry) spoil() (flying bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.dirty()
	e.crossed = true
	return e.flying
}

// dirty marks the value as changed. The caller holds e.mu.
func (e *Entry) dirty() {
	if v := e.value.Load(); v.State() != Unknown {
		v.state.Store(uint32(Dirty))
	}
}

// forget makes the copy dirty for good.
func (e *Entry) forget() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.forgotten = true
	e.dirty()
}

func wordsOf(b []byte) []uint64 {
	words := make([]uint64, (len(b)+7)/8)
	for i := range len(b) / 8 {
		words[i] = binary.LittleEndian.Uint64(b[8*i:])
	}
	if tail := len(b) % 8; tail > 0 {
		var last [8]byte
		copy(last[:], b[len(b)-tail:])
		words[len(words)-1] = binary.LittleEndian.Uint64(last[:])
	}
	return words
}

// A View is a string as it was fetched, and what Or has added since. It may gain bits while it is used, and loses none.
type View struct {
	words []uint64
	size  int
}

// Len returns the length in bytes: 0, or the size that was wanted.
func (v View) Len() int {
	if v.words == nil {
		return 0
	}
	return v.size
}

// ReadAt copies bytes from offset on into dst, and returns how many there were. Eight bytes at a time are consistent
// if offset is a multiple of 8.
func (v View) ReadAt(dst []byte, offset int) int {
	n := min(len(dst), v.Len()-offset)
	if offset < 0 || n <= 0 {
		return 0
	}
	dst = dst[:n]
	for len(dst) > 0 {
		var word [8]byte
		binary.LittleEndian.PutUint64(word[:], atomic.LoadUint64(&v.words[offset/8]))
		k := copy(dst, word[offset%8:])
		dst, offset = dst[k:], offset+k
	}
	return n
}
