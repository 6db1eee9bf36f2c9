package lookupsample

import (
	"math"
	"sync"
	"sync/atomic"
	"time"

	"github.com/siftkv/siftkv/internal/lookuptrace"
)

// MinBytes is the least memory of a sampler.
const MinBytes = 64 << 10

const (
	// There is room for one lookup for each budgetOfLookup bytes. Fixed arrays take bytesPerLookup of them, with
	// those of scans, of which there is one for lookupsPerScan; bounds of scans have scanShare of the rest, and
	// keys of lookups what is left.
	budgetOfLookup = 96
	bytesPerLookup = 4 + 2*4 + 32 + bytesPerScan/lookupsPerScan
	bytesPerScan   = 80
	lookupsPerScan = 16
	scanShare      = 1.0 / 8

	// keyOverhead is what the allocation of a key takes in addition to its bytes, on average.
	keyOverhead = 8

	// maxKept is what is kept of a bound of a scan, in bytes, if there is room for 16 such scans.
	maxKept = 4 << 10

	// Once the sample has been full, at most one lookup in leastSpacing is in it: a key that is
	// looked up all the time is left out, and many others with it.
	leastSpacing = 128

	// When old lookups go instead of keys, at most one key in firstSteady is sampled.
	firstSteady = 256
)

// A Lookup is one of a sample.
type Lookup struct {
	Key   int32 // its number among Sample.Keys
	Found bool  // the key was there
}

// A Scan is what an iterator did from one seek to the next.
type Scan struct {
	// Start is where it began, and End the bound that it could not pass, the lower one if it is Backward. Nil: it
	// began at the first or last key, or there was no bound. Long ones are cut: of 4 KiB in a sample of 9 MiB or
	// more, of proportionally less in a smaller one.
	Start, End []byte
	Entries    uint64 // that it came to
	Backward   bool
	Ended      bool // it was not broken off
}

// A Sample is what a sampler has at a moment. It is the caller's, but keys must not be changed.
type Sample struct {
	Keys    [][]byte
	Lookups []Lookup // the oldest first
	Scans   []Scan   // the oldest first
	OneIn   float64  // keys, of which one is in the sample
	Since   time.Time
	Total   uint64 // lookups since then, of all keys; about
	Dropped uint64 // lookups and scans that were to be sampled, and came while another was
}

// A Sampler takes lookups and scans. Its methods may be called by several goroutines.
type Sampler struct {
	most    atomic.Uint64 // a key is sampled if its mixed hash is not above
	dropped atomic.Uint64

	total   func() uint64
	lowered func(most uint64)
	floor   uint64 // most is not halved below it for want of room

	mu        sync.Mutex
	began     uint64 // total at the beginning of the sample
	since     time.Time
	lookups   []int32 // number of the key, shifted by one; the last bit: found
	entries   []entry
	table     []int32 // by hash: number of the key and 1; 0: none
	keyBytes  int     // of entries
	keyRoom   int
	scans     []scan
	scanBytes int // of their bounds
	scanRoom  int
}

type entry struct {
	hash uint64
	key  []byte
}

// A scan is one of the sample, with the mixed hash of where it starts.
type scan struct {
	Scan
	hash uint64
}

func (s *scan) bytes() int { return len(s.Start) + len(s.End) + 2*keyOverhead }

// New returns a sampler that takes bytes bytes, at least MinBytes. It should show what a cache of cacheBlocks blocks
// would do; 0 is none. total returns the number of lookups, and is called now and then. lowered is called, with locks
// held, when Most has become less.
func New(bytes, cacheBlocks int64, total func() uint64, lowered func(most uint64)) *Sampler {
	n := int(max(bytes, MinBytes) / budgetOfLookup)
	rest := int(max(bytes, MinBytes)) - n*bytesPerLookup
	scanRoom := int(float64(rest) * scanShare)
	s := &Sampler{
		total: total, began: total(), since: time.Now(), lowered: lowered,
		lookups: make([]int32, 0, n), entries: make([]entry, 0, n), table: make([]int32, 2*n),
		scans: make([]scan, 0, n/lookupsPerScan), keyRoom: rest - scanRoom, scanRoom: scanRoom,
	}
	// The sample then reaches back over eight times as many lookups as the cache has blocks, or more.
	oneIn := max(firstSteady, float64(8*cacheBlocks)/float64(n))
	s.floor = uint64(math.MaxUint64 / oneIn)
	s.most.Store(math.MaxUint64)
	return s
}

