package bench

import (
	"context"
	"errors"

	"github.com/siftkv/siftkv/internal/cli"
)

// Errors that commands tell apart by exit status.
var (
	// ErrUsage marks a wrong flag, argument or input file.
	ErrUsage = cli.ErrUsage
	// ErrWrongAnswer marks an engine that answered a lookup wrongly.
	ErrWrongAnswer = errors.New("wrong answer")
	// ErrIdentity marks counters that contradict each other.
	ErrIdentity = errors.New("identity broken")
	// ErrThreshold marks a change that a threshold forbids.
	ErrThreshold = errors.New("threshold passed")
	// ErrSomeFailed marks a sweep of which some cells have no result.
	ErrSomeFailed = errors.New("some cells failed")
)

// Exit statuses of every kvbench command.
const (
	StatusOK          = 0   // the result stands
	StatusInternal    = 1   // I/O or internal error, damage found
	StatusUsage       = 2   // wrong flag, argument or input file
	StatusWrong       = 3   // wrong answer, or counters that do not add up
	StatusThreshold   = 4   // a change that a threshold forbids
	StatusSomeFailed  = 5   // a sweep with cells that failed
	StatusInterrupted = 130 // stopped by a signal (128 + SIGINT)
)

// Status returns the exit status that belongs to err; nil is StatusOK.
func Status(err error) int {
	switch {
	case err == nil:
		return StatusOK
	case errors.Is(err, ErrWrongAnswer), errors.Is(err, ErrIdentity):
		return StatusWrong
	case errors.Is(err, ErrUsage):
		return StatusUsage
	case errors.Is(err, context.Canceled):
		return StatusInterrupted
	case errors.Is(err, ErrThreshold):
		return StatusThreshold
	case errors.Is(err, ErrSomeFailed):
		return StatusSomeFailed
	}
	return StatusInternal
}

// Usagef returns an error that matches ErrUsage and reads exactly as formatted;
// %w wraps a cause.
func Usagef(format string, args ...any) error { return cli.Usagef(format, args...) }
