package conn

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/siftkv/siftkv/redisfilter/internal/layout"
)

// The errors that sets return. Package redisfilter describes them.
var (
	ErrIncomplete  = errors.New("the set does not hold all of its keys: load it, or give it a Source")
	ErrUnavailable = errors.New("redis is not available")
	ErrRefused     = errors.New("redis refuses the program's commands: mend the cause, or the settings of the client")
	ErrForeign     = errors.New("a value in redis is not the set's: remove it, or choose another name")
	ErrMismatch    = errors.New("a set of this name exists with another configuration: " +
		"ask for the same, choose another name, or drop it")
	ErrDropped       = errors.New("the set was dropped")
	ErrFull          = errors.New("the set is full until its next load, which makes it larger")
	ErrTooManyCopies = errors.New("the set has the key eight times, which is the most: use AddNew")
	ErrClosed        = errors.New("closed")
)

// own are the errors that say already what they are.
var own = []error{
	ErrIncomplete, ErrUnavailable, ErrRefused, ErrForeign, ErrMismatch, ErrDropped, ErrClosed, ErrFull,
	ErrTooManyCopies,
}

// ForGood reports whether an error ends the use of a set, until its configuration is read again.
func ForGood(err error) bool { return errors.Is(err, ErrDropped) || errors.Is(err, ErrMismatch) }

// Lasting returns why a set cannot be used after a poll failed with err, and old was why before.
func Lasting(old, err error) error {
	if ForGood(old) && !ForGood(err) {
		return old
	}
	return err
}

// A ProgramError is one that Redis has no part in: a Source failed, or what was asked for cannot be.
type ProgramError struct{ Cause error }

func (e ProgramError) Error() string { return e.Cause.Error() }

// Unwrap returns the error of the program.
func (e ProgramError) Unwrap() error { return e.Cause }

// IsForeign reports whether an error is about a value that no set put there. Redis names the wrong type of a value in
// the text of its error, after the key, or quoted by a script.
func IsForeign(err error) bool {
	return errors.Is(err, ErrForeign) || strings.Contains(err.Error(), "WRONGTYPE ")
}

// Foreign says which value an error is about. Without an error it is about a header that is none: that of zeros and
// of nothing is a loss, another is not ours.
func Foreign(err error, key string, header []byte) error {
	if err != nil {
		return fmt.Errorf("%s: %w", key, err)
	}
	for _, b := range header[:min(len(header), layout.LayersAt)] { // a late process may have set a layer's bit
		if b != 0 {
			return fmt.Errorf("%w: %s begins with %q", ErrForeign, key, header)
		}
	}
	return nil
}

// refusals begin the replies that stay the same until a setting changes. Scripts say by themselves what a command of
// theirs was refused for.
var refusals = []string{
	"WRONGPASS", "NOAUTH", "NOPERM", "DENIED", "ERR invalid password", "ERR AUTH ",
	"ERR unknown command", "ERR Unknown Redis command", "ERR The user executing the script can't run",
	"ERR This instance has cluster support disabled", "ERR SELECT is not allowed", "ERR DB index is out of range",
}

// misdirected begin the replies of a server that has no business with the commands, if they keep going there.
var misdirected = []string{"MOVED", "READONLY"}

// Unavailable makes an error of Redis match ErrRefused or ErrUnavailable.
func (c *Conn) Unavailable(err error) error {
	var reply redis.Error
	begins := func(prefix string) bool { return strings.HasPrefix(reply.Error(), prefix) }
	if errors.As(err, &reply) && (slices.ContainsFunc(refusals, begins) ||
		!c.follows && slices.ContainsFunc(misdirected, begins)) {
		return fmt.Errorf("%w: %w", ErrRefused, err)
	}
	return fmt.Errorf("%w: %w", ErrUnavailable, err)
}

// Wrap says of which set an error is, and makes one of Redis match ErrUnavailable, ErrRefused or ErrForeign.
func (c *Conn) Wrap(name string, err error) error {
	switch {
	case err == nil:
		return nil
	case slices.ContainsFunc(own, func(e error) bool { return errors.Is(err, e) }):
	case errors.Is(err, redis.ErrClosed):
		err = ErrClosed
	case IsForeign(err):
		err = fmt.Errorf("%w: %w", ErrForeign, err)
	case errors.Is(err, context.Canceled), errors.As(err, new(ProgramError)):
	default:
		err = c.Unavailable(err)
	}
	return fmt.Errorf("redisfilter: set %q: %w", name, err)
}
