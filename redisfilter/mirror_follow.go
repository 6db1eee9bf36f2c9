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
		cfg:       v.cfg,
		content:   content,
		known:     content.knownOf(v.cfg.Generation),
		confirmed: v.confirmed,
		parts:     make([]*mirrorPart, content.count),
		doubted:   make([]bool, content.count),
	}
	old := r.table.Load()
	if old == nil || old.content != content {
		old = &mirrorTable{cfg: &config{}, slots: content.allSlots()}
	}
	t.slots = old.slots
	keeper, _, ok := m.Owner(slotOf(layout.ConfigKey(r.set.name)))
	for i := range t.parts {
		t.doubted[i] = !ok || !v.trusted[keeper] // the configuration may be an older one: see vouch
		var last *mirrorPart
		if old.cfg.Generation == v.cfg.Generation {
			last = old.parts[i]
		}
		identity, confirmed, ok := m.Owner(t.slots[i])
		switch {
		case !ok: // its master did not answer this poll; it may still be the same
			t.parts[i], t.doubted[i] = last, true
		case !v.trusted[identity]:
		case last != nil && last.identity == identity:
			t.parts[i] = last
			t.confirm(confirmed)
		default:
			if server := r.server(ctx, m, identity); server != nil {
				prefix := content.prefix(i, v.cfg.Generation)
				t.parts[i] = newMirrorPart(r, server, identity, prefix, content.layers)
				t.confirm(confirmed)
			}
		}
		if p := t.parts[i]; p != nil && !slices.Contains(t.mirrors, p.mirror) {
			t.mirrors = append(t.mirrors, p.mirror)
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
		t.catchUp()
	}
	if old != nil {
		for i, p := range old.parts {
			if p != nil && (t == nil || i >= len(t.parts) || t.parts[i] != p) {
				p.drop()
			}
		}
	}
	for identity, server := range r.servers {
		if t == nil || !slices.Contains(t.mirrors, server) {
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
