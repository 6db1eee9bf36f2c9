package redisfilter

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"math"
	"net/url"
	"slices"
	"sort"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/cespare/xxhash/v2"
	"github.com/redis/go-redis/v9"

	"github.com/siftkv/siftkv/filterpolicy/blocked"
	"github.com/siftkv/siftkv/redisfilter/internal/layout"
)

// Owners is the content of Windows: a chain for each window of each owner. The first add to a window
// makes it; all of an owner's lie on one node of a cluster.
type owners struct {
	chains
	hasher
	name    string
	headers [][]byte // of a new shard, by layer
	full    []int    // the bits with which a shard is full, marks among them, by layer
	hints   atomic.Pointer[hints]
}

// Hints say how many layers chains have beside the first, by the hash of a chain: so much that those of
// any number of owners take little memory, and wrong for some, which costs a trip or reads a value that is not there.
type hints struct {
	newest int64 // window: each begins anew, as the chains of its owners do
	layers [1 << 14]atomic.Uint32
}

func newOwners(c *Client, name string, cfg *config) *owners {
	o := &owners{chains: chains{c, cfg.Layers, true}, hasher: cfg.hasher(), name: name}
	for _, l := range cfg.Layers {
		o.headers = append(o.headers, l.Blank()[:layout.HeaderLen])
		full := sort.Search(l.Lines*layout.MarkPosition, l.Full)
		o.full = append(o.full, l.Lines+full)
	}
	o.hints.Store(&hints{newest: math.MinInt64})
	return o
}

// prefix is how the keys of a window begin. Braces and slashes in an owner are escaped, so that no two owners
// have one prefix.
func (o *owners) prefix(owner, generation string, window int64) string {
	return layout.PartitionPrefix(o.name, url.PathEscape(owner), generation+":w"+strconv.FormatInt(window, 10))
}

// hintsFor returns the hints for operations whose newest window is the given one.
func (o *owners) hintsFor(newest int64) *hints {
	h := o.hints.Load()
	if newest > h.newest {
		o.hints.CompareAndSwap(h, &hints{newest: newest})
		h = o.hints.Load()
	}
	return h
}

// seats returns where hashes are in the windows from first to last: all of the first hash, then all
// of the next.
func (o *owners) seats(owner, generation string, first, last int64, hashes []uint64) []seat {
	h := o.hintsFor(last)
	seats := make([]seat, 0, len(hashes)*int(last-first+1))
	prefixes := make([]string, 0, last-first+1)
	for window := first; window <= last; window++ {
		prefixes = append(prefixes, o.prefix(owner, generation, window))
	}
	// Under another hash for each owner, keys that owners have in common do not hide the same others from all.
	own := o.hash([]byte(owner))
	for _, hash := range hashes {
		hash ^= own
		spot := blocked.Locate(hash)
		_, within := spot.Split(1)
		for _, prefix := range prefixes {
			known := &h.layers[xxhash.Sum64String(prefix)%uint64(len(h.layers))]
			seats = append(seats, seat{prefix: prefix, spot: spot, within: within, hash: hash, known: known})
		}
	}
	return seats
}

// A window is made by its first add and removed by Redis: nobody builds, checks or removes a generation.

func (o *owners) blank(context.Context, string) error { return nil }

func (o *owners) check(context.Context, string) error { return nil }

func (o *owners) discard(context.Context, string) error { return nil }

func (o *owners) insert(context.Context, string, []uint64) error { return errors.ErrUnsupported }

func (o *owners) bulk(generation string) (add insert, finish func(context.Context) error) {
	add = func(ctx context.Context, hashes []uint64) error { return o.insert(ctx, generation, hashes) }
	return add, func(context.Context) error { return nil }
}

// What the script that adds found, if it is not negative.
const (
	addAgain = iota // with the layers that there are
	addPresent
	addFresh
)

//go:embed window_add.lua
var windowAddSource string

var windowAdd = newScript(lineSource + windowAddSource)

