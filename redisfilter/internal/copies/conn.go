package copies

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"
	"github.com/redis/go-redis/v9/push"
)

// Waits between two attempts to connect, doubled from the first to the last, half of each at random.
const (
	firstWait = 50 * time.Millisecond
	lastWait  = 2 * time.Second
)

// dedicated returns a client for the one connection that tracks: it has no other, never retries on another, and hands
// its pushes to m.
func (m *Server) dedicated(options *redis.Options) *redis.Client {
	o := *options
	o.Protocol = 3
	o.PoolSize, o.MinIdleConns, o.MaxIdleConns, o.MaxActiveConns = 1, 0, 0, 0
	o.PipelinePoolSize = -1 // pipelines go through the one connection, too
	o.MaxRetries, o.DialerRetries = -1, 1
	o.ConnMaxIdleTime, o.ConnMaxLifetime = -1, 0
	o.Limiter = nil
	o.ClientSideCache, o.ClientSideCacheConfig = nil, nil // else go-redis refuses CLIENT TRACKING
	o.MaintNotificationsConfig = &maintnotifications.Config{Mode: maintnotifications.ModeDisabled}
	processor := push.NewProcessor()
	if err := processor.RegisterHandler("invalidate", listener{m}, true); err != nil {
		panic(err) // cannot be: the processor is new
	}
	o.PushNotificationProcessor = processor
	return redis.NewClient(&o)
}

// listener takes the server's invalidations.
type listener struct{ mirror *Server }

// HandlePushNotification implements push.NotificationHandler. go-redis calls it on the mirror's goroutine, before it
// reads what the server sent after.
func (l listener) HandlePushNotification(
	_ context.Context, _ push.NotificationHandlerContext, notification []any,
) error {
	if keys, ok := invalidated(notification); ok {
		l.mirror.invalidate(keys)
	} else {
		l.mirror.invalidateAll()
	}
	return nil
}

// invalidated returns the keys of an invalidation. It returns !ok if they are all keys: after a flush, and if the
// message is none that it knows.
func invalidated(notification []any) (keys []string, ok bool) {
	if len(notification) != 2 {
		return nil, false
	}
	list, ok := notification[1].([]any)
	if !ok {
		return nil, false
	}
	keys = make([]string, len(list))
	for i := range list {
		if keys[i], ok = list[i].(string); !ok {
			return nil, false
		}
	}
	return keys, true
}

// run connects again and again, until ctx ends.
func (m *Server) run(ctx context.Context) {
	defer close(m.done)
	wait := firstWait
	for {
		answered, err := m.session(ctx)
		m.lease.Store(nil)
		m.invalidateAll() // the server does not know the next connection
		if ctx.Err() != nil {
			return
		}
		m.report(err)
		if answered {
			wait = firstWait
		}
		if !sleep(ctx, wait/2+rand.N(wait/2)) {
			return
		}
		wait = min(2*wait, lastWait)
	}
}

// report notes why there is no connection, nil if there is one, and logs when one is lost.
func (m *Server) report(err error) {
	m.mu.Lock()
	first := m.err == nil
	m.err = err
	m.mu.Unlock()
	if err != nil && first {
		m.options.Logger.Warn("redisfilter: the mirror asks Redis until it is connected again",
			"addr", m.client.Options().Addr, "err", err)
	}
}

// sleep waits, and reports whether it did: ctx may end it.
func sleep(ctx context.Context, d time.Duration) bool {
	select {
	case <-ctx.Done():
		return false
	case <-time.After(d):
		return true
	}
}

// session is the life of one connection. It reports whether a round was answered, and why it ended.
func (m *Server) session(ctx context.Context) (answered bool, err error) {
	conn := m.client.EphemeralConn()
	defer conn.Close()
	id, err := track(ctx, conn)
	if err != nil {
		return false, err
	}
	if check := m.options.OnConnect; check != nil {
		if err := check(ctx, conn); err != nil {
			return false, err
		}
	}
	m.mu.Lock()
	m.counts.connects++
	m.mu.Unlock()
	tick := time.NewTicker(m.options.Poll)
	defer tick.Stop()
	for {
		more, err := m.round(ctx, conn, id)
		if err != nil {
			return answered, err
		}
		if !answered {
			answered = true
			m.report(nil)
		}
		if more {
			continue
		}
		select {
		case <-ctx.Done():
			return answered, ctx.Err()
		case <-tick.C:
		case <-m.wake:
		}
	}
}

// track turns tracking on and returns the connection's id.
func track(ctx context.Context, conn *redis.Conn) (id int64, err error) {
	// The handshake falls back to RESP2 without an error, so it is repeated.
	hello, err := conn.Hello(ctx, 3, "", "", "").Result()
	if err != nil {
		return 0, fmt.Errorf("HELLO 3: %w", err)
	}
	if proto, _ := hello["proto"].(int64); proto != 3 {
		return 0, errors.New("HELLO 3: the server does not speak RESP3, which mirrors need")
	}
	id, ok := hello["id"].(int64)
	if !ok {
		return 0, errors.New("HELLO 3: the reply has no connection id")
	}
	if err := conn.ClientTrackingOn(ctx, nil).Err(); err != nil {
		return 0, fmt.Errorf("CLIENT TRACKING ON: %w", err)
	}
	return id, nil
}

// round fetches what is due and renews the lease, in one trip. It reports whether more could be fetched at once.
func (m *Server) round(ctx context.Context, conn *redis.Conn, id int64) (more bool, err error) {
	sent := time.Now()
	at := sent.Sub(m.born)
	batch, more := m.takeDue(at)
	replies := make([]*redis.StringCmd, len(batch))
	pipe := conn.Pipeline()
	for i, e := range batch {
		e.takeOff(at)
		replies[i] = pipe.GetRange(ctx, e.key, 0, int64(e.size)) // one byte more than it should have
	}
	last := pipe.ClientID(ctx)
	_, _ = pipe.Exec(ctx) // each command has its own error
	got, err := last.Result()
	if err == nil && got != id {
		err = fmt.Errorf("CLIENT ID: connection %d answers as %d", id, got)
	}
	if err != nil {
		m.landAll(batch, func(int) (State, []byte) { return Dirty, nil })
		return false, fmt.Errorf("asking for %d strings: %w", len(batch), err)
	}
	m.landAll(batch, func(i int) (State, []byte) {
		state, b := judge(replies[i], batch[i].size)
		if valid := m.options.Valid; valid != nil && state == Clean && !valid(batch[i].key, b) {
			return Lost, nil
		}
		return state, b
	})
	m.lease.Store(&sent)
	return more, nil
}

// judge tells what a reply says of a string that should have size bytes.
func judge(reply *redis.StringCmd, size int) (State, []byte) {
	b, err := reply.Bytes()
	switch {
	case redis.HasErrorPrefix(err, "WRONGTYPE"):
		return Lost, nil
	case err != nil: // loading, moved to another node, forbidden ...
		return Dirty, nil
	case len(b) != size:
		return Lost, nil
	}
	return Clean, b
}

// landAll ends a batch's fetches with what outcome says of each.
func (m *Server) landAll(batch []*Entry, outcome func(i int) (State, []byte)) {
	var again []*Entry
	for i, e := range batch {
		state, b := outcome(i)
		if e.land(state, b) {
			again = append(again, e)
		}
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.counts.fetches += uint64(len(batch))
	for _, e := range again {
		m.queue(e)
	}
}
