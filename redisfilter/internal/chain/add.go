package chain

import (
	"context"
	_ "embed"
	"fmt"
	"math"

	"github.com/redis/go-redis/v9"

	"github.com/siftkv/siftkv/filterpolicy/blocked"
	"github.com/siftkv/siftkv/redisfilter/internal/conn"
	"github.com/siftkv/siftkv/redisfilter/internal/layout"
)

// An Added says what an add found.
type Added struct {
	Fresh bool // the key was not there
	Whole bool // so that fresh is certain
}

type adding struct {
	seat   int
	layer  int
	set    *redis.IntSliceCmd
	count  *redis.IntCmd    // nil unless this add looks how full its shard is
	header *redis.StringCmd // of layer 0, read after set; nil if the set does not grow
}

// Add adds keys to their chains and says what it found. A set of one size needs one trip. One that grows looks first,
// so that keys that come again do not make it grow; of two that add a key at the same time both may find it fresh:
// see addNew.
func (c *Chains) Add(ctx context.Context, seats []Seat) ([]Added, error) {
	found := make([]Added, len(seats))
	answers := make([]layout.Answer, len(seats))
	if c.Grows() {
		var err error
		if answers, err = c.Lookup(ctx, seats); err != nil {
			return found, err
		}
	}
	todo := make([]int, 0, len(seats))
	for i := range seats {
		if found[i].Whole = answers[i] != layout.Lost; answers[i] != layout.Present {
			todo = append(todo, i)
		}
	}
	for len(todo) > 0 {
		n, err := c.stride(ctx, seats, todo)
		if err != nil {
			return found, err
		}
		again, err := c.addOnce(ctx, seats, todo[:n], found)
		if err != nil {
			return found, err
		}
		todo = append(again, todo[n:]...)
	}
	return found, nil
}

// stride returns how many keys may be added before the caller must look how full their chains are: those that there is
// room for. A few keys do not need a look, which takes a trip.
func (c *Chains) stride(ctx context.Context, seats []Seat, todo []int) (int, error) {
	if !c.Grows() {
		return len(todo), nil
	}
	added := map[string]int{}
	looks := map[string]*redis.IntCmd{}
	var cmds []redis.Cmder
	for _, i := range todo {
		s := seats[i]
		if added[s.Prefix]++; added[s.Prefix] != c.few(s)+1 {
			continue
		}
		key, _ := c.ShardAt(s, c.KnownLayers(s)-1)
		looks[s.Prefix] = redis.NewIntCmd(ctx, "bitcount", key, layout.HeaderLen, -1)
		cmds = append(cmds, looks[s.Prefix])
	}
	if len(looks) == 0 {
		return len(todo), nil
	}
	c.Conn.Run(ctx, cmds...)
	clear(added)
	for n, i := range todo {
		s := seats[i]
		room := c.few(s)
		if look := looks[s.Prefix]; look != nil {
			if err := look.Err(); err != nil {
				return 0, conn.Foreign(err, s.Prefix, nil)
			}
			room = max(room, c.room(s, int(look.Val())))
		}
		if added[s.Prefix]++; added[s.Prefix] > room {
			return n, nil
		}
	}
	return len(todo), nil
}

// few returns how many keys a chain may get without a look, beside what single adds bring.
func (c *Chains) few(s Seat) int { return max(1, c.Layers[c.KnownLayers(s)-1].Keys/64) }

// room returns how many keys the last layer of a chain has room for, by the bits of one of its shards.
func (c *Chains) room(s Seat, ones int) int {
	layer := c.KnownLayers(s) - 1
	shape := c.Layers[layer]
	if !c.CanGrow(layer) {
		return math.MaxInt
	}
	return int(float64(shape.Keys) - shape.KeysOf(max(0, ones-shape.Lines))*float64(shape.Shards))
}

// addOnce adds the keys of some seats, and returns those that have to be added again. Their layer is one that the
// header does not tell of, because of a failover to a server that had not heard of it.
func (c *Chains) addOnce(ctx context.Context, seats []Seat, todo []int, found []Added) (again []int, err error) {
	adds, cmds := c.addings(ctx, seats, todo)
	c.Conn.Run(ctx, cmds...)
	done := adds[:0]
	for _, a := range adds {
		s := seats[a.seat]
		bits, err := a.set.Result()
		if err != nil {
			key, _ := c.ShardAt(s, a.layer)
			return nil, conn.Foreign(err, key, nil)
		}
		f := &found[a.seat]
		for _, bit := range bits[:len(bits)-1] {
			f.Fresh = f.Fresh || bit == 0
		}
		f.Whole = f.Whole && bits[len(bits)-1] == 1
		there, whole, err := c.layersThere(layerAsk{to: a.layer + 1, header: a.header}, s)
		if err != nil {
			return nil, err
		}
		f.Whole = f.Whole && whole
		if there <= a.layer {
			again = append(again, a.seat)
			continue
		}
		done = append(done, a)
	}
	return again, c.growFull(ctx, seats, done)
}

