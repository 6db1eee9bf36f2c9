package compare

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"

	"github.com/siftkv/siftkv/cmd/kvbench/internal/bench"
)

// A child is a worker process as its parent sees it.
type child struct {
	name    string
	cmd     *exec.Cmd
	tasks   io.WriteCloser
	encode  *json.Encoder
	answers *json.Decoder
	stderr  *tail
	gone    error // why it answers no more
}

// startChild runs argv as a worker. The process is killed when ctx ends, and ends by
// itself when this process does.
func startChild(ctx context.Context, name string, argv []string) (*child, error) {
	c := &child{name: name, cmd: exec.CommandContext(ctx, argv[0], argv[1:]...), stderr: &tail{}}
	c.cmd.Stderr = c.stderr
	c.cmd.Env = os.Environ()
	var err error
	if c.tasks, err = c.cmd.StdinPipe(); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	out, err := c.cmd.StdoutPipe()
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	c.encode, c.answers = json.NewEncoder(c.tasks), json.NewDecoder(out)
	if err := c.cmd.Start(); err != nil {
		return nil, fmt.Errorf("%s: start %s: %w", name, argv[0], err)
	}
	return c, nil
}

// do sends a task and waits for the answer.
func (c *child) do(ctx context.Context, t task) (*Sample, error) {
	if c.gone != nil {
		return nil, c.gone
	}
	var a answer
	err := c.encode.Encode(t)
	if err == nil {
		err = c.answers.Decode(&a)
	}
	switch {
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case err != nil:
		c.gone = c.died(t)
		return nil, c.gone
	case a.Wrong:
		return nil, fmt.Errorf("%s: %w", c.name, wrongAnswer(a.Error))
	case a.Error != "":
		return nil, fmt.Errorf("%s: %s", c.name, a.Error)
	}
	return a.Sample, nil
}

// steps sends tasks one after the other, and returns what each measured.
func (c *child) steps(ctx context.Context, tasks ...task) ([]*Sample, error) {
	var samples []*Sample
	for _, t := range tasks {
		sample, err := c.do(ctx, t)
		if err != nil {
			return nil, err
		}
		samples = append(samples, sample)
	}
	return samples, nil
}

// inProcess carries out tasks on a store in a process that ends with them.
func inProcess(ctx context.Context, worker []string, start startTask, tasks []task) ([]*Sample, error) {
	c, err := startChild(ctx, start.Engine, worker)
	if err != nil {
		return nil, err
	}
	defer c.kill()
	if _, err := c.do(ctx, task{Do: "start", Start: &start}); err != nil {
		return nil, err
	}
	samples, err := c.steps(ctx, tasks...)
	if err != nil {
		return nil, err
	}
	return samples, c.stop(ctx)
}

// wrongAnswer is the text of a worker's error that matches bench.ErrWrongAnswer.
type wrongAnswer string

func (w wrongAnswer) Error() string { return string(w) }
func (w wrongAnswer) Unwrap() error { return bench.ErrWrongAnswer }

// died says how a worker ended that should have answered.
func (c *child) died(t task) error {
	_ = c.tasks.Close()
	err := c.cmd.Wait()
	what := t.Do
	if t.Job != nil {
		what = t.Job.Kind
	}
	state := "ended"
	if err != nil {
		state = err.Error()
	}
	text := fmt.Sprintf("%s: its process died during %q (%s)", c.name, what, state)
	if last := c.stderr.String(); last != "" {
		text += "; its last words:\n" + last
	}
	return errors.New(text)
}

// stop closes the store and ends the process. After an error the process may still
// be there, for kill.
func (c *child) stop(ctx context.Context) error {
	if _, err := c.do(ctx, task{Do: "close"}); err != nil {
		return err
	}
	c.gone = fmt.Errorf("%s: stopped", c.name)
	_ = c.tasks.Close()
	if err := c.cmd.Wait(); err != nil {
		return fmt.Errorf("%s: its process ended: %w", c.name, err)
	}
	return nil
}

// kill ends the process at once.
func (c *child) kill() {
	if c.gone == nil {
		c.gone = fmt.Errorf("%s: killed", c.name)
		_ = c.cmd.Process.Kill()
		_ = c.tasks.Close()
		_ = c.cmd.Wait()
	}
}

// tailBytes is how much of what a worker says on standard error is kept.
const tailBytes = 4 << 10

// A tail keeps the end of what is written to it.
type tail struct{ last []byte }

// Write never fails.
func (t *tail) Write(p []byte) (int, error) {
	t.last = append(t.last, p...)
	if extra := len(t.last) - tailBytes; extra > 0 {
		t.last = append(t.last[:0], t.last[extra:]...)
	}
	return len(p), nil
}

// String returns whole lines, the first of which may be cut.
func (t *tail) String() string { return strings.TrimSpace(string(bytes.TrimSpace(t.last))) }
