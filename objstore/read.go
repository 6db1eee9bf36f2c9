package objstore

import (
	"context"
	"errors"
	"io"
	"slices"
)

// minRead is what ReadAll asks for at least, in bytes: less is not cheaper.
const minRead = 4 << 10

// ReadAll returns a whole object: in one request if it has at most hint bytes, else in few, each of which asks for as
// much again as there is. It may need twice the object's size in memory.
func ReadAll(ctx context.Context, s Store, key string, hint int) ([]byte, error) {
	p := make([]byte, max(hint, minRead)+1) // a byte more tells where the end is
	n, err := s.GetRange(ctx, key, 0, p)
	for err == nil {
		p = slices.Grow(p, len(p))[:2*len(p)]
		var m int
		m, err = s.GetRange(ctx, key, int64(n), p[n:])
		n += m
	}
	if !errors.Is(err, io.EOF) {
		return nil, err
	}
	return p[:n:n], nil
}
