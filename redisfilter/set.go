package redisfilter

import (
	"context"

	"github.com/siftkv/siftkv/redisfilter/internal/config"
)

// A Set is a blocked Bloom filter that many processes share. It is for any number of goroutines.
//
// Its methods are those of the local sets, with a context and an error. Contains says (true, err) whenever it cannot
// know: who ignores the error fails open, who returns it fails closed.
//
// A key is any bytes, none included. No method changes a key or keeps it after it returns, and the slices that
// methods return are the caller's. Slices of answers have one for each key, with an error too.
type Set struct{ lineage }

// New returns the set of a name, and makes it if there is none. It is made for n keys, 1 to 2^36, and a rate of false
// positives from 1e-6 to 0.5. With Options.Growth, which takes rates from 1e-5, the rate holds however many keys the
// set gets. A name has 1 to 200 bytes, without braces and white space. o may be nil. Any number of processes may call
// New at the same time.
//
// A set that was just made does not know its keys: until it is loaded, by Load or from Options.Source, all answers
// are "maybe" and ErrIncomplete. Options.StartEmpty makes it an empty set.
//
// A set of the name that was made for another n, rate, Growth, Partitions or ShardBytes is used as it is, by all
// processes alike. The next Load of this process makes it as it was asked for here. That of a process that asked
// otherwise makes it as that one did.
//
// New fails with ErrMismatch if there is a set of the name of another kind or PublicHash, with ErrForeign if the name
// is taken by something else, and with ErrUnavailable if Redis is away. A name that was dropped may be used again at
// once.
func New(ctx context.Context, c *Client, name string, n int, rate float64, o *Options) (*Set, error) {
	s := &Set{}
	if err := s.start(ctx, c, name, config.Request{Kind: config.KindBlocked, Keys: n, Rate: rate}, o); err != nil {
		return nil, err
	}
	return s, nil
}

// Hash returns what the set knows of a key, for local sets that are imported or were exported. It takes no trip. It
// depends on the seed of the set, which changes when the set is dropped and made again; do not store it.
func (s *Set) Hash(key []byte) uint64 {
	if v := s.view.Load(); v.content != nil {
		return v.content.Hash(key)
	}
	return 0
}
