package copies

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net"
	"runtime"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/internal/scale"
	"github.com/siftkv/siftkv/redisfilter/internal/redistest"
)

// A ledger is what the server acknowledged to writers, and when.
type ledger struct {
	mirror  *Server
	entries []*Entry

	mu   sync.Mutex
	acks []ack
}

type ack struct {
	entry *Entry
	bit   uint32
	at    time.Duration // on the mirror's clock, after the reply
}

// write sets random bits through a connection of its own until ctx ends.
func (l *ledger) write(ctx context.Context, c *redis.Client) error {
	for ctx.Err() == nil {
		e := l.entries[rand.IntN(len(l.entries))]
		bit := rand.Uint32N(uint32(8 * e.size))
		err := c.SetBit(ctx, e.key, int64(bit), 1).Err()
		if ctx.Err() != nil {
			return nil //nolint:nilerr // the end of ctx ends the command under way, too
		}
		if err != nil {
			return err
		}
		l.mu.Lock()
		l.acks = append(l.acks, ack{e, bit, l.mirror.now()})
		l.mu.Unlock()
	}
	return nil
}

// audit looks at n writes, each at the moment at which it becomes older than the lease, together
// with some that were older. It returns how many copies were fresh then, and what one of them
// lacked.
func (l *ledger) audit(n int) (fresh int, err error) {
	l.mu.Lock()
	next := len(l.acks)
	l.mu.Unlock()
	for end := next + n; next < end; next++ {
		recent := l.wait(next)
		start := l.mirror.now()
		for _, a := range recent {
			v, ok := a.entry.Load()
			if !ok {
				continue
			}
			fresh++
			if !v.Bit(a.bit) {
				return fresh, fmt.Errorf("%s is fresh and lacks bit %d, acknowledged %v ago",
					a.entry.key, a.bit, start-a.at)
			}
		}
	}
	return fresh, nil
}

// auditedTogether is how many writes audit looks at, at a time.
const auditedTogether = 16

// wait waits until the write with a number is older than the lease, and returns
// it after some that were before it.
func (l *ledger) wait(number int) []ack {
	for {
		l.mu.Lock()
		acks := l.acks
		l.mu.Unlock()
		if number < len(acks) && acks[number].at <= l.mirror.now()-l.mirror.options.Lease {
			return acks[max(0, number+1-auditedTogether) : number+1]
		}
		runtime.Gosched()
	}
}

// blank makes strings of zeros, and a mirror that wants them and connects as through says.
func blank(
	t testing.TB, c *redis.Client, through *redis.Options, n, size int, o Options,
) (*Server, []*Entry) {
	m := New(through, o)
	t.Cleanup(func() { require.NoError(t, m.Close()) })
	entries := make([]*Entry, n)
	for i := range entries {
		key := fmt.Sprint("string", i)
		require.NoError(t, c.Set(context.Background(), key, make([]byte, size), 0).Err())
		entries[i] = want(m, key, size)
	}
	return m, entries
}

// eventually waits for a condition, on the test's own goroutine.
func eventually(t testing.TB, condition func() bool, what string, args ...any) {
	t.Helper()
	redistest.Await(t, fmt.Sprintf(what, args...), condition)
}

// writing starts writers, which end with the test.
func (l *ledger) writing(t *testing.T, c *redis.Client, n int) {
	ctx, cancel := context.WithCancel(context.Background())
	var writers sync.WaitGroup
	for range n {
		writers.Go(func() {
			if err := l.write(ctx, c); err != nil {
				t.Error(err)
			}
		})
	}
	t.Cleanup(func() {
		cancel()
		writers.Wait()
		t.Logf("%d writes, %+v", len(l.acks), l.mirror.Stats())
	})
}

// A slowLink is a connection on which what the server sends takes a time, and requests arrive in
// pieces. So the server changes strings between two commands of a round, and after the last of
// them, before the client has the reply.
type slowLink struct {
	net.Conn
	delay time.Duration
}

func (l slowLink) Read(b []byte) (int, error) {
	n, err := l.Conn.Read(b)
	time.Sleep(l.delay)
	return n, err
}

