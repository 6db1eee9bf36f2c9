package redisfilter

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/siftkv/siftkv/redisfilter/internal/config"
	"github.com/siftkv/siftkv/redisfilter/internal/conn"
	"github.com/siftkv/siftkv/redisfilter/internal/layout"
	"github.com/siftkv/siftkv/redisfilter/internal/nodes"
)

// A view is what a process knows of a set: its configuration, and who may say "no". It is replaced by every poll, and
// does not change.
type view struct {
	cfg       *config.Config
	content   content            // of cfg; nil if there is none
	others    map[string]content // of generations of another shape
	trusted   map[string]bool    // identities of nodes under which the generation in use is whole
	confirmed time.Time          // when the request was sent that the configuration answered
	quiet     time.Time          // when the last process has ceased to ask a generation that cfg does not name
	left      bool               // generations that cfg does not name are recorded
	err       error              // for good: ErrDropped or ErrMismatch; else why the last poll failed
}

// usable returns why operations cannot even be tried.
func (v *view) usable() error {
	switch {
	case conn.ForGood(v.err):
		return v.err
	case v.content == nil:
		return fmt.Errorf("%w: its configuration was not read yet", ErrUnavailable)
	}
	return nil
}

func (v *view) contentOf(generation string) content {
	if other := v.others[generation]; other != nil {
		return other
	}
	return v.content
}

// slots returns the slots that keys have in all generations.
func (v *view) slots(hashes []uint64) []int {
	slots := v.content.Slots(hashes)
	for _, other := range v.others {
		slots = append(slots, other.Slots(hashes)...)
	}
	return slots
}

// leftover reports whether there are generations besides the one in use. Those of a load that goes on are kept by its
// lock.
func (v *view) leftover() bool { return v.left || v.cfg.Building+v.cfg.Retiring != "" }

// await waits until adds count that are made under v.
func (v *view) await(ctx context.Context) error {
	if wait := time.Until(v.quiet); wait > 0 {
		return sleep(ctx, wait)
	}
	return nil
}

// sameGenerations reports whether an add under v went where an add under o would go.
func (v *view) sameGenerations(o *view) bool {
	return v.cfg == o.cfg || v.cfg.Generation == o.cfg.Generation && v.cfg.Building == o.cfg.Building &&
		v.cfg.Retiring == o.cfg.Retiring && string(v.cfg.Seed) == string(o.cfg.Seed)
}

func trustedKey(name, generation string) string {
	return layout.ConfigKey(name) + ":" + generation + ":trusted"
}

// A poller is a lineage for the watch, whose method is no part of the API of sets.
type poller struct{ lineage *lineage }

func (p poller) Refresh(ctx context.Context) { p.lineage.refresh(ctx) }

// refresh reads the configuration; the watch has it called at every poll.
func (l *lineage) refresh(ctx context.Context) {
	old := l.view.Load()
	sent := time.Now()
	get := redis.NewStringCmd(ctx, "get", layout.ConfigKey(l.name))
	cmds := []redis.Cmder{get}
	made := redis.NewStringSliceCmd(ctx, "hkeys", madeKey(l.name))
	cmds = append(cmds, made)
	var members *redis.StringSliceCmd
	if old.cfg != nil && old.cfg.Generation != "" {
		members = redis.NewStringSliceCmd(ctx, "smembers", trustedKey(l.name, old.cfg.Generation))
		cmds = append(cmds, members)
	}
	l.client.Run(ctx, cmds...)
	data, err := get.Bytes()
	if errors.Is(err, redis.Nil) {
		l.restore(ctx, old)
		return
	}
	next := *old
	if err != nil {
		next.err = conn.Lasting(old.err, err)
		l.view.CompareAndSwap(old, &next)
		return
	}
	if err := l.adopt(&next, data); err != nil {
		next.err = conn.Lasting(old.err, err)
	} else {
		next.err = nil
		next.confirmed = sent
		next.left = slices.ContainsFunc(made.Val(), func(g string) bool {
			return !slices.Contains(next.cfg.Generations(), g)
		})
		if jumped(old.cfg, next.cfg) {
			next.quiet = time.Now().Add(nodes.Lease)
		}
		switch {
		case next.cfg.Generation == "":
			next.trusted = nil
		case old.cfg != nil && next.cfg.Generation == old.cfg.Generation && members != nil && members.Err() == nil:
			next.trusted = set(members.Val())
		case old.cfg == nil || next.cfg.Generation != old.cfg.Generation:
			next.trusted = l.readTrusted(ctx, next.cfg.Generation)
		}
	}
	if l.view.CompareAndSwap(old, &next) {
		l.noticed(&next)
	}
}

