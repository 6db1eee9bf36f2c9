package cuckootable

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/siftkv/siftkv/redisfilter/internal/conn"
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

// The changes of a shard, each made by a script: all of a call's keys in their order, and no other client's call in
// between.
var (
	// Add adds keys, or adds them once more. It answers Changed, Full or TooManyCopies.
	Add = repeatable(tableLua + searchLua + addLua + finishLua)

	// AddNew adds each key whose class is not there. It answers Changed, Unchanged or Full.
	AddNew = repeatable(tableLua + searchLua + addNewLua + finishLua)

	// Remove takes away one copy of each key's class. It answers Changed, or Unchanged if there is none.
	Remove = repeatable(tableLua + removeLua + finishLua)
)

// repeatable returns a script whose calls remember their answers.
func repeatable(text string) conn.Script {
	s := conn.NewScript(text)
	s.Repeatable = true
	return s
}

// Call returns the call that changes the shard in key, for keys that lie there; Place.Shard is not
// looked at. The answers are remembered for a minute in the key memory, which must be of the same
// hash slot and unlike that of any other call. Within that time, the same call gets the same answers
// and does nothing. Calls that changed nothing are remembered if they are removals.
func (s Shape) Call(key, memory string, places ...Place) conn.Call {
	args := make([]any, 0, 6+3*len(places))
	args = append(args, s.Bits, s.Buckets, s.mark(), s.markAt(), s.Size()-1, Memory.Milliseconds())
	for _, p := range places {
		args = append(args, p.Fingerprint, p.I, p.J)
	}
	return conn.Call{Keys: []string{key, memory}, Args: args}
}

// Answers returns the answers to a call that was made, one for each of its places. An error is ErrLost, or that
// of the connection or the server, such as WRONGTYPE for a value that is no string.
func Answers(cmd *redis.Cmd, places int) ([]Answer, error) {
	reply, err := cmd.Text()
	if err != nil {
		return nil, err
	}
	return decodeAnswers(reply, places)
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
