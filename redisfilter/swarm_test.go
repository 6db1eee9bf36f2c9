//go:build unix

package redisfilter

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/internal/scale"
)

// A swarm is processes that share a set, and the database that its keys come from. A row is committed when the process
// that was told that its key was added has reported it; what is asked for is only what was committed.
type swarm struct {
	t         testing.TB
	order     order // of each
	processes int

	mu      sync.Mutex
	changed sync.Cond
	members []*member
	rows    []keyRange
	keys    int // committed
	late    int // acknowledged, but not committed within Grace
	failed  int // adds
	asked   int
	unsure  int // answers with an error
	absent  int // answers that were no
	denied  []string
	begun   time.Time
}

// A member is a process of a swarm.
type member struct {
	swarm  *swarm
	writer string
	cmd    *exec.Cmd
	stdin  io.WriteCloser
	stderr bytes.Buffer
	ended  chan struct{}
	killed bool

	// By the swarm's mutex.
	queue   []string // what it is told next
	handled int      // its keys that were reported
	open    bool
	done    bool
	checked bool
}

// swarmKeys is how many keys a swarm adds: LONG=50 makes them a million.
var swarmKeys = scale.Count(8_000, 20_000)

// swarmTime is about how long the processes of a swarm take to add their keys on an idle machine.
var swarmTime = time.Duration(min(scale.Count(4, 8), 8)) * time.Second

// startSwarm starts processes that add keys to a set that exists, and waits until all have opened it.
func startSwarm(t testing.TB, processes int, o order) *swarm {
	t.Helper()
	scale.OneGoroutine(t, "a swarm is many processes that start few goroutines each")
	o.Keys = swarmKeys / processes
	batches := o.Keys / (batchLen / 4)
	o.Pause = swarmTime / time.Duration(batches+1)
	s := &swarm{t: t, order: o, processes: processes, begun: time.Now()}
	s.changed.L = &s.mu
	for i := range processes {
		s.start(i, 0, o.Keys)
	}
	s.await("all have opened the set", func() bool { return s.all(func(m *member) bool { return m.open }) })
	t.Cleanup(func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		t.Logf("%d keys acknowledged (and %d too late to commit), %d adds failed, %d answers, %d of them \"maybe\" "+
			"with an error, %d \"no\" to absent keys, %d false; %.1f s", s.keys, s.late, s.failed, s.asked, s.unsure,
			s.absent, len(s.denied), time.Since(s.begun).Seconds())
	})
	return s
}

// start starts a process, the incarnation of a number.
func (s *swarm) start(number, incarnation, keys int) *member {
	o := s.order
	o.Writer, o.Keys = fmt.Sprintf("w%d.%d", number, incarnation), keys
	text, err := json.Marshal(o)
	require.NoError(s.t, err)
	m := &member{swarm: s, writer: o.Writer, ended: make(chan struct{})}
	m.cmd = exec.Command(os.Args[0])
	m.cmd.Env = append(os.Environ(), programEnv+"="+string(text))
	m.cmd.Stderr = &m.stderr
	m.stdin, err = m.cmd.StdinPipe()
	require.NoError(s.t, err)
	stdout, err := m.cmd.StdoutPipe()
	require.NoError(s.t, err)
	require.NoError(s.t, m.cmd.Start())
	s.mu.Lock()
	for _, r := range s.rows {
		m.queue = append(m.queue, rowLine(r))
	}
	s.members = append(s.members, m)
	s.mu.Unlock()
	go m.write()
	go m.read(stdout)
	s.t.Cleanup(func() { _ = m.cmd.Process.Kill(); <-m.ended })
	return m
}

func rowLine(r keyRange) string { return fmt.Sprintf("row %s %d %d\n", r.writer, r.first, r.last) }

// write tells the process what is in its queue.
func (m *member) write() {
	for {
		m.swarm.mu.Lock()
		for len(m.queue) == 0 {
			m.swarm.changed.Wait()
		}
		lines := strings.Join(m.queue, "")
		m.queue = nil
		m.swarm.mu.Unlock()
		if _, err := io.WriteString(m.stdin, lines); err != nil {
			return // it has ended
		}
	}
}

// read hears what the process says until it ends.
func (m *member) read(stdout io.Reader) {
	defer close(m.ended)
	for in := bufio.NewScanner(stdout); in.Scan(); {
		m.hear(in.Text())
	}
	_ = m.cmd.Wait()
	m.swarm.mu.Lock()
	defer m.swarm.mu.Unlock()
	m.swarm.changed.Broadcast()
}

func (m *member) hear(line string) {
	s := m.swarm
	s.mu.Lock()
	defer s.mu.Unlock()
	defer s.changed.Broadcast()
	word, rest, _ := strings.Cut(line, " ")
	var a, b, c int
	_, _ = fmt.Sscan(rest, &a, &b, &c)
	switch word {
	case "added":
		m.handled += b - a
		s.commit(keyRange{m.writer, a, b}, time.Unix(0, int64(c)))
	case "failed":
		s.failed += a
	case "asked":
		s.asked, s.unsure, s.absent = s.asked+a, s.unsure+b, s.absent+c
	case "no":
		s.denied = append(s.denied, m.writer+": "+rest)
	case "rows":
		m.queue = append(m.queue, "rows\n") // behind all rows
	case "open":
		m.open = true
	case "done":
		m.done = true
	case "checked":
		m.checked = true
	}
}

// commit makes rows of keys, unless more than Grace has passed since they were begun to be added: the
// transaction has timed out.
func (s *swarm) commit(r keyRange, begun time.Time) {
	if time.Since(begun) > s.order.Grace {
		s.late += r.len()
		return
	}
	s.rows = append(s.rows, r)
	s.keys += r.len()
	s.tell(rowLine(r))
}

