//go:build unix

package redisfilter

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/siftkv/siftkv/internal/scale"
	"github.com/siftkv/siftkv/redisfilter/internal/conn"
)

// programEnv holds, in the processes that a swarm starts, what they are to do.
const programEnv = "SIFTKV_SWARM_PROGRAM"

func TestMain(m *testing.M) {
	if text := os.Getenv(programEnv); text != "" {
		runProgram(text)
		return
	}
	scale.Waiting(8)
	conn.DefaultTimeout = patience
	conn.FirstLook = func() time.Duration { return patience } // no test counts what a look asks
	os.Exit(m.Run())
}

// A order says what a process of a swarm does.
type order struct {
	Writer  string // begins the keys that it adds
	Keys    int    // that it adds
	Addrs   []string
	Master  string // the address that all connections go to, until it is told another; empty: those of Redis
	Set     string
	N       int
	Growth  float64
	Parts   int
	Grace   time.Duration
	Pause   time.Duration // between batches that it adds
	Repairs bool          // it loads the set from the database if need be
	Hold    bool          // it adds the last half of its keys only when it is released
}

const (
	askLen     = 32                    // keys of a question
	askPause   = 20 * time.Millisecond // between questions: more of them would keep a machine of two processors busy
	retryPause = 10 * time.Millisecond
	batchLen   = 64
)

// A keyRange is keys that one writer made, first to last but one.
type keyRange struct {
	writer      string
	first, last int
}

func (r keyRange) len() int { return r.last - r.first }

func (r keyRange) keys() [][]byte {
	keys := make([][]byte, 0, r.len())
	for i := r.first; i < r.last; i++ {
		keys = append(keys, swarmKey(r.writer, i))
	}
	return keys
}

func swarmKey(writer string, i int) []byte { return fmt.Appendf(nil, "%s/%d", writer, i) }

// A participant is a process of a swarm. It hears on stdin of rows that were committed, and says on stdout
// which keys were acknowledged to it and what it was told of keys.
type participant struct {
	order  order
	set    *Set
	dialTo atomic.Pointer[string]
	out    sync.Mutex
	held   chan struct{} // closed when it may add all keys

	mu      sync.Mutex
	rows    []keyRange
	reading chan struct{} // closed when the rows are those of the database
}

func runProgram(text string) {
	p := &participant{held: make(chan struct{})}
	if err := json.Unmarshal([]byte(text), &p.order); err != nil {
		panic(err)
	}
	p.dialTo.Store(&p.order.Master)
	redis.SetLogger(noLog{})
	go p.listen()
	ctx := context.Background()
	p.open(ctx)
	go p.ask(ctx)
	p.add(ctx)
	p.say("done")
	select {} // until stdin ends
}

type noLog struct{}

func (noLog) Printf(context.Context, string, ...any) {}

func (p *participant) say(format string, args ...any) {
	p.out.Lock()
	defer p.out.Unlock()
	fmt.Printf(format+"\n", args...)
}

// open joins the set that the test has made.
func (p *participant) open(ctx context.Context) {
	to := &redis.UniversalOptions{Addrs: p.order.Addrs}
	if p.order.Master != "" {
		to.Dialer = func(ctx context.Context, network, _ string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, network, *p.dialTo.Load())
		}
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for {
		err := p.tryOpen(ctx, to)
		if err == nil {
			p.say("open")
			return
		}
		if ctx.Err() != nil {
			panic(err)
		}
		time.Sleep(retryPause)
	}
}

func (p *participant) tryOpen(ctx context.Context, to *redis.UniversalOptions) error {
	c, err := Open(ctx, to)
	if err != nil {
		return err
	}
	o := &Options{Growth: p.order.Growth, Partitions: p.order.Parts, Grace: p.order.Grace, Timeout: patience}
	o.Logger = slog.New(slog.NewTextHandler(io.Discard, nil))
	if p.order.Repairs {
		o.Source = p.source
	}
	if p.set, err = New(ctx, c, p.order.Set, p.order.N, 0.01, o); err != nil {
		_ = c.Close()
	}
	return err
}

// listen does what the test says, and ends the process with it.
func (p *participant) listen() {
	in := bufio.NewScanner(os.Stdin)
	for in.Scan() {
		var r keyRange
		word, rest, _ := strings.Cut(in.Text(), " ")
		switch word {
		case "row":
			if _, err := fmt.Sscan(rest, &r.writer, &r.first, &r.last); err != nil {
				panic(err)
			}
			p.mu.Lock()
			p.rows = append(p.rows, r)
			p.mu.Unlock()
		case "rows":
			p.mu.Lock()
			close(p.reading)
			p.mu.Unlock()
		case "release":
			close(p.held)
		case "master":
			p.dialTo.Store(&rest)
		case "check":
			go p.check(context.Background())
		}
	}
	os.Exit(0)
}