// adopt puts the configuration of some bytes into v.
func (l *lineage) adopt(v *view, data []byte) error {
	if v.cfg != nil && string(v.cfg.Encoded) == string(data) {
		return nil
	}
	cfg, err := l.stored().Accept(data, l.asked)
	if err != nil {
		return err
	}
	if v.cfg == nil || !v.cfg.SameShape(cfg) {
		v.content = l.open(cfg)
	}
	v.cfg, v.others = cfg, nil
	for _, g := range cfg.Generations() {
		if shape := cfg.ShapeOf(g); shape != cfg {
			if v.others == nil {
				v.others = map[string]content{}
			}
			v.others[g] = l.open(shape)
		}
	}
	return nil
}

// jumped reports whether a configuration is none that a load leads to from an older one: that was removed, and
// it was put back or made again. Others may still ask the generation that was in use then, for as long as their lease
// lasts, and no add goes there.
func jumped(old, now *config.Config) bool {
	if old == nil { // a set that was never loaded looks like one that was made again
		return now.Generation == ""
	}
	if old.Generation == "" { // the configuration was lost before
		return old.Retiring != "" && !old.SameShape(now)
	}
	return !slices.Contains(now.Generations(), old.Generation)
}

func (l *lineage) readTrusted(ctx context.Context, generation string) map[string]bool {
	members, err := l.client.RDB.SMembers(ctx, trustedKey(l.name, generation)).Result()
	if err != nil {
		return nil
	}
	return set(members)
}

func set(members []string) map[string]bool {
	all := make(map[string]bool, len(members))
	for _, m := range members {
		all[m] = true
	}
	return all
}

// restore puts the configuration back that was removed, without a generation: no process knows what the set lost
// meanwhile.
func (l *lineage) restore(ctx context.Context, old *view) {
	if conn.ForGood(old.err) { // of a set that was dropped the tombstone has expired
		return
	}
	next := *old
	if old.usable() == nil {
		cfg := *old.cfg
		cfg.Retiring = cmp.Or(cfg.Generation, cfg.Retiring) // a load removes it
		if cfg.Generation != "" {
			cfg.Former = nil
		}
		cfg.Generation, cfg.Building, cfg.Next = "", "", nil
		l.losses.Add(1)
		l.options.Logger.Warn("the configuration of a set in redis was lost", "set", l.name)
		l.client.RDB.SetNX(ctx, layout.ConfigKey(l.name), cfg.Encode(), 0)
		l.client.Watch.Kick()
	}
	next.err = fmt.Errorf("%w: its configuration was removed from redis", ErrIncomplete)
	next.confirmed = time.Time{}
	l.view.CompareAndSwap(old, &next)
}

// sure returns the view under which what was read or written before the call counts, or says why it does not: the
// configuration and the owner of the slot must be confirmed. It waits for a poll if need be.
func (l *lineage) sure(ctx context.Context, slot int) (*view, error) {
	w := l.client.Watch
	for {
		v := l.view.Load()
		if err := v.usable(); err != nil {
			return v, err
		}
		_, confirmed, ok := w.Map().Owner(slot)
		if ok && w.Valid(confirmed) && w.Valid(v.confirmed) {
			return v, nil
		}
		if err := w.Poll(ctx); err != nil {
			return v, l.client.Unavailable(err)
		}
		if !ok {
			if err := w.Map().NoMaster(slot); err != nil {
				return v, l.client.Unavailable(err)
			}
		}
		if v = l.view.Load(); v.err != nil {
			return v, v.err
		}
	}
}

// vouch returns nil if zeros mean that a key is absent which were read from the slot, in the generation in use, by
// a call that knew asked when it began to read.
func (l *lineage) vouch(ctx context.Context, slot int, asked *view) error {
	v, err := l.sure(ctx, slot)
	if err != nil {
		return err
	}
	if v.cfg.Generation != asked.cfg.Generation {
		return fmt.Errorf("%w: another generation was taken into use", errStale)
	}
	if err := l.strayIn(v.cfg.Generation); err != nil {
		return err
	}
	// A failover of the server that holds the configuration may have brought back an older one.
	m := l.client.Watch.Map()
	owner, _, _ := m.Owner(slot)
	keeper, _, _ := m.Owner(nodes.Slot(layout.ConfigKey(l.name)))
	if !v.trusted[owner] || !v.trusted[keeper] {
		l.repairSoon()
		return fmt.Errorf("%w: a server failed over or was restarted and may lack keys", ErrIncomplete)
	}
	if !asked.trusted[owner] || !asked.trusted[keeper] { // the key may have come back after the line was read
		return fmt.Errorf("%w: a server was not trusted yet when it was asked", errStale)
	}
	return nil
}

// errStale asks the caller to begin again.
var errStale = errors.New("stale")
