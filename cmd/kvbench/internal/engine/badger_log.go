package engine

import (
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/dgraph-io/badger/v4"

	"github.com/siftkv/siftkv/internal/racebuild"
)

// Badger takes log files of a mebibyte at least, and values in the tree of a seventh of a
// memtable at most.
const (
	badgerLogFiles      = 2   // of the log, for a memtable
	badgerLogShare      = 128 // memtables that have no large values are smaller by
	minBadgerLog        = 1 << 20
	badgerValuesOfTable = 8
	badgerCollectEvery  = 250 * time.Millisecond
)

// setBadgerLog has large values lie in the log of values. It is collected by what flushed and
// compacted tables say of it: memtables that were as large as those with values in them would
// keep that back for longer than anything is measured here.
func setBadgerLog(o *badger.Options, s *Settings) {
	from := int64(s.SeparateFrom)
	o.ValueThreshold = min(from, 1<<20) // the most it takes
	o.ValueLogFileSize = max(minBadgerLog, s.MemtableBytes/badgerLogFiles)
	o.MemTableSize = max(minMemtable, s.MemtableBytes/badgerLogShare, badgerValuesOfTable*o.ValueThreshold)
}

// A badgerCollector runs Badger's collection of the log of values, which Badger leaves to
// programs: from time to time, and again as long as it rewrites files. Under the race detector
// it runs only for a store that is settled: a collection of Badger v4.9.6 reads the version of
// a memtable (DB.MaxVersion) while writers set it.
type badgerCollector struct {
	db    *badger.DB
	ratio float64
	quit  chan struct{}
	ended chan struct{}

	mu     sync.Mutex // one collection at a time
	failed error      // of one in the background
}

func startBadgerCollector(db *badger.DB, ratio float64) *badgerCollector {
	c := &badgerCollector{db: db, ratio: ratio, quit: make(chan struct{}), ended: make(chan struct{})}
	if racebuild.Enabled {
		close(c.ended)
		return c
	}
	go func() {
		defer close(c.ended)
		tick := time.NewTicker(badgerCollectEvery)
		defer tick.Stop()
		for {
			select {
			case <-c.quit:
				return
			case <-tick.C:
			}
			if _, err := c.collect(); err != nil {
				c.failed = err
				return
			}
		}
	}()
	return c
}

// collect collects until Badger finds no file with enough garbage, or the store is about to be
// closed, and reports whether a file was rewritten.
func (c *badgerCollector) collect() (rewritten bool, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for {
		select {
		case <-c.quit:
			return rewritten, nil
		default:
		}
		if err := c.db.RunValueLogGC(c.ratio); err != nil {
			if errors.Is(err, badger.ErrNoRewrite) {
				return rewritten, nil
			}
			return rewritten, fmt.Errorf("badger: collect the value log: %w", err)
		}
		rewritten = true
	}
}

// stop ends the collection, and returns what it failed with. It is called once.
func (c *badgerCollector) stop() error {
	close(c.quit)
	<-c.ended
	return c.failed
}
