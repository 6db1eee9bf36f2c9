package readset

import (
	"fmt"

	"github.com/siftkv/siftkv/internal/base"
	"github.com/siftkv/siftkv/internal/rangedel"
)

// A Tracker notes what one transaction reads. Once it has an error, it notes nothing.
type Tracker struct {
	Set
	Limit int   // of the set, in bytes; 0: nothing is noted, as the transaction cannot write
	Err   error // the set became too large, and is empty; or the transaction has ended
}

// AddKey notes that a key was looked up.
func (t *Tracker) AddKey(key []byte) error {
	if t.Err == nil && t.Limit > 0 {
		t.Set.AddKey(key)
		t.check()
	}
	return t.Err
}

// AddSpan notes that all keys of a span were looked for. If the set is too large then, t.Err says so.
func (t *Tracker) AddSpan(s rangedel.Span) {
	if t.Err == nil && t.Limit > 0 {
		t.Set.AddSpan(s)
		t.check()
	}
}

func (t *Tracker) check() {
	if size := t.Size(); size > t.Limit {
		t.Set, t.Err = Set{}, fmt.Errorf("%w: what the transaction has read takes %d bytes to remember, the limit is "+
			"%d: read less in one transaction", base.ErrTooLarge, size, t.Limit)
	}
}