// insertNew adds keys and reports which were fresh. The seats of each key are those of the windows that
// may have it, oldest first; the one at current gets it, and life is how long values of that one live. It takes
// one trip, and one more where chains have more layers than this process knew.
func (o *owners) insertNew(ctx context.Context, keys [][]seat, current int,
	life time.Duration) (fresh []bool, err error) {
	fresh = make([]bool, len(keys))
	todo := make([]int, len(keys))
	for i := range todo {
		todo[i] = i
	}
	// Windows may share a hint: what a reply tells of a key's windows is kept for the next round.
	layers := make([][]int, len(keys))
	for rounds := 0; len(todo) > 0; rounds++ {
		if rounds > len(o.layers) {
			return fresh, fmt.Errorf("%w: %s grows at every look", ErrForeign, keys[todo[0]][0].prefix)
		}
		calls := make([]scriptCall, len(todo))
		for i, k := range todo {
			if layers[k] == nil {
				layers[k] = o.hinted(keys[k])
			}
			calls[i] = o.addCall(keys[k], layers[k], current, life)
		}
		replies := o.client.runScript(ctx, windowAdd, calls)
		var again []int
		for i, k := range todo {
			found, failed := o.judgeAdd(replies[i], calls[i].keys, keys[k], layers[k])
			if err == nil {
				err = failed
			}
			fresh[k] = found == addFresh && failed == nil
			if found == addAgain && failed == nil {
				again = append(again, k)
			}
		}
		if err != nil {
			return fresh, err
		}
		todo = again
	}
	return fresh, nil
}

// hinted returns how many layers each chain has as far as this process knows.
func (o *owners) hinted(seats []seat) []int {
	layers := make([]int, len(seats))
	for i, s := range seats {
		layers[i] = o.knownLayers(s)
	}
	return layers
}

// addCall returns the script's call for a key, which asks for some layers of each chain.
func (o *owners) addCall(seats []seat, layers []int, current int, life time.Duration) scriptCall {
	var keys []string
	args := []any{len(seats), current + 1, max(1, life.Milliseconds()), len(o.layers)}
	widest, probes := 0, 0
	for i, s := range seats {
		n := layers[i]
		for layer := range n {
			key, _ := o.shardAt(s, layer)
			keys = append(keys, key)
		}
		args = append(args, n)
		widest = max(widest, n)
	}
	for _, s := range seats {
		args = append(args, layout.TagBytes(layout.ShardKey(s.prefix, 0, 0)))
	}
	s := seats[current]
	for layer, shape := range o.layers[:widest] {
		full := 0
		if o.canGrow(layer) && shape.Looks(s.hash) {
			full = o.full[layer]
		}
		key, line := o.shardAt(s, layer)
		header := slices.Concat(o.headers[layer][:layout.TagAt], layout.TagBytes(key))
		args = append(args, layout.LineOffset(line), shape.Probes, header, full, layout.LineOffset(line+1)-1)
		probes = max(probes, shape.Probes)
	}
	var room [blocked.MaxProbes]uint16
	for _, p := range layout.BitPositions(room[:0], s.spot, probes) {
		args = append(args, p)
	}
	return scriptCall{keys, args}
}

// judgeAdd returns what the script found, and sets layers to how many each chain has, if it tells.
func (o *owners) judgeAdd(cmd *redis.IntSliceCmd, keys []string, seats []seat, layers []int) (found int64, err error) {
	reply, err := cmd.Result()
	switch {
	case err != nil:
		return 0, foreign(err, keys[0], nil)
	case len(reply) == 1 && reply[0] < 0 && reply[0] >= -int64(len(keys)):
		return 0, fmt.Errorf("%w: %s is no shard of windows", ErrForeign, keys[-reply[0]-1])
	case len(reply) == 1 && reply[0] == addPresent:
	case len(reply) == 1+len(seats) && (reply[0] == addAgain || reply[0] == addFresh):
		for i, s := range seats {
			s.learn(int(min(max(1, reply[i+1]), maxLayers)))
			layers[i] = o.knownLayers(s)
		}
	default:
		return 0, fmt.Errorf("%w: a script answered %v", ErrForeign, reply)
	}
	return reply[0], nil
}
