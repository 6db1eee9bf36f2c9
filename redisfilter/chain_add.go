package redisfilter

import (
	"context"
	_ "embed"
	"fmt"
	"math"

	"github.com/redis/go-redis/v9"

	"github.com/siftkv/siftkv/filterpolicy/blocked"
	"github.com/siftkv/siftkv/redisfilter/internal/layout"
)

// An added says what an add found.
type added struct {
	fresh bool // the key was not there
	whole bool // so that fresh is certain
}

// An adding is the commands of one add.
type adding struct {
	seat   int
	layer  int
	set    *redis.IntSliceCmd
	count  *redis.IntCmd    // nil unless this add looks how full its shard is
	header *redis.StringCmd // of layer 0, read after set; nil if the set does not grow
}

// add adds keys to their chains and says what it found. A set of one size needs one trip. One that
// grows looks first, so that keys that come again do not make it grow; of two that add a key at the
// same time both may find it fresh: see addNew.
func (c *chains) add(ctx context.Context, seats []seat) ([]added, error) {
	found := make([]added, len(seats))
	answers := make([]layout.Answer, len(seats))
	if c.grows() {
		var err error
		if answers, err = c.lookup(ctx, seats); err != nil {
			return found, err
		}
	}
	todo := make([]int, 0, len(seats))
	for i := range seats {
		if found[i].whole = answers[i] != layout.Lost; answers[i] != layout.Present {
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

// stride returns how many keys may be added before somebody must look how full their chains are: those
// that there is room for. A few keys do not need a look, which takes a trip.
func (c *chains) stride(ctx context.Context, seats []seat, todo []int) (int, error) {
	if !c.grows() {
		return len(todo), nil
	}
	added := map[string]int{}
	looks := map[string]*redis.IntCmd{}
	var cmds []redis.Cmder
	for _, i := range todo {
		s := seats[i]
		if added[s.prefix]++; added[s.prefix] != c.few(s)+1 {
			continue
		}
		key, _ := c.shardAt(s, c.knownLayers(s)-1)
		looks[s.prefix] = redis.NewIntCmd(ctx, "bitcount", key, layout.HeaderLen, -1)
		cmds = append(cmds, looks[s.prefix])
	}
	if len(looks) == 0 {
		return len(todo), nil
	}
	c.client.run(ctx, cmds...)
	clear(added)
	for n, i := range todo {
		s := seats[i]
		room := c.few(s)
		if look := looks[s.prefix]; look != nil {
			if err := look.Err(); err != nil {
				return 0, foreign(err, s.prefix, nil)
			}
			room = max(room, c.room(s, int(look.Val())))
		}
		if added[s.prefix]++; added[s.prefix] > room {
			return n, nil
		}
	}
	return len(todo), nil
}

// few returns how many keys a chain may get without a look, beside what single adds bring.
func (c *chains) few(s seat) int { return max(1, c.layers[c.knownLayers(s)-1].Keys/64) }

// room returns how many keys the last layer of a chain has room for, by the bits of one of its shards.
func (c *chains) room(s seat, ones int) int {
	layer := c.knownLayers(s) - 1
	shape := c.layers[layer]
	if !c.canGrow(layer) {
		return math.MaxInt
	}
	return int(float64(shape.Keys) - min(shape.KeysOf(max(0, ones-shape.Lines)), maxKeys)*float64(shape.Shards))
}

// addOnce adds the keys of some seats, and returns those that have to be added again: to a layer that
// the header does not tell of, because of a failover to a server that had not heard of it.
func (c *chains) addOnce(ctx context.Context, seats []seat, todo []int, found []added) (again []int, err error) {
	adds, cmds := c.addings(ctx, seats, todo)
	c.client.run(ctx, cmds...)
	done := adds[:0]
	for _, a := range adds {
		s := seats[a.seat]
		bits, err := a.set.Result()
		if err != nil {
			key, _ := c.shardAt(s, a.layer)
			return nil, foreign(err, key, nil)
		}
		f := &found[a.seat]
		for _, bit := range bits[:len(bits)-1] {
			f.fresh = f.fresh || bit == 0
		}
		f.whole = f.whole && bits[len(bits)-1] == 1
		there, whole, err := c.layersThere(layerAsk{to: a.layer + 1, header: a.header}, s)
		if err != nil {
			return nil, err
		}
		f.whole = f.whole && whole
		if there <= a.layer {
			again = append(again, a.seat)
			continue
		}
		done = append(done, a)
	}
	return again, c.growFull(ctx, seats, done)
}

// addings returns the commands that add keys, and that read the header of each chain afterwards.
func (c *chains) addings(ctx context.Context, seats []seat, todo []int) ([]adding, []redis.Cmder) {
	adds := make([]adding, 0, len(todo))
	cmds := make([]redis.Cmder, 0, len(todo))
	headers, lasts := map[string]*redis.StringCmd{}, map[string]int{}
	for _, i := range todo {
		lasts[seats[i].prefix] = i
	}
	for _, i := range todo {
		a := c.adding(ctx, seats[i], i, len(todo) > 1 && lasts[seats[i].prefix] == i)
		if seats[i].once {
			cmds = append(cmds, once{a.set})
		} else {
			cmds = append(cmds, a.set)
		}
		if a.count != nil {
			cmds = append(cmds, a.count)
		}
		if prefix := seats[i].prefix; c.grows() {
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

// adding returns the commands that add a key to the last layer of its chain: one BITFIELD that sets
// its bits and reads the mark of its line. It looks how full the shard is if asked to, and now and then.
func (c *chains) adding(ctx context.Context, s seat, i int, look bool) adding {
	layer := c.knownLayers(s) - 1
	shape := c.layers[layer]
	key, line := c.shardAt(s, layer)
	at := layout.LineOffset(line) * 8
	args := make([]any, 0, 2+4*shape.Probes+3)
	args = append(args, "bitfield", key)
	var room [blocked.MaxProbes]uint16
	for _, p := range layout.BitPositions(room[:0], s.spot, shape.Probes) {
		args = append(args, "set", "u1", at+layout.RedisBit(int(p)), 1)
	}
	args = append(args, "get", "u1", at+layout.RedisBit(layout.MarkPosition))
	a := adding{seat: i, layer: layer, set: redis.NewIntSliceCmd(ctx, args...)}
	if c.canGrow(layer) && (look || shape.Looks(s.hash)) {
		a.count = redis.NewIntCmd(ctx, "bitcount", key, layout.HeaderLen, -1)
	}
	return a
}

//go:embed line.lua
var lineSource string // begins each script

//go:embed addnew.lua
var addNewSource string

var addNewScript = newScript(lineSource + addNewSource)

// addNew adds keys one by one, each by a script that looks and adds at once, so that of any number
// that add a key at the same time exactly one finds it fresh.
func (c *chains) addNew(ctx context.Context, seats []seat) ([]added, error) {
	if !c.grows() { // one BITFIELD does both at once
		for i := range seats {
			seats[i].once = true
		}
		return c.add(ctx, seats)
	}
	found := make([]added, len(seats))
	for i, s := range seats {
		for {
			layers := c.knownLayers(s)
			reply, err := c.runAddNew(ctx, s, layers)
			if err != nil {
				return found, err
			}
			if len(reply) != 2 || reply[0] < 1 || reply[0] > int64(len(c.layers)) {
				return found, fmt.Errorf("%w: a script answered %v of %s0", ErrForeign, reply, s.prefix)
			}
			if int(reply[0]) != layers {
				s.learn(int(reply[0]))
				continue
			}
			found[i] = added{fresh: reply[1]&1 != 0, whole: reply[1]&2 != 0}
			break
		}
		if err := c.growIfFull(ctx, s); err != nil {
			return found, err
		}
	}
	return found, nil
}

// runAddNew returns the layers of the chain and, if those that were asked are all, what it found:
// 1 for fresh, 2 for whole.
func (c *chains) runAddNew(ctx context.Context, s seat, layers int) ([]int64, error) {
	keys, args := make([]string, layers), make([]any, 0, 2*layers+blocked.MaxProbes+1)
	probes := 0
	for layer := range layers {
		key, line := c.shardAt(s, layer)
		keys[layer] = key
		args = append(args, layout.LineOffset(line), c.layers[layer].Probes)
		probes = max(probes, c.layers[layer].Probes)
	}
	var room [blocked.MaxProbes]uint16
	for _, p := range layout.BitPositions(room[:0], s.spot, probes) {
		args = append(args, p)
	}
	args = append(args, layout.TagBytes(keys[0]), len(c.layers))
	reply, err := c.client.runScript(ctx, addNewScript, []scriptCall{{keys, args}})[0].Result()
	if err != nil {
		return nil, foreign(err, keys[0], nil)
	}
	return reply, nil
}
