package engine

// A Live store is used by several goroutines at once, which write to it while
// others read. Put and Settle are still for one goroutine.
type Live interface {
	Store
	// Set writes one key, durable on return if the settings say so. It does not
	// keep the slices.
	Set(key, value []byte) error
	// Scan calls visit with up to limit entries in key order, from the first at or
	// after start on; no limit if it is 0. It makes a view of its own for each call, as
	// a program does that wants what is there now. The slices are visit's until it
	// returns.
	Scan(start []byte, limit int, visit func(key, value []byte)) error
}

// A Remembering store says what it keeps in memory.
type Remembering interface{ Memory() Memory }

// Memory is what a store has in memory, in bytes.
type Memory struct {
	Filters   int64 `json:"filters"`
	Indexes   int64 `json:"indexes"`
	Cache     int64 `json:"cache"`
	Memtables int64 `json:"memtables"`
}

// A Durability says what a Set that has returned survives.
type Durability string

// Durabilities, from the weakest on. An engine that lacks one gives the next
// stronger, except that none is stronger than what it can do without waiting for the
// disk.
const (
	Soon    Durability = "soon" // perhaps not the end of the process
	WithOS  Durability = "os"   // the end of the process
	Durable Durability = "disk" // the loss of power
)