// tell tells all processes. The caller has the mutex.
func (s *swarm) tell(line string) {
	for _, m := range s.members {
		if !m.killed {
			m.queue = append(m.queue, line)
		}
	}
	s.changed.Broadcast()
}

// source is the database as the test's process reads it.
func (s *swarm) source(_ context.Context, _ time.Time, add func(keys ...[]byte) error) error {
	return each(s.committed(), add)
}

func (s *swarm) committed() []keyRange {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clip(s.rows)
}

// all reports whether a condition holds for all processes that were not killed.
func (s *swarm) all(condition func(*member) bool) bool {
	for _, m := range s.members {
		if !m.killed && !condition(m) {
			return false
		}
	}
	return true
}

// await waits for a condition under the mutex, without a limit: go test has one. A "no" to an acknowledged key
// ends the test.
func (s *swarm) await(what string, condition func() bool) {
	s.t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	for !condition() {
		if len(s.denied) > 0 {
			s.t.Fatalf("no to %d keys that were acknowledged: %s", len(s.denied), s.denied[0])
		}
		for _, m := range s.members {
			select {
			case <-m.ended:
				if !m.killed {
					s.t.Fatalf("%s has ended: %v\n%s", m.writer, m.cmd.ProcessState, m.stderr.String())
				}
			default:
			}
		}
		s.changed.Wait()
	}
}

// awaitKeys waits until a part of all keys is committed, or was too late for it.
func (s *swarm) awaitKeys(part float64) {
	s.t.Helper()
	n := int(part * float64(s.order.Keys*s.processes))
	s.await(fmt.Sprint(n, " keys"), func() bool { return s.keys+s.late >= n })
}

// release lets the processes add the keys that order.Hold keeps back.
func (s *swarm) release() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.order.Hold = false
	s.tell("release\n")
}

// replace kills a process and starts another, which adds what that did not.
func (s *swarm) replace(number int) {
	old := s.members[number]
	require.NoError(s.t, old.cmd.Process.Kill())
	s.mu.Lock()
	old.killed = true
	s.mu.Unlock()
	<-old.ended
	s.start(number, 1, s.order.Keys-old.handled)
}

// suspend stops a process for a time.
func (s *swarm) suspend(number int, d time.Duration) {
	p := s.members[number].cmd.Process
	require.NoError(s.t, p.Signal(syscall.SIGSTOP))
	time.Sleep(d)
	require.NoError(s.t, p.Signal(syscall.SIGCONT))
}

// finish waits until all keys are added, has every process and a new one ask for each of them, and
// requires that then the set is exact, and that no answer was false ever.
func (s *swarm) finish(fresh *Set) {
	s.t.Helper()
	s.await("the last key is added", func() bool { return s.all(func(m *member) bool { return m.done }) })
	require.Positive(s.t, s.keys)
	s.mu.Lock()
	s.tell("check\n")
	s.mu.Unlock()
	ctx, cancel := context.WithTimeout(s.t.Context(), patience)
	defer cancel()
	for _, certain := range []bool{false, true} {
		sum, err := interrogate(ctx, fresh, s.committed(), certain)
		require.NoError(s.t, err)
		require.Empty(s.t, sum.denied)
		s.mu.Lock()
		s.asked, s.unsure = s.asked+sum.asked, s.unsure+sum.unsure
		s.mu.Unlock()
	}
	s.await("all processes have asked", func() bool { return s.all(func(m *member) bool { return m.checked }) })
	requireRate(s.t, fresh)
	for _, m := range s.members {
		if !m.killed {
			require.NoError(s.t, m.stdin.Close())
			<-m.ended
			require.True(s.t, m.cmd.ProcessState.Success(), "%v\n%s", m.cmd.ProcessState, m.stderr.String())
		}
	}
	require.Empty(s.t, s.denied, "keys that were acknowledged")
	require.Positive(s.t, s.absent, "processes were told no")
}

// requireRate requires that a set made for 1 % says maybe to about as many absent keys.
func requireRate(t testing.TB, s *Set) {
	t.Helper()
	const n, rate = 20_000, 0.01
	keys := make([][]byte, n)
	for i := range keys {
		keys[i] = fmt.Appendf(nil, "never %d", i)
	}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	maybe, err := s.MContains(ctx, keys)
	require.NoError(t, err)
	wrong := 0
	for _, m := range maybe {
		if m {
			wrong++
		}
	}
	t.Logf("%d false positives of %d", wrong, n)
	require.LessOrEqual(t, float64(wrong), n*rate+6*math.Sqrt(n*rate*(1-rate)), "six standard deviations")
}

// Eight processes fill a set that grows a thousandfold. One is killed and replaced, one hangs for
// longer than a lease, and twice the set is loaded again.
func TestASwarmSharesASetThatGrows(t *testing.T) {
	t.Parallel()
	srv := startServer(t)
	o := Options{Growth: 10, Grace: time.Second}
	set := wholeSet(t, openClient(t, srv.Addr), "swarm", 1000, o)
	s := startSwarm(t, 8, order{
		Addrs: []string{srv.Addr}, Set: "swarm", N: 1000, Growth: o.Growth, Grace: o.Grace, Repairs: true,
	})
	loads := make(chan error, 1)
	go func() {
		err := set.Load(t.Context(), s.source)
		if err == nil {
			err = set.Load(t.Context(), s.source)
		}
		loads <- err
	}()
	s.awaitKeys(0.2)
	s.replace(0)
	s.awaitKeys(0.4)
	s.suspend(1, 3*time.Second)
	require.NoError(t, <-loads)
	s.finish(openSet(t, openClient(t, srv.Addr), "swarm", 1000, o))
}
