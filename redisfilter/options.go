package redisfilter

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/siftkv/siftkv/redisfilter/internal/conn"
)

// A Source reads the keys that a set must hold from where they are kept for good, the database. It calls add with all
// keys that were committed at or after the time since, and with all keys if since is zero; more do no harm. Add
// copies what it keeps, is for one goroutine, and returns an error when there is no use in going on.
type Source func(ctx context.Context, since time.Time, add func(keys ...[]byte) error) error

// Options are what New and NewCuckoo may be told. Nil, and the zero value of each field, mean the defaults. All
// programs that share a set must give the same PublicHash. The others may differ: see New.
type Options struct {
	// Growth lets a set grow: when its last layer is full it takes on one that is made for Growth times as many keys,
	// from 2 to 100. The default, 0, is a set of one size, which takes more keys than it was made for at a growing
	// rate of false positives. A cuckoo set has no layers: it grows by its loads.
	Growth float64

	// Partitions is the least number of partitions, 1 to 65,536. A partition is what grows, and what lies on one node
	// of a cluster. The default is as many as shards of ShardBytes need: one for some 3,000 keys at 1 %. Each
	// partition of a cuckoo set is one shard.
	Partitions int

	// ShardBytes is the most bytes of a value in Redis, 80 to 65,488. The default, 4,048, fits a size class of Redis'
	// allocator and keeps what a Mirror fetches again small. Of cuckoo sets the least is 1,024 and the default 8,184,
	// as smaller shards waste more of their slots.
	ShardBytes int

	// PublicHash makes the set hash keys as local sets do, with xxhash64 and no secret, for Import of sets that were
	// filled elsewhere. A caller that knows a key can then make others that the set takes for it.
	PublicHash bool

	// Source lets the set load itself when it is new or was lost, and add what a failover forgot, in the background
	// and in one process at a time. Without it, Load does so when the program asks. A source that fails is called
	// again, after a pause that grows from 0.2 s to a minute, and at once when servers of Redis answer again that
	// were away. A set that loses values within a minute of its load, as on a server that evicts, is loaded again
	// after a pause too, of 1 s to 5 minutes.
	Source Source

	// StartEmpty declares that forgetting keys does no harm: the set is empty, not incomplete, when it was just made
	// and when it was lost. For some seconds after a loss, processes may not be told of each other's keys.
	StartEmpty bool

	// Grace is the longest time that passes from the call of Add for a key to the commit of its row. A load waits so
	// long before it reads the Source, so that no key falls between the two: a row that is committed later is lost to
	// the set. The default is 3 s. Have the database enforce it: a timeout of the caller does not, as the network may
	// deliver a statement after the caller gave up. Programs that share the set may differ in it: the longest counts,
	// until the set is dropped. For a cuckoo set it is also the longest time from the commit that deletes a row to
	// the end of Remove for its key.
	Grace time.Duration

	// ReplicaLag is how far, at most, a replica that is promoted may lag behind its master. If it is set, the Source
	// is asked only for what was committed that long before a failover; the default, 0, asks it for all keys.
	ReplicaLag time.Duration

	// Timeout bounds each call whose context has no deadline, batches too. The default is 250 ms. Load, Ready, Info,
	// Drop, Import and Export take as long as their context lets them.
	Timeout time.Duration

	// Logger hears of losses and loads. The default is slog.Default.
	Logger *slog.Logger
}

func (o *Options) complete() error {
	if o.Grace < 0 || o.Timeout < 0 || o.ReplicaLag < 0 {
		return errors.New("redisfilter: Grace, ReplicaLag and Timeout must not be negative")
	}
	o.Grace = cmp.Or(o.Grace, 3*time.Second)
	o.Timeout = cmp.Or(o.Timeout, conn.DefaultTimeout)
	o.Logger = cmp.Or(o.Logger, slog.Default())
	return nil
}
