package engine

import (
	"context"

	"github.com/siftkv/siftkv/cmd/kvbench/internal/keys"
)

// Null is an engine that stores nothing and computes its answers: what its
// lookups take is what the harness costs (walking the stream, the call, making
// and checking a value), and bounds that cost from above in every other row.
type Null struct{ values keys.Values }

// NewNull returns an engine that answers with v.
func NewNull(v keys.Values) *Null { return &Null{v} }

// Put does nothing.
func (n *Null) Put(_, _ []byte) error { return nil }

// Settle does nothing.
func (n *Null) Settle(context.Context) error { return nil }

// Shape is empty.
func (n *Null) Shape() (Shape, error) { return Shape{}, nil }

// NewReader returns a reader that finds every key, or none, by kind.
func (n *Null) NewReader(_ Access, kind Kind) (Reader, error) {
	return nullReader{values: n.values, found: kind == Existing}, nil
}

// Close does nothing.
func (n *Null) Close() error { return nil }

type nullReader struct {
	uncounted
	values keys.Values
	found  bool
}

// Get computes the value of key, or says it is absent.
func (r nullReader) Get(dst, key []byte) ([]byte, bool, error) {
	if !r.found {
		return dst, false, nil
	}
	return r.values.Append(dst, key), true, nil
}
