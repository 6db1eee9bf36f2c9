package nodes

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
)

func (w *Watch) loop(ctx context.Context) {
	defer close(w.ended)
	tick := time.NewTicker(Interval)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		case <-w.kick:
		}
		_ = w.poll(ctx) // a caller that wants its error asks Poll
	}
}

// poll asks all servers, and then all refreshers, at once.
func (w *Watch) poll(ctx context.Context) error {
	w.mu.Lock()
	w.begun++
	number, refreshers := w.begun, slices.Collect(maps.Keys(w.refreshers))
	w.mu.Unlock()
	ctx, cancel := context.WithTimeout(ctx, Lease)
	defer cancel()

	var group sync.WaitGroup
	for _, r := range refreshers {
		group.Go(func() { r.Refresh(ctx) })
	}
	m, err := w.ask(ctx)
	if err == nil {
		strange := w.strange.Swap(false)
		if last := w.Map(); w.moved != nil && len(last.nodes) > 0 && (strange || !last.knows(m.nodes[0].identity)) {
			w.moved()
		}
		w.current.Store(m)
	}
	group.Wait()

	_, complete := w.Map().Identities()
	w.away.Store(err != nil || !complete)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.done, w.failed = number, err
	close(w.changed)
	w.changed = make(chan struct{})
	return err
}

// ask makes the map. A master of a cluster that does not answer has no identity in it.
func (w *Watch) ask(ctx context.Context) (*Map, error) {
	cluster, ok := w.rdb.(*redis.ClusterClient)
	if !ok {
		n, err := askNode(ctx, w.rdb, "")
		return &Map{nodes: []node{n}}, err
	}
	var mu sync.Mutex
	var group sync.WaitGroup
	m := &Map{owner: new([Slots]uint16)}
	var answered []*redis.Client
	var failed error
	for _, c := range masters(ctx, cluster) {
		group.Go(func() {
			ctx, cancel := context.WithTimeout(ctx, answerTime)
			defer cancel()
			n, err := askNode(ctx, c, c.Options().Addr)
			mu.Lock()
			defer mu.Unlock()
			m.nodes = append(m.nodes, n)
			if err != nil {
				failed = err
				return
			}
			answered = append(answered, c)
		})
	}
	group.Wait()
	slots, err := slotsOf(ctx, answered)
	if err != nil {
		return nil, errors.Join(failed, err)
	}
	for _, s := range slots {
		i := slices.IndexFunc(m.nodes, func(n node) bool { return len(s.Nodes) > 0 && n.id == s.Nodes[0].ID })
		for at := max(0, s.Start); at <= min(s.End, Slots-1); at++ {
			m.owner[at] = uint16(i + 1)
		}
	}
	return m, nil
}

// answerTime is how long a poll waits for a master of a cluster: one that hangs must not use up the time of the others.
const answerTime = Interval

// masters returns a client of each master that go-redis knows of.
func masters(ctx context.Context, cluster *redis.ClusterClient) (all []*redis.Client) {
	ctx, cancel := context.WithTimeout(ctx, answerTime) // to look for new ones
	defer cancel()
	var mu sync.Mutex
	_ = cluster.ForEachMaster(ctx, func(_ context.Context, c *redis.Client) error {
		mu.Lock()
		defer mu.Unlock()
		all = append(all, c)
		return nil
	})
	return all
}

// slotsOf asks one of some masters who owns which slots.
func slotsOf(ctx context.Context, masters []*redis.Client) (slots []redis.ClusterSlot, err error) {
	err = errors.New("no master of the cluster answers")
	for _, c := range masters {
		//nolint:staticcheck // CLUSTER SHARDS came with Redis 7.0, and its replies differ among servers
		if slots, err = c.ClusterSlots(ctx).Result(); err == nil {
			break
		}
	}
	return slots, err
}

// probed is never there. It is written to, without any effect, to learn whether a server takes writes.
const probed = "sk:probe"

// askNode learns a server's identity; in a cluster, at an address, also its node id. Outside of a cluster, a master
// with too few replicas for its min-replicas-to-write does not count: it may be cut off from them, and one of them
// have been promoted. In a cluster such a master stops by itself.
func askNode(ctx context.Context, c redis.Cmdable, addr string) (node, error) {
	n := node{addr: addr, confirmed: time.Now()}
	pipe := c.Pipeline()
	server, replication := pipe.Info(ctx, "server"), pipe.Info(ctx, "replication")
	var id *redis.StringCmd
	var write *redis.BoolCmd
	if addr != "" {
		id = pipe.ClusterMyID(ctx)
	} else {
		write = pipe.Persist(ctx, probed)
	}
	_, err := pipe.Exec(ctx)
	if write != nil && write.Err() != nil && server.Err() == nil && replication.Err() == nil {
		err = nil // a program need not be allowed to
		if redis.HasErrorPrefix(write.Err(), "NOREPLICAS") {
			err = fmt.Errorf("the master may have a successor: %w", write.Err())
		}
	}
	if err != nil {
		return n, err
	}
	n.started = n.confirmed.Add(-uptime(server.Val()))
	n.replica = strings.Contains(replication.Val(), "role:slave")
	n.identity = Identity(server.Val() + "\n" + replication.Val())
	if id != nil {
		n.id = id.Val()
	}
	return n, nil
}

// OnConnect is for the options of the client. It puts all confirmations in doubt before the first command of a
// connection to a server that the last poll did not see as a master. A replica, to which a dialer or a proxy may lead
// in the middle of a failover, answers reads too.
func (w *Watch) OnConnect(ctx context.Context, c *redis.Conn) error {
	identity, err := Identify(ctx, c)
	if err != nil {
		return err
	}
	if !w.Map().knows(identity) {
		w.strange.Store(true)
		w.doubtFrom(time.Now())
	}
	return nil
}

// Identify asks a server for its Identity.
func Identify(ctx context.Context, c *redis.Conn) (string, error) {
	pipe := c.Pipeline()
	server, replication := pipe.Info(ctx, "server"), pipe.Info(ctx, "replication")
	if _, err := pipe.Exec(ctx); err != nil {
		return "", err
	}
	return Identity(server.Val() + "\n" + replication.Val()), nil
}

// doubtFrom makes all that was confirmed before now count for nothing. Of several calls the latest time counts.
func (w *Watch) doubtFrom(now time.Time) {
	for old := w.doubt.Load(); old.Before(now) && !w.doubt.CompareAndSwap(old, &now); {
		old = w.doubt.Load()
	}
	w.Kick()
}
