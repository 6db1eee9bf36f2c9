package owners

import (
	"context"
	_ "embed"
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
	"github.com/siftkv/siftkv/redisfilter/internal/chain"
	"github.com/siftkv/siftkv/redisfilter/internal/config"
	"github.com/siftkv/siftkv/redisfilter/internal/conn"
	"github.com/siftkv/siftkv/redisfilter/internal/layout"
)

// Windows are what a set has in Redis: a chain for each window of each owner. The first add to a window makes it; all
// of an owner's lie on one node of a cluster.
type windows struct {
	chain.Chains
	config.Hasher
	name    string
	headers [][]byte // of a new shard, by layer
	full    []int    // the bits with which a shard is full, marks among them, by layer
	hints   atomic.Pointer[hints]
}

// Hints say how many layers chains have beside the first, by the hash of a chain. So those of any number of owners take
// little memory. They are wrong for some, which costs a trip or reads a value that is not there.
type hints struct {
	newest int64 // window: each begins again, as the chains of its owners do
	layers [1 << 14]atomic.Uint32
}

func newWindows(c *conn.Conn, name string, cfg *config.Config) *windows {
	w := &windows{Chains: chain.Chains{Conn: c, Layers: cfg.Layers, Lazy: true}, Hasher: cfg.Hasher(), name: name}
	for _, l := range cfg.Layers {
		w.headers = append(w.headers, l.Blank()[:layout.HeaderLen])
		full := sort.Search(l.Lines*layout.MarkPosition, l.Full)
		w.full = append(w.full, l.Lines+full)
	}
	w.hints.Store(&hints{newest: math.MinInt64})
	return w
}

// prefix is how the keys of a window begin. Braces and slashes in an owner are escaped, so that no two owners have
// one prefix.
func (w *windows) prefix(owner, generation string, window int64) string {
	return layout.PartitionPrefix(w.name, url.PathEscape(owner), generation+":w"+strconv.FormatInt(window, 10))
}

// hintsFor returns the hints for operations whose newest window is the given one.
func (w *windows) hintsFor(newest int64) *hints {
	h := w.hints.Load()
	if newest > h.newest {
		w.hints.CompareAndSwap(h, &hints{newest: newest})
		h = w.hints.Load()
	}
	return h
}

// seats returns where hashes are in the windows from first to last: all of the first hash, then all of the next.
func (w *windows) seats(owner, generation string, first, last int64, hashes []uint64) []chain.Seat {
	h := w.hintsFor(last)
	seats := make([]chain.Seat, 0, len(hashes)*int(last-first+1))
	prefixes := make([]string, 0, last-first+1)
	for window := first; window <= last; window++ {
		prefixes = append(prefixes, w.prefix(owner, generation, window))
	}
	// Under another hash for each owner, keys that owners have in common do not hide the same others from all.
	own := w.Hash([]byte(owner))
	for _, hash := range hashes {
		hash ^= own
		spot := blocked.Locate(hash)
		_, within := spot.Split(1)
		for _, prefix := range prefixes {
			known := &h.layers[xxhash.Sum64String(prefix)%uint64(len(h.layers))]
			seats = append(seats, chain.Seat{Prefix: prefix, Spot: spot, Within: within, Hash: hash, Known: known})
		}
	}
	return seats
}

// What the script that adds found, if it is not negative.
const (
	addAgain = iota // with the layers that there are
	addPresent
	addFresh
)

//go:embed add.lua
var addSource string

var addScript = chain.NewScript(addSource)

// insertNew adds keys and reports which were fresh. The seats of each key are those of the windows that may have it,
// oldest first; the one at current gets it, and life is how long values of that one live. It takes one trip, and one
// more where chains have more layers than this process knew.
func (w *windows) insertNew(ctx context.Context, keys [][]chain.Seat, current int,
	life time.Duration) (fresh []bool, err error) {
	fresh = make([]bool, len(keys))
	todo := make([]int, len(keys))
	for i := range todo {
		todo[i] = i
	}
	// Windows may share a hint: what a reply tells of a key's windows is kept for the next round.
	layers := make([][]int, len(keys))
	for rounds := 0; len(todo) > 0; rounds++ {
		if rounds > len(w.Layers) {
			return fresh, fmt.Errorf("%w: %s grows at every look", conn.ErrForeign, keys[todo[0]][0].Prefix)
		}
		calls := make([]conn.Call, len(todo))
		for i, k := range todo {
			if layers[k] == nil {
				layers[k] = w.hinted(keys[k])
			}
			calls[i] = w.addCall(keys[k], layers[k], current, life)
		}
		replies := w.Conn.RunScript(ctx, addScript, calls)
		var again []int
		for i, k := range todo {
			found, failed := w.judgeAdd(replies[i], calls[i].Keys, keys[k], layers[k])
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
func (w *windows) hinted(seats []chain.Seat) []int {
	layers := make([]int, len(seats))
	for i, s := range seats {
		layers[i] = w.KnownLayers(s)
	}
	return layers
}

// addCall returns the script's call for a key, which asks for some layers of each chain.
func (w *windows) addCall(seats []chain.Seat, layers []int, current int, life time.Duration) conn.Call {
	var keys []string
	args := []any{len(seats), current + 1, max(1, life.Milliseconds()), len(w.Layers)}
	widest, probes := 0, 0
	for i, s := range seats {
		n := layers[i]
		for layer := range n {
			key, _ := w.ShardAt(s, layer)
			keys = append(keys, key)
		}
		args = append(args, n)
		widest = max(widest, n)
	}
	for _, s := range seats {
		args = append(args, layout.TagBytes(layout.ShardKey(s.Prefix, 0, 0)))
	}
	s := seats[current]
	for layer, shape := range w.Layers[:widest] {
		full := 0
		if w.CanGrow(layer) && shape.Looks(s.Hash) {
			full = w.full[layer]
		}
		key, line := w.ShardAt(s, layer)
		header := slices.Concat(w.headers[layer][:layout.TagAt], layout.TagBytes(key))
		args = append(args, layout.LineOffset(line), shape.Probes, header, full, layout.LineOffset(line+1)-1)
		probes = max(probes, shape.Probes)
	}
	var room [blocked.MaxProbes]uint16
	for _, p := range layout.BitPositions(room[:0], s.Spot, probes) {
		args = append(args, p)
	}
	return conn.Call{Keys: keys, Args: args}
}

// judgeAdd returns what the script found, and sets layers to how many each chain has, if it tells.
func (w *windows) judgeAdd(cmd *redis.Cmd, keys []string, seats []chain.Seat,
	layers []int) (found int64, err error) {
	reply, err := cmd.Int64Slice()
	switch {
	case err != nil:
		return 0, conn.Foreign(err, keys[0], nil)
	case len(reply) == 1 && reply[0] < 0 && reply[0] >= -int64(len(keys)):
		return 0, fmt.Errorf("%w: %s is no shard of windows", conn.ErrForeign, keys[-reply[0]-1])
	case len(reply) == 1 && reply[0] == addPresent:
	case len(reply) == 1+len(seats) && (reply[0] == addAgain || reply[0] == addFresh):
		for i, s := range seats {
			s.Learn(int(min(max(1, reply[i+1]), config.MaxLayers)))
			layers[i] = w.KnownLayers(s)
		}
	default:
		return 0, fmt.Errorf("%w: a script answered %v", conn.ErrForeign, reply)
	}
	return reply[0], nil
}