// add adds its keys, one or some at a time. A call that failed is made again, as a program does that
// must commit its row.
func (p *participant) add(ctx context.Context) {
	for i := 0; i < p.order.Keys; {
		if p.order.Hold && i >= p.order.Keys/2 {
			<-p.held
		}
		n := 1
		if rand.IntN(2) == 0 {
			n = min(1+rand.IntN(batchLen), p.order.Keys-i)
		}
		r := keyRange{p.order.Writer, i, i + n}
		begun := time.Now().UnixNano()
		var err error
		if keys := r.keys(); n == 1 {
			err = p.set.Add(ctx, keys[0])
		} else {
			err = p.set.MAdd(ctx, keys)
		}
		if err != nil {
			p.say("failed 1")
			time.Sleep(retryPause)
			continue
		}
		p.say("added %d %d %d", r.first, r.last, begun)
		i += n
		time.Sleep(p.order.Pause)
	}
}

// known returns keys of rows that were committed before.
func (p *participant) known(n int) (keys [][]byte) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for len(keys) < n && len(p.rows) > 0 {
		at := rand.IntN(len(p.rows))
		if len(keys) < n/4 { // the latest are the first to be lost
			at = max(0, len(p.rows)-1-rand.IntN(16))
		}
		r := p.rows[at]
		keys = append(keys, swarmKey(r.writer, r.first+rand.IntN(r.len())))
	}
	return keys
}

// ask asks for keys for as long as the process lives, half of them absent ones.
func (p *participant) ask(ctx context.Context) {
	for i := 0; ; i++ {
		known := p.known(askLen / 2)
		if i%4 == 0 && len(known) > 0 {
			known = known[:1]
		}
		keys := slices.Clone(known)
		for range known {
			keys = append(keys, fmt.Appendf(nil, "absent %d", rand.Uint64()))
		}
		for i := 0; i < len(keys); i += askLen {
			p.tell(ctx, keys[i:min(i+askLen, len(keys))], len(known))
		}
		time.Sleep(askPause)
	}
}

// tell asks for keys, the first of which are known to be there, and says what the answers were.
func (p *participant) tell(ctx context.Context, keys [][]byte, known int) {
	maybe, err := p.set.MContains(ctx, keys)
	denied, unsure := 0, 0
	for i, m := range maybe {
		if !m && i < known {
			p.say("no %s %v", keys[i], err)
		}
		if !m {
			denied++
		}
	}
	if err != nil {
		unsure = len(keys) - denied
	}
	p.say("asked %d %d %d", len(keys), unsure, denied)
}

// source is the database as this process reads it.
func (p *participant) source(ctx context.Context, _ time.Time, add func(keys ...[]byte) error) error {
	p.mu.Lock()
	p.reading = make(chan struct{})
	reading := p.reading
	p.mu.Unlock()
	p.say("rows")
	select {
	case <-reading:
	case <-ctx.Done():
		return ctx.Err()
	}
	return each(p.snapshot(), add)
}

func (p *participant) snapshot() []keyRange {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.rows)
}

// each calls f with the keys of ranges.
func each(rows []keyRange, f func(keys ...[]byte) error) error {
	for _, r := range rows {
		if err := f(r.keys()...); err != nil {
			return err
		}
	}
	return nil
}

// check asks for every row, without and with the certainty that the set is whole.
func (p *participant) check(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	rows := p.snapshot()
	for _, certain := range []bool{false, true} {
		sum, err := interrogate(ctx, p.set, rows, certain)
		if err != nil {
			panic(err)
		}
		for _, k := range sum.denied {
			p.say("no %s %v", k, certain)
		}
		p.say("asked %d %d %d", sum.asked, sum.unsure, len(sum.denied))
	}
	p.say("checked")
}

// An interrogation is what a set said to all keys.
type interrogation struct {
	asked, unsure int
	denied        [][]byte
}

// interrogate asks for every row, and again until the answers are certain if they are to be.
func interrogate(ctx context.Context, s *Set, rows []keyRange, certain bool) (sum interrogation, err error) {
	var keys [][]byte
	flush := func() error {
		for len(keys) > 0 {
			maybe, err := s.MContains(ctx, keys)
			sum.asked += len(keys)
			for i, m := range maybe {
				if !m {
					sum.denied = append(sum.denied, keys[i])
				}
			}
			if err == nil || !certain {
				if err != nil {
					sum.unsure += len(keys)
				}
				break
			}
			if err := errors.Join(s.Ready(ctx), ctx.Err()); err != nil {
				return err
			}
		}
		keys = keys[:0]
		return nil
	}
	if certain {
		if err := s.Ready(ctx); err != nil {
			return sum, err
		}
	}
	err = each(rows, func(more ...[]byte) error {
		if keys = append(keys, more...); len(keys) < 1000 {
			return nil
		}
		return flush()
	})
	return sum, errors.Join(err, flush())
}
