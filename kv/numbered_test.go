package kv

import (
	"errors"
	"math/rand/v2"

	"github.com/siftkv/siftkv/internal/storetest"
)

// lastWrite returns the number of a writer's last write.
func lastWrite(db Reader, w int) (int, error) { return storetest.LastNumbered(db.Get, w) }

// commitKillWrite makes write n of a writer.
func commitKillWrite(db *DB, w, n int, o *WriteOptions) error {
	b := db.NewBatch()
	return errors.Join(storetest.NumberedWrite(b, w, n), b.Commit(o))
}

// killOptions are random options of a store that takes numbered writes.
func killOptions(rng *rand.Rand) *Options {
	o := randomOptions(rng)
	o.Merger, o.Clock = Int64Add, storetest.NumberedClock(0)
	sometimesApart(o, rng)
	return o
}