// addings returns the commands that add keys, and that read the header of each chain afterwards.
func (c *Chains) addings(ctx context.Context, seats []Seat, todo []int) ([]adding, []redis.Cmder) {
	adds := make([]adding, 0, len(todo))
	cmds := make([]redis.Cmder, 0, len(todo))
	headers, lasts := map[string]*redis.StringCmd{}, map[string]int{}
	for _, i := range todo {
		lasts[seats[i].Prefix] = i
	}
	for _, i := range todo {
		a := c.adding(ctx, seats[i], i, len(todo) > 1 && lasts[seats[i].Prefix] == i)
		if seats[i].once {
			cmds = append(cmds, conn.Once{Cmder: a.set})
		} else {
			cmds = append(cmds, a.set)
		}
		if a.count != nil {
			cmds = append(cmds, a.count)
		}
		if prefix := seats[i].Prefix; c.Grows() {
			if headers[prefix] == nil {
				headers[prefix] = getHeader(ctx, prefix)
			}
			a.header = headers[prefix]
		}
		adds = append(adds, a)
	}
	for _, header := range headers {
		cmds = append(cmds, header)
	}
	return adds, cmds
}

// adding returns the commands that add a key to the last layer of its chain: one BITFIELD that sets its bits and
// reads the mark of its line. It looks how full the shard is if asked to, and now and then.
func (c *Chains) adding(ctx context.Context, s Seat, i int, look bool) adding {
	layer := c.KnownLayers(s) - 1
	shape := c.Layers[layer]
	key, line := c.ShardAt(s, layer)
	at := layout.LineOffset(line) * 8
	args := make([]any, 0, 2+4*shape.Probes+3)
	args = append(args, "bitfield", key)
	var room [blocked.MaxProbes]uint16
	for _, p := range layout.BitPositions(room[:0], s.Spot, shape.Probes) {
		args = append(args, "set", "u1", at+layout.RedisBit(int(p)), 1)
	}
	args = append(args, "get", "u1", at+layout.RedisBit(layout.MarkPosition))
	a := adding{seat: i, layer: layer, set: redis.NewIntSliceCmd(ctx, args...)}
	if c.CanGrow(layer) && (look || shape.Looks(s.Hash)) {
		a.count = redis.NewIntCmd(ctx, "bitcount", key, layout.HeaderLen, -1)
	}
	return a
}

//go:embed line.lua
var lineSource string

// NewScript returns a script that may call what line.lua has.
func NewScript(source string) conn.Script { return conn.NewScript(lineSource + source) }

//go:embed addnew.lua
var addNewSource string

var addNewScript = NewScript(addNewSource)

// AddNew adds keys one by one, each by a script that looks and adds at once, so that of any number that add a key at
// the same time exactly one finds it fresh.
func (c *Chains) AddNew(ctx context.Context, seats []Seat) ([]Added, error) {
	if !c.Grows() { // one BITFIELD does both at once
		for i := range seats {
			seats[i].once = true
		}
		return c.Add(ctx, seats)
	}
	found := make([]Added, len(seats))
	for i, s := range seats {
		for {
			layers := c.KnownLayers(s)
			reply, err := c.runAddNew(ctx, s, layers)
			if err != nil {
				return found, err
			}
			if len(reply) != 2 || reply[0] < 1 || reply[0] > int64(len(c.Layers)) {
				return found, fmt.Errorf("%w: a script answered %v of %s0", conn.ErrForeign, reply, s.Prefix)
			}
			if int(reply[0]) != layers {
				s.Learn(int(reply[0]))
				continue
			}
			found[i] = Added{Fresh: reply[1]&1 != 0, Whole: reply[1]&2 != 0}
			break
		}
		if err := c.growIfFull(ctx, s); err != nil {
			return found, err
		}
	}
	return found, nil
}

// runAddNew returns the layers of the chain and, if those that were asked are all, what it found: 1 for fresh, 2 for
// whole.
func (c *Chains) runAddNew(ctx context.Context, s Seat, layers int) ([]int64, error) {
	keys, args := make([]string, layers), make([]any, 0, 2*layers+blocked.MaxProbes+1)
	probes := 0
	for layer := range layers {
		key, line := c.ShardAt(s, layer)
		keys[layer] = key
		args = append(args, layout.LineOffset(line), c.Layers[layer].Probes)
		probes = max(probes, c.Layers[layer].Probes)
	}
	var room [blocked.MaxProbes]uint16
	for _, p := range layout.BitPositions(room[:0], s.Spot, probes) {
		args = append(args, p)
	}
	args = append(args, layout.TagBytes(keys[0]), len(c.Layers))
	reply, err := c.Conn.RunScript(ctx, addNewScript, []conn.Call{{Keys: keys, Args: args}})[0].Int64Slice()
	if err != nil {
		return nil, conn.Foreign(err, keys[0], nil)
	}
	return reply, nil
}
