package cluster

import (
	"bufio"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

// errKilled is the answer of a process that ended before it answered.
var errKilled = errors.New("the node was killed")

// A process is a node, as the test sees it.
type process struct {
	t      *testing.T
	cmd    *exec.Cmd
	in     io.WriteCloser
	ended  chan struct{} // closed when it is not there any more
	events map[string]chan struct{}
	onGood func() // the verifier has found a range to be right

	mu     sync.Mutex
	last   int
	asked  map[int]chan message
	killed bool
}

// startNode starts a process, and waits until raft runs in it.
func startNode(t *testing.T, o order, onGood func()) *process {
	text, err := json.Marshal(o)
	require.NoError(t, err)
	self, err := os.Executable()
	require.NoError(t, err)
	p := &process{
		t: t, cmd: exec.Command(self), ended: make(chan struct{}), asked: map[int]chan message{}, onGood: onGood,
		events: map[string]chan struct{}{ready: make(chan struct{}), stalled: make(chan struct{})},
	}
	p.cmd.Env = append(os.Environ(), nodeEnv+"="+string(text))
	p.cmd.Stderr = os.Stderr
	p.in, err = p.cmd.StdinPipe()
	require.NoError(t, err)
	out, err := p.cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, p.cmd.Start())
	go p.listen(out)
	t.Cleanup(p.kill)
	p.await(ready)
	return p
}

func (p *process) listen(out io.Reader) {
	defer close(p.ended)
	lines := bufio.NewReader(out)
	for {
		line, err := lines.ReadBytes('\n')
		if err != nil {
			break // what is cut short was not said
		}
		var m message
		if err := json.Unmarshal(line, &m); err != nil {
			p.t.Errorf("a node says %q: %v", line, err)
			break
		}
		p.hear(m)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.killed {
		p.t.Error("a node ended by itself")
	}
	for _, answer := range p.asked {
		close(answer)
	}
	p.asked = nil
}

func (p *process) hear(m message) {
	switch {
	case m.ID != 0:
		p.mu.Lock()
		defer p.mu.Unlock()
		p.asked[m.ID] <- m
		delete(p.asked, m.ID)
	case m.Event == checked:
		p.onGood()
	case m.Event == mismatch:
		p.t.Errorf("the verifier: %s", m.Details)
	default:
		close(p.events[m.Event])
	}
}

// await waits until something has happened in the node.
func (p *process) await(event string) {
	select {
	case <-p.events[event]:
	case <-p.ended:
		require.FailNow(p.t, "the node has ended before it was "+event)
	}
}

// ask sends a request, and returns the answer, or an error if there is none because the node was killed.
func (p *process) ask(r request) (message, error) {
	answer, err := p.begin(r)
	if err != nil {
		return message{}, err
	}
	m, ok := <-answer
	if !ok {
		return message{}, errKilled
	}
	if m.Error != "" {
		return m, errors.New(m.Error)
	}
	return m, nil
}

// begin sends a request, whose answer comes through a channel, which is closed if there is none.
func (p *process) begin(r request) (<-chan message, error) {
	answer := make(chan message, 1)
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.asked == nil || p.killed {
		return nil, errKilled
	}
	p.last++
	r.ID = p.last
	line, err := json.Marshal(r)
	require.NoError(p.t, err)
	if _, err := p.in.Write(append(line, '\n')); err != nil {
		return nil, errKilled
	}
	p.asked[r.ID] = answer
	return answer, nil
}

// kill ends the process, in the middle of whatever it does, and waits until it is gone.
func (p *process) kill() {
	p.mu.Lock()
	p.killed = true
	p.mu.Unlock()
	_ = p.cmd.Process.Kill()
	<-p.ended
	_ = p.cmd.Wait()
}