func (l slowLink) Write(b []byte) (sent int, err error) {
	const piece = 300 // some seven commands
	for err == nil && sent < len(b) {
		var n int
		n, err = l.Conn.Write(b[sent:min(sent+piece, len(b))])
		sent += n
		time.Sleep(100 * time.Microsecond)
	}
	return sent, err
}

// A fresh copy has all that was acknowledged a lease ago, to writers on other
// connections, while rounds, invalidations and fetches follow each other as
// fast as they can. Most leases are not much longer than a round takes, so that many
// writes are looked at when the round before them has just ceased to count, or should have.
func TestFreshCopiesHaveWhatWasAcknowledged(t *testing.T) {
	redistest.RequireReal(t)
	writes := scale.Count(2_000, 16_000)
	for _, test := range []struct{ delay, lease time.Duration }{
		{0, 500 * time.Microsecond},
		{5 * time.Millisecond, 15 * time.Millisecond},
		{time.Millisecond, 30 * time.Millisecond},
		{0, time.Second},
	} {
		t.Run(fmt.Sprintf("link %v, lease %v", test.delay, test.lease), func(t *testing.T) {
			s := redistest.Start(t)
			through := *s.Client().Options()
			dial := through.Dialer
			through.Dialer = func(ctx context.Context, network, addr string) (net.Conn, error) {
				conn, err := dial(ctx, network, addr)
				if err == nil && test.delay > 0 {
					conn = slowLink{conn, test.delay}
				}
				return conn, err
			}
			m, entries := blank(t, s.Client(), &through, 200, 64,
				Options{Lease: test.lease, Refresh: time.Microsecond, Poll: time.Microsecond})
			l := &ledger{mirror: m, entries: entries}
			l.writing(t, s.Client(), 3)
			fresh, err := l.audit(writes)
			require.NoError(t, err)
			eventually(t, func() bool { // on a slow machine a lease is over at times
				if fresh > 0 || test.lease != time.Second {
					return true
				}
				fresh, err = l.audit(writes)
				require.NoError(t, err)
				return false
			}, "copies that are fresh")
			stats := m.Stats()
			require.EqualValues(t, 1, stats.Connects)
			require.Positive(t, stats.Invalidations)
			t.Logf("%d of %d were fresh", fresh, writes*auditedTogether)
		})
	}
}

// The same while the connection is killed again and again, the table of tracked
// keys overflows, and the server stops for longer than the lease.
func TestFreshCopiesInSpiteOfTrouble(t *testing.T) {
	redistest.RequireReal(t)
	ctx := context.Background()
	s := redistest.Start(t, "--tracking-table-max-keys", "20")
	c := s.Client()
	m, entries := blank(t, c, c.Options(), 50, 512,
		Options{Lease: 20 * time.Millisecond, Refresh: time.Millisecond, Poll: time.Millisecond})
	l := &ledger{mirror: m, entries: entries}
	l.writing(t, c, 1)
	total := 0
	audit := func() {
		fresh, err := l.audit(500)
		require.NoError(t, err)
		total += fresh
	}
	for round := range 5 {
		audit()
		before := m.Stats().Connects
		require.NoError(t, c.ClientKillByFilter(ctx, "ID", strconv.FormatInt(trackingID(t, c), 10)).Err())
		audit()
		eventually(t, func() bool { return m.Stats().Connects > before }, "no new connection in round %d", round)
		audit()
		s.Stop()
		eventually(t, func() bool { return !m.Stats().Leased }, "the lease does not end")
		for _, e := range entries {
			_, fresh := e.Load()
			require.False(t, fresh, "the server is stopped: nothing can be fresh")
		}
		s.Continue()
	}
	eventually(t, func() bool { audit(); return total > 1000 }, "hardly anything was fresh")
}

// trackingID returns the id of the one connection that tracks.
func trackingID(t testing.TB, c *redis.Client) int64 {
	list, err := c.Do(context.Background(), "CLIENT", "LIST").Text()
	require.NoError(t, err)
	var found []int64
	for _, line := range splitLines(list) {
		var id int64
		_, err := fmt.Sscanf(line, "id=%d ", &id)
		require.NoError(t, err)
		if flagOf(line) {
			found = append(found, id)
		}
	}
	require.Len(t, found, 1, "connections that track")
	return found[0]
}
