package mirror

import (
	"context"
	"encoding/binary"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/siftkv/siftkv/redisfilter/internal/chain"
	"github.com/siftkv/siftkv/redisfilter/internal/config"
	"github.com/siftkv/siftkv/redisfilter/internal/copies"
	"github.com/siftkv/siftkv/redisfilter/internal/layout"
	"github.com/siftkv/siftkv/redisfilter/internal/nodes"
)

// A table has the copies of one generation. What it says is as old as confirmed.
type table struct {
	copies.Table
	cfg       *config.Config
	parts     *chain.Parts
	confirmed time.Time // when it was asked who owns the slots, and that the generation is in use
	slots     []int     // by partition
	servers   []*copies.Server
}

// follow makes a table of every poll, until ctx ends.
func (r *Mirror) follow(ctx context.Context) {
	defer close(r.ended)
	for {
		changed := r.inside.Conn.Watch.Changed()
		if v := r.set.View(); v.Err == nil || v.Config == nil {
			r.install(r.tabulate(ctx, v, r.inside.Conn.Watch.Map()))
		}
		select {
		case <-ctx.Done():
			r.install(nil)
			return
		case <-changed:
		}
	}
}

// tabulate makes the table that a poll allows, nil if the set has no generation in use. It takes over the copies that
// the last table has of the same generation on the same servers.
//
// A server that is trusted now may have been refilled just before by another process, after it lost keys. Copies are
// made after their server was found to be trusted, so they have what it was refilled with.
func (r *Mirror) tabulate(ctx context.Context, v copies.SetView, m *nodes.Map) *table {
	if v.Config == nil || v.Config.Generation == "" {
		return nil
	}
	parts, generation := v.Parts, v.Config.Generation
	t := &table{
		Table: copies.Table{
			Layers:  parts.Layers,
			Known:   parts.KnownOf(generation),
			Parts:   make([]*copies.Part, parts.Count),
			Doubted: make([]bool, parts.Count),
		},
		cfg: v.Config, parts: parts, confirmed: v.Confirmed,
	}
	old := r.table.Load()
	if old == nil || old.parts != parts {
		old = &table{cfg: &config.Config{}, slots: parts.AllSlots()}
	}
	t.slots = old.slots
	keeper, _, ok := m.Owner(nodes.Slot(layout.ConfigKey(r.inside.Name)))
	for i := range t.Parts {
		t.Doubted[i] = !ok || !v.Trusted[keeper] // the configuration may be an older one: see vouch
		var last *copies.Part
		if old.cfg.Generation == generation {
			last = old.Parts[i]
		}
		identity, confirmed, ok := m.Owner(t.slots[i])
		switch {
		case !ok: // its master did not answer this poll; it may still be the same
			t.Parts[i], t.Doubted[i] = last, true
		case !v.Trusted[identity]:
		case last != nil && last.Identity == identity:
			t.Parts[i] = last
			t.confirm(confirmed)
		default:
			if server := r.server(ctx, m, identity); server != nil {
				prefix := parts.Prefix(i, generation)
				t.Parts[i] = copies.NewPart(server, identity, prefix, parts.Layers, &r.budget)
				t.confirm(confirmed)
			}
		}
		if p := t.Parts[i]; p != nil && !slices.Contains(t.servers, p.Server) {
			t.servers = append(t.servers, p.Server)
		}
	}
	return t
}

// confirm makes t at most as young as what was found at a time.
func (t *table) confirm(at time.Time) {
	if at.Before(t.confirmed) {
		t.confirmed = at
	}
}

// install takes a table into use, begins to fill what is new in it, and gives up what it does not have.
func (r *Mirror) install(t *table) {
	old := r.table.Swap(t)
	if t != nil {
		t.CatchUp()
	}
	if old != nil {
		for i, p := range old.Parts {
			if p != nil && (t == nil || i >= len(t.Parts) || t.Parts[i] != p) {
				p.Drop()
			}
		}
	}
	for identity, server := range r.servers {
		if t == nil || !slices.Contains(t.servers, server) {
			_ = server.Close()
			delete(r.servers, identity)
		}
	}
}

// server returns the mirror of the server with an identity, nil if it is not known how to reach it.
func (r *Mirror) server(ctx context.Context, m *nodes.Map, identity string) *copies.Server {
	if server := r.servers[identity]; server != nil {
		return server
	}
	options := r.optionsFor(ctx, m.Address(identity))
	if options == nil {
		return nil
	}
	server := copies.New(options, copies.Options{
		Lease:   r.options.Lease,
		Refresh: r.options.Refresh,
		Poll:    r.options.Poll,
		Logger:  r.inside.Logger,
		Valid: func(key string, shard []byte) bool {
			return layout.HasTag(binary.LittleEndian.Uint32(shard[layout.TagAt:]), key)
		},
		OnConnect: func(ctx context.Context, conn *redis.Conn) error {
			found, err := nodes.Identify(ctx, conn)
			if err == nil && found != identity {
				err = fmt.Errorf("another server answers, or it was restarted or demoted: %q, not %q", found, identity)
			}
			return err
		},
	})
	r.servers[identity] = server
	return server
}

// optionsFor returns how the client connects to a master.
func (r *Mirror) optionsFor(ctx context.Context, addr string) (options *redis.Options) {
	switch rdb := r.inside.Conn.RDB.(type) {
	case *redis.Client:
		return rdb.Options()
	case *redis.ClusterClient:
		ctx, cancel := context.WithTimeout(ctx, time.Second)
		defer cancel()
		var mu sync.Mutex
		_ = rdb.ForEachMaster(ctx, func(_ context.Context, c *redis.Client) error {
			mu.Lock()
			defer mu.Unlock()
			if c.Options().Addr == addr {
				options = c.Options()
			}
			return nil
		})
	}
	return options
}
