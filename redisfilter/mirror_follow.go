package redisfilter

import (
	"context"
	"encoding/binary"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/siftkv/siftkv/redisfilter/internal/layout"
	"github.com/siftkv/siftkv/redisfilter/internal/mirror"
	"github.com/siftkv/siftkv/redisfilter/internal/nodes"
)

// A mirrorTable has the copies of one generation. What it says is as old as confirmed.
type mirrorTable struct {
	mirror.Table
	cfg       *config
	content   *partitions
	confirmed time.Time // when it was asked who owns the slots, and that the generation is in use
	slots     []int     // by partition
	servers   []*mirror.Server
}

// follow makes a table of every poll, until ctx ends.
func (r *Mirror) follow(ctx context.Context) {
	defer close(r.ended)
	for {
		changed := r.set.client.watch.Changed()
		if v := r.set.view.Load(); v.err == nil || v.usable() != nil {
			r.install(r.tabulate(ctx, v, r.set.client.watch.Map()))
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
// A server that is trusted now may have been refilled just before by another process, after it lost keys.
// Copies are made after their server was found to be trusted, so they have what it was refilled with.
func (r *Mirror) tabulate(ctx context.Context, v *view, m *nodes.Map) *mirrorTable {
	if v.usable() != nil || v.cfg.Generation == "" {
		return nil
	}
	content := v.content.(*partitions)
	t := &mirrorTable{
		Table: mirror.Table{
			Layers:  content.layers,
			Known:   content.knownOf(v.cfg.Generation),
			Parts:   make([]*mirror.Part, content.count),
			Doubted: make([]bool, content.count),
		},
		cfg: v.cfg, content: content, confirmed: v.confirmed,
	}
	old := r.table.Load()
	if old == nil || old.content != content {
		old = &mirrorTable{cfg: &config{}, slots: content.allSlots()}
	}
	t.slots = old.slots
	keeper, _, ok := m.Owner(slotOf(layout.ConfigKey(r.set.name)))
	for i := range t.Parts {
		t.Doubted[i] = !ok || !v.trusted[keeper] // the configuration may be an older one: see vouch
		var last *mirror.Part
		if old.cfg.Generation == v.cfg.Generation {
			last = old.Parts[i]
		}
		identity, confirmed, ok := m.Owner(t.slots[i])
		switch {
		case !ok: // its master did not answer this poll; it may still be the same
			t.Parts[i], t.Doubted[i] = last, true
		case !v.trusted[identity]:
		case last != nil && last.Identity == identity:
			t.Parts[i] = last
			t.confirm(confirmed)
		default:
			if server := r.server(ctx, m, identity); server != nil {
				prefix := content.prefix(i, v.cfg.Generation)
				t.Parts[i] = mirror.NewPart(server, identity, prefix, content.layers, &r.budget)
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
func (t *mirrorTable) confirm(at time.Time) {
	if at.Before(t.confirmed) {
		t.confirmed = at
	}
}

// install takes a table into use, begins to fill what is new in it, and gives up what it does not have.
func (r *Mirror) install(t *mirrorTable) {
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
func (r *Mirror) server(ctx context.Context, m *nodes.Map, identity string) *mirror.Server {
	if server := r.servers[identity]; server != nil {
		return server
	}
	options := r.optionsFor(ctx, m.Address(identity))
	if options == nil {
		return nil
	}
	server := mirror.New(options, mirror.Options{
		Lease:   r.options.Lease,
		Refresh: r.options.Refresh,
		Poll:    r.options.Poll,
		Logger:  r.set.logger,
		Valid: func(key string, shard []byte) bool {
			return layout.HasTag(binary.LittleEndian.Uint32(shard[layout.TagAt:]), key)
		},
		OnConnect: func(ctx context.Context, conn *redis.Conn) error {
			found, err := identify(ctx, conn)
			if err == nil && found != identity {
				err = fmt.Errorf("another server answers, or it was restarted or demoted: %q, not %q", found, identity)
			}
			return err
		},
	})
	r.servers[identity] = server
	return server
}

// identify asks a server for its identity.
func identify(ctx context.Context, conn *redis.Conn) (string, error) {
	pipe := conn.Pipeline()
	server, replication := pipe.Info(ctx, "server"), pipe.Info(ctx, "replication")
	if _, err := pipe.Exec(ctx); err != nil {
		return "", err
	}
	return nodes.Identity(server.Val() + "\n" + replication.Val()), nil
}

// optionsFor returns how the client connects to a master.
func (r *Mirror) optionsFor(ctx context.Context, addr string) (options *redis.Options) {
	switch rdb := r.set.client.rdb.(type) {
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
