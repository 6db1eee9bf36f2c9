package cuckootable

import (
	"context"
	"crypto/sha1"
	_ "embed"
	"encoding/hex"
	"errors"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"
)

const (
	// MaxPlaces is the number of keys that one call should take at most. It holds up its server for
	// some 300 microseconds then. A search for room that fails takes up to a millisecond more; a
	// call makes one such search and then refuses keys whose buckets are full.
	MaxPlaces = 64

	// Memory is how long a call's answers are remembered.
	Memory = time.Minute
)

var (
	//go:embed table.lua
	tableLua string
	//go:embed search.lua
	searchLua string
	//go:embed add.lua
	addLua string
	//go:embed addnew.lua
	addNewLua string
	//go:embed remove.lua
	removeLua string
	//go:embed finish.lua
	finishLua string
	//go:embed swap.lua
	swapLua string
)

// An Op is a change of a shard, made by a script: all of a call's keys in their order, and no other
// client's call in between.
type Op struct{ text, hash string }

var (
	// Add adds keys, or adds them once more. It answers Changed, Full or TooManyCopies.
	Add = newOp(tableLua + searchLua + addLua + finishLua)

	// AddNew adds each key whose class is not there. It answers Changed, Unchanged or Full.
	AddNew = newOp(tableLua + searchLua + addNewLua + finishLua)

	// Remove takes away one copy of each key's class. It answers Changed, or Unchanged if there is none.
	Remove = newOp(tableLua + removeLua + finishLua)
)

func newOp(text string) Op {
	hash := sha1.Sum([]byte(text))
	return Op{text, hex.EncodeToString(hash[:])}
}

// A Call is one change of one shard.
type Call struct {
	op     Op
	keys   []string
	args   []any
	places int
}

// Call returns the call that changes the shard in key, for keys that lie there; Place.Shard is not
// looked at. The answers are remembered for a minute in the key memory, which must be of the same
// hash slot and unlike that of any other call: within that time, the same call gets the same answers
// and does nothing. Calls that changed nothing are remembered if they are removals.
func (s Shape) Call(op Op, key, memory string, places ...Place) Call {
	args := make([]any, 0, 6+3*len(places))
	args = append(args, s.Bits, s.Buckets, s.mark(), s.markAt(), s.Size()-1, Memory.Milliseconds())
	for _, p := range places {
		args = append(args, p.Fingerprint, p.I, p.J)
	}
	return Call{op, []string{key, memory}, args, len(places)}
}

// Short returns the command that makes the call. A server that does not know the script answers
// NoScript and has done nothing.
func (c Call) Short(ctx context.Context) *redis.Cmd { return c.command(ctx, "EVALSHA", c.op.hash) }

// Long returns the command that makes the call and brings the script.
func (c Call) Long(ctx context.Context) *redis.Cmd { return c.command(ctx, "EVAL", c.op.text) }

func (c Call) command(ctx context.Context, name, script string) *redis.Cmd {
	args := append(make([]any, 0, 5+len(c.args)), name, script, len(c.keys))
	for _, key := range c.keys {
		args = append(args, key)
	}
	return redis.NewCmd(ctx, append(args, c.args...)...)
}

// NoScript reports whether an error is that of Short.
func NoScript(err error) bool { return redis.HasErrorPrefix(err, "NOSCRIPT") }

// Answers returns the answers to a call that was made, one for each key. An error is ErrLost, or that
// of the connection or the server, such as WRONGTYPE for a value that is no string.
func (c Call) Answers(cmd *redis.Cmd) ([]Answer, error) {
	reply, err := cmd.Text()
	if err != nil {
		return nil, err
	}
	return decodeAnswers(reply, c.places)
}

// Swap returns the command that replaces a whole shard if it still is what it was. It answers 1 if so.
func Swap(ctx context.Context, key string, old, next []byte) *redis.Cmd {
	return redis.NewCmd(ctx, "EVAL", swapLua, 1, key, old, next)
}

// An Answer says what a change did for one key.
type Answer byte

// Full and TooManyCopies leave the shard as it was.
const (
	Changed       Answer = '+'
	Unchanged     Answer = '-'
	Full          Answer = 'f'
	TooManyCopies Answer = 'c'
)

// Err returns ErrFull or ErrTooManyCopies for refusals, else nil.
func (a Answer) Err() error {
	switch a {
	case Full:
		return ErrFull
	case TooManyCopies:
		return ErrTooManyCopies
	}
	return nil
}

var errReply = errors.New("cuckootable: a script's reply is none of ours")

func decodeAnswers(reply string, places int) ([]Answer, error) {
	if reply == "lost" {
		return nil, fmt.Errorf("%w: it is missing, short, or not one of ours", ErrLost)
	}
	if len(reply) != places {
		return nil, fmt.Errorf("%w: %.40q for %d keys", errReply, reply, places)
	}
	answers := make([]Answer, places)
	for at := range reply {
		switch a := Answer(reply[at]); a {
		case Changed, Unchanged, Full, TooManyCopies:
			answers[at] = a
		default:
			return nil, fmt.Errorf("%w: %.40q", errReply, reply)
		}
	}
	return answers, nil
}
