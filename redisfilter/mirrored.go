package redisfilter

import (
	"context"

	"github.com/siftkv/siftkv/redisfilter/internal/copies"
	"github.com/siftkv/siftkv/redisfilter/mirror"
)

// Mirror returns a mirror of the set, which answers most questions without a trip. It begins without any copy, and
// asks the Set; its Ready waits until it has them. o may be nil. Close the mirror before the set.
func (s *Set) Mirror(ctx context.Context, o *mirror.Options) (*mirror.Mirror, error) {
	return mirror.New(ctx, mirrored{s}, o)
}

// mirrored is a Set for its mirrors, whose methods are no part of the API of sets.
type mirrored struct{ *Set }

func (m mirrored) Inside() copies.Inside {
	return copies.Inside{Conn: m.client, Name: m.name, Logger: m.options.Logger}
}

func (m mirrored) View() copies.SetView {
	v := m.view.Load()
	if err := v.usable(); err != nil {
		return copies.SetView{Err: err}
	}
	return copies.SetView{
		Config: v.cfg, Parts: v.content.(partitions).Parts, Trusted: v.trusted, Confirmed: v.confirmed, Err: v.err,
	}
}
