package redisfilter

import "context"

// A Set is a blocked Bloom filter that many processes share. It is for any number of goroutines.
//
// Its methods are those of the local sets, with a context and an error. Contains says (true, err) whenever it
// cannot know: who ignores the error fails open, who returns it fails closed.
//
// A key is any bytes, none included. No method changes a key or keeps it after it returns, and the slices
// that methods return are the caller's. Slices of answers have one for each key, with an error too.
type Set struct {
	lineage
}

// New returns the set of a name, and makes it if there is none. It is made for n keys, 1 to 2^36, and a
// rate of false positives from 1e-6 to 0.5. With Options.Growth, which takes rates from 1e-5, the rate
// holds however many keys the set gets. A name has 1 to 200 bytes, without braces and white space. o may
// be nil. Any number of processes may call New at the same time.
//
// A set that was just made does not know its keys: until it is loaded, by Load or from
// Options.Source, all answers are "maybe" and ErrIncomplete. Options.StartEmpty makes it an empty set.
//
// A set of the name that was made for another n, rate, Growth, Partitions or ShardBytes is used as it is, by
// all processes alike, and the next Load of this process makes it as it was asked for here. That of a
// process that asked otherwise makes it as that one did.
//
// New fails with ErrMismatch if there is a set of the name of another kind or PublicHash,
// with ErrForeign if the name is taken by something else, and with ErrUnavailable if Redis is away. A name
// that was dropped may be used again at once.
func New(ctx context.Context, c *Client, name string, n int, rate float64, o *Options) (*Set, error) {
	if o == nil {
		o = &Options{}
	}
	asked := request{
		Kind: kindBlocked, Keys: n, Rate: rate, Growth: o.Growth, Partitions: o.Partitions, ShardBytes: o.ShardBytes,
		PublicHash: o.PublicHash,
	}
	if asked.ShardBytes == 0 {
		asked.ShardBytes = defaultShard
	}
	fresh, err := newConfig(asked)
	if err != nil {
		return nil, err
	}
	s := &Set{lineage{lifecycle: o.lifecycle(), client: c, name: name, asked: asked}}
	s.open = func(cfg *config) content { return newPartitions(c, name, cfg) }
	if err := s.start(ctx, fresh); err != nil {
		return nil, err
	}
	return s, nil
}

func newConfig(asked request) (*config, error) {
	count, layers, err := shapes(asked)
	if err != nil {
		return nil, err
	}
	cfg := &config{Version: configVersion, Asked: asked, Partitions: count, Layers: layers}
	if !asked.PublicHash {
		cfg.Seed = newSeed()
	}
	return cfg, nil
}

// Add adds a key: one trip to Redis, two if the set grows. It returns nil once every process that asks
// from then on is told of the key. Add a key before its row commits: the other order loses keys of
// programs that end between the two.
func (s *Set) Add(ctx context.Context, key []byte) error { return s.MAdd(ctx, [][]byte{key}) }

// AddNew adds a key and reports whether it was new. True is certain, and of any number of processes
// that add a key at the same time at most one is told so; a new key is taken for an old one at the rate of
// false positives, and whenever there is an error, such as ErrIncomplete before the set was loaded. It
// takes one trip; in a set that grows it is a script, and takes more trips when a layer is full.
func (s *Set) AddNew(ctx context.Context, key []byte) (bool, error) {
	fresh, err := s.MAddNew(ctx, [][]byte{key})
	return fresh[0], err
}

// Contains reports whether a key may have been added; false is certain. It takes one trip to Redis.
func (s *Set) Contains(ctx context.Context, key []byte) (bool, error) {
	maybe, err := s.MContains(ctx, [][]byte{key})
	return maybe[0], err
}

// MAdd is Add for many keys, in one trip to each node; in two if the set grows, and in more when a layer is
// full. With an error, some keys may have been added. Options.Timeout bounds all of it: give ctx a
// deadline of its own for thousands of keys, or use Load or Import.
func (s *Set) MAdd(ctx context.Context, keys [][]byte) error {
	_, err := s.addAll(ctx, keys, false)
	return err
}

// MAddNew is AddNew for many keys. A set that grows takes a trip for each. Of a key that is there twice, one
// is new. With an error no answer is true, though some keys may have been added.
func (s *Set) MAddNew(ctx context.Context, keys [][]byte) (fresh []bool, err error) {
	return s.addAll(ctx, keys, true)
}

// MContains is Contains for many keys, in one trip to each node. Answers that are false are certain,
// with an error too.
func (s *Set) MContains(ctx context.Context, keys [][]byte) ([]bool, error) {
	return s.askAll(ctx, keys)
}

// Hash returns what the set knows of a key, for local sets that are imported or were exported. It takes no trip. It
// depends on the seed of the set, which changes when the set is dropped and made again; do not store it.
func (s *Set) Hash(key []byte) uint64 {
	if v := s.view.Load(); v.content != nil {
		return v.content.hash(key)
	}
	return 0
}

// Load makes the set anew out of a source and takes it into use, while all processes go on to ask
// and add: the way to load a set for the first time, after a loss, and to get rid of keys that
// are no longer in the database. A nil source stands for Options.Source, and is an error if there is none.
//
// It takes 1.5 s, Options.Grace and the time of the source until the set is in use, and three seconds
// more to remove the one that was in use before; 4.5 and 7.5 s by default. While it runs there are two
// sets in Redis. The keys of the source are gathered in memory, as much as the set has in Redis,
// unless the set grows: then each is added to Redis. The error of a source is returned, and the set stays as it was.
// Loads of a set wait for each other, in whatever process they run. What a load leaves in Redis that is
// broken off, or whose process ends, is removed within seconds by any process that has the set open.
func (s *Set) Load(ctx context.Context, source Source) error {
	return s.client.wrap(s.name, s.load(ctx, source))
}

// Ready waits until the set can say no, or returns why it cannot when ctx ends.
func (s *Set) Ready(ctx context.Context) error { return s.client.wrap(s.name, s.ready(ctx)) }

// Drop removes the set from Redis, in 1.5 s, after which no process adds to it any more. Other processes are
// told ErrDropped for an hour. A Drop that failed, or was broken off, may be called again.
func (s *Set) Drop(ctx context.Context) error { return s.client.wrap(s.name, s.drop(ctx)) }

// Close ends what the set does in the background. What is in Redis stays.
func (s *Set) Close() error {
	s.close()
	return nil
}
