package redisfilter

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/redis/go-redis/v9"
)

// Errors are matched by errors.Is. Each comes with the name of the set or the Redis key, and with its cause.
// If the context of a call is cancelled, the error matches context.Canceled and none of these; if its
// deadline passes, ErrUnavailable. The error of a Source is returned as it is.
var (
	// ErrIncomplete comes with "maybe": the set was not loaded yet, or lost keys, and cannot say no.
	ErrIncomplete = errors.New("the set does not hold all of its keys: load it, or give it a Source")

	// ErrUnavailable comes with "maybe": Redis did not answer, or not in time, or it is not known
	// whether the server that answered is the one that was trusted.
	ErrUnavailable = errors.New("redis is not available")

	// ErrRefused comes with "maybe": Redis answers, and refuses the program's commands until somebody
	// changes a setting: a password, a permission, a command that the server lacks, or the address of a
	// replica or of one node of a cluster. It does not match ErrUnavailable: trying again is no use. A
	// client of Sentinels or of a cluster, or with a Dialer, finds the new master by itself, so that a
	// replica's READONLY is ErrUnavailable there.
	ErrRefused = errors.New("redis refuses the program's commands: mend the cause, or the settings of the client")

	// ErrForeign comes with "maybe": Redis holds something under a key of the set that no set put there.
	ErrForeign = errors.New("a value in redis is not the set's: remove it, or choose another name")

	// ErrMismatch means that a set of the name exists that was made otherwise, in what no load changes. The error
	// names it.
	ErrMismatch = errors.New("a set of this name exists with another configuration: " +
		"ask for the same, choose another name, or drop it")

	// ErrDropped means that somebody dropped the set.
	ErrDropped = errors.New("the set was dropped")

	// ErrFull means that a cuckoo set has no room for a key. The key was not added: do not commit its row.
	ErrFull = errors.New("the set is full until its next load, which makes it larger")

	// ErrTooManyCopies means that a cuckoo set has a key as often as it can. Its last copy was not added.
	ErrTooManyCopies = errors.New("the set has the key eight times, which is the most: use AddNew")

	// ErrClosed means that the set or its client was closed.
	ErrClosed = errors.New("closed")
)

// own are the errors that say already what they are.
var own = []error{
	ErrIncomplete, ErrUnavailable, ErrRefused, ErrForeign, ErrMismatch, ErrDropped, ErrClosed, ErrFull,
	ErrTooManyCopies,
}

// A programError is one that Redis has no part in: a Source failed, or what was asked for cannot be.
type programError struct{ error }

// Unwrap returns the error of the program.
func (e programError) Unwrap() error { return e.error }

// isForeign reports whether an error is about a value that no set put there. Redis names the wrong type
// of a value in the text of its error, after the key, or quoted by a script.
func isForeign(err error) bool {
	return errors.Is(err, ErrForeign) || strings.Contains(err.Error(), "WRONGTYPE ")
}

// refusals begin the replies that stay the same until a setting changes. Scripts say by themselves
// what a command of theirs was refused for.
var refusals = []string{
	"WRONGPASS", "NOAUTH", "NOPERM", "DENIED", "ERR invalid password", "ERR AUTH ",
	"ERR unknown command", "ERR Unknown Redis command", "ERR The user executing the script can't run",
	"ERR This instance has cluster support disabled", "ERR SELECT is not allowed", "ERR DB index is out of range",
}

// misdirected begin the replies of a server that has no business with the commands, if they keep going there.
var misdirected = []string{"MOVED", "READONLY"}

// unavailable makes an error of Redis match ErrRefused or ErrUnavailable.
func (c *Client) unavailable(err error) error {
	var reply redis.Error
	begins := func(prefix string) bool { return strings.HasPrefix(reply.Error(), prefix) }
	if errors.As(err, &reply) && (slices.ContainsFunc(refusals, begins) ||
		!c.follows && slices.ContainsFunc(misdirected, begins)) {
		return fmt.Errorf("%w: %w", ErrRefused, err)
	}
	return fmt.Errorf("%w: %w", ErrUnavailable, err)
}

// wrap says of which set an error is, and makes one of Redis match ErrUnavailable, ErrRefused or ErrForeign.
func (c *Client) wrap(name string, err error) error {
	switch {
	case err == nil:
		return nil
	case slices.ContainsFunc(own, func(e error) bool { return errors.Is(err, e) }):
	case errors.Is(err, redis.ErrClosed):
		err = ErrClosed
	case isForeign(err):
		err = fmt.Errorf("%w: %w", ErrForeign, err)
	case errors.Is(err, context.Canceled), errors.As(err, new(programError)):
	default:
		err = c.unavailable(err)
	}
	return fmt.Errorf("redisfilter: set %q: %w", name, err)
}
