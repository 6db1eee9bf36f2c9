package stores

import (
	"errors"
	"math/rand/v2"

	"github.com/siftkv/siftkv/internal/storetest"
	"github.com/siftkv/siftkv/kv"
)

// NumberedOptions are random options of a store that takes numbered writes in a round.
func NumberedOptions(rng *rand.Rand, round int) *kv.Options {
	o := RandomOptions(rng)
	o.Merger, o.Clock = kv.Int64Add, storetest.NumberedClock(round)
	if round%2 == 0 {
		RandomSeparation(o, rng)
	}
	return o
}

// CommitNumbered makes write n of a writer.
func CommitNumbered(db *kv.DB, w, n int, o *kv.WriteOptions) error {
	b := db.NewBatch()
	return errors.Join(storetest.NumberedWrite(b, w, n), b.Commit(o))
}