// Most returns the threshold: keys with a greater mixed hash (lookuptrace.Mix) are not sampled.
func (s *Sampler) Most() uint64 { return s.most.Load() }

// lock locks the sampler to take what has a mixed hash. It reports false if that is not sampled, or is dropped
// because another is being taken; the sampler is not locked then.
func (s *Sampler) lock(mixed uint64) bool {
	if mixed > s.most.Load() {
		return false
	}
	if !s.mu.TryLock() {
		s.dropped.Add(1)
		return false
	}
	return true
}

// Lookup takes a lookup of a key with a hash, which it copies if need be. It does not wait.
func (s *Sampler) Lookup(key []byte, hash uint64, found bool) {
	mixed := lookuptrace.Mix(hash)
	if !s.lock(mixed) {
		return
	}
	defer s.mu.Unlock()
	if len(s.lookups) == cap(s.lookups) {
		s.makeRoom()
		if mixed > s.most.Load() {
			return
		}
	}
	at := s.find(mixed)
	if s.table[at] == 0 {
		size := len(key) + keyOverhead
		switch {
		case size > s.keyRoom/8:
			s.dropped.Add(1)
			return
		case s.keyBytes+size > s.keyRoom:
			s.makeRoom()
			if mixed > s.most.Load() {
				return
			}
			at = s.find(mixed)
		}
		s.entries = append(s.entries, entry{mixed, append([]byte(nil), key...)})
		s.keyBytes += size
		s.table[at] = int32(len(s.entries))
	}
	word := (s.table[at] - 1) << 1
	if found {
		word |= 1
	}
	s.lookups = append(s.lookups, word)
}

// Scan takes a scan that started at a key with a hash. Its bounds are copied. It does not wait.
func (s *Sampler) Scan(o *Scan, hash uint64) {
	mixed := lookuptrace.Mix(hash)
	if !s.lock(mixed) {
		return
	}
	defer s.mu.Unlock()
	kept := scan{*o, mixed}
	kept.Start, kept.End = s.cut(o.Start), s.cut(o.End)
	for len(s.scans) == cap(s.scans) || s.scanBytes+kept.bytes() > s.scanRoom {
		s.dropScans()
	}
	s.scans = append(s.scans, kept)
	s.scanBytes += kept.bytes()
}

// cut returns a copy of what is kept of a bound.
func (s *Sampler) cut(key []byte) []byte {
	if key == nil {
		return nil
	}
	return append([]byte{}, key[:min(len(key), maxKept, s.scanRoom/32)]...)
}

// find returns the place of a mixed hash in the table: that of its key, or a free one.
func (s *Sampler) find(mixed uint64) int {
	// The upper bits of what is sampled are all 0.
	at := int(lookuptrace.Mix(mixed) >> 33 * uint64(len(s.table)) >> 31)
	for s.table[at] != 0 && s.entries[s.table[at]-1].hash != mixed {
		if at++; at == len(s.table) {
			at = 0
		}
	}
	return at
}

// Take returns a copy of the sample.
func (s *Sampler) Take() Sample {
	s.mu.Lock()
	defer s.mu.Unlock()
	r := Sample{Since: s.since, Total: s.total() - s.began, Dropped: s.dropped.Load(),
		OneIn: math.MaxUint64 / float64(s.most.Load()),
		Keys:  make([][]byte, len(s.entries)), Lookups: make([]Lookup, len(s.lookups)),
		Scans: make([]Scan, len(s.scans))}
	for i := range s.entries {
		r.Keys[i] = s.entries[i].key
	}
	for i := range s.scans {
		r.Scans[i] = s.scans[i].Scan
	}
	for i, word := range s.lookups {
		r.Lookups[i] = Lookup{word >> 1, word&1 != 0}
	}
	return r
}
