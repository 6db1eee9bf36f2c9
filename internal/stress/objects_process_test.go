package stress

import (
	"bytes"
	"context"
	"encoding/gob"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"time"
)

// A process is one that has a store in an object store open.
type process struct {
	cmd     *exec.Cmd
	in      *gob.Encoder
	stdin   io.Closer
	records chan record // closed when it has ended
	stderr  bytes.Buffer
	killed  bool

	finding *Finding // what it has found
	ended   bool     // it has done all
	text    string   // how its store was closed
	fenced  bool
}

// startProcess starts one, which waits for an order.
func startProcess(ctx context.Context, c *jobConfig) (*process, error) {
	job, err := json.Marshal(c)
	if err != nil {
		return nil, err
	}
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	p := &process{cmd: exec.CommandContext(ctx, self), records: make(chan record, 1024)}
	p.cmd.Env = append(os.Environ(), processEnv+"="+string(job))
	p.cmd.Stderr = &p.stderr
	stdin, err := p.cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	stdout, err := p.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	p.stdin, p.in = stdin, gob.NewEncoder(stdin)
	if err := p.cmd.Start(); err != nil {
		return nil, err
	}
	go func() {
		defer close(p.records)
		for out := gob.NewDecoder(stdout); ; {
			var r record
			if out.Decode(&r) != nil {
				return // it has ended, perhaps in the middle of a record
			}
			p.records <- r
		}
	}()
	return p, nil
}

// send gives an order. One that has ended takes none.
func (p *process) send(o order) { _ = p.in.Encode(o) }

// next returns the next record; ok is false when there are no more.
func (p *process) next(patience time.Duration) (r record, ok bool, f *Finding) {
	select {
	case r, ok = <-p.records:
	case <-time.After(3 * patience): // it looks after itself, and says what stands still after one
		p.kill()
		return r, false, found("hang", "a process says nothing")
	}
	switch r.Kind {
	case recordFinding:
		p.finding = &Finding{Kind: r.Name, Text: r.Text}
	case recordEnd:
		p.ended, p.text = true, r.Text
	case recordFenced:
		p.fenced = true
	}
	return r, ok, nil
}

// kill ends the process as kill -9 does.
func (p *process) kill() {
	p.killed = true
	_ = p.cmd.Process.Kill()
}

// wait returns what is wrong with how a process has ended whose records were read to the end.
func (p *process) wait() *Finding {
	_ = p.stdin.Close()
	err := p.cmd.Wait()
	var exit *exec.ExitError
	switch {
	case p.finding != nil:
		return p.finding
	case p.ended:
		return nil
	case err == nil:
		return found("process", "it has ended and not said how: %s", p.stderr.String())
	case errors.As(err, &exit) && !exit.Exited():
		return nil // it was killed
	}
	return found("process", "%v: %s", err, p.stderr.String())
}
