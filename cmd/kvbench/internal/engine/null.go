package engine

import (
	"context"

	"github.com/siftkv/siftkv/cmd/kvbench/internal/keys"
)

// null is an engine that stores nothing and computes its answers: what its
// lookups take is what the harness costs (walking the stream, the call, making
// and checking a value), and bounds that cost from above in every other row.
type null struct{ values keys.Values }

// NewNull returns an engine that answers with v.
func NewNull(v keys.Values) Store { return null{v} }

func (n null) Put(_, _ []byte) error { return nil }

func (n null) Settle(context.Context) error { return nil }

func (n null) Shape() (Shape, error) { return Shape{}, nil }

func (n null) NewReader(_ Access, kind Kind) (Reader, error) {
	return nullReader{values: n.values, found: kind == Existing}, nil
}

func (n null) Close() error { return nil }

type nullReader struct {
	uncounted
	values keys.Values
	found  bool
}

func (r nullReader) Get(dst, key []byte) ([]byte, bool, error) {
	if !r.found {
		return dst, false, nil
	}
	return r.values.Append(dst, key), true, nil
}
