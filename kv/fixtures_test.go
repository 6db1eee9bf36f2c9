package kv

import (
	"io"
	"math/rand/v2"
	"testing"

	"github.com/siftkv/siftkv/internal/storetest"
)

// What these tests share with those of internal/storetest.
var (
	errDisk      = storetest.ErrDisk
	quickBackoff = storetest.Quick
	never        = storetest.Never

	nothing         = storetest.Nothing
	failOnce        = storetest.FailOnce
	withoutLeaks    = storetest.WithoutLeaks
	leakCheck       = storetest.LeakCheck
	randomBytes     = storetest.RandomBytes
	readDir         = storetest.ReadDir
	writeDir        = storetest.WriteDir
	only            = storetest.OnlyFile
	rewrite         = storetest.Rewrite
	flip            = storetest.Flip
	ingestFile      = storetest.IngestFile
	mustParse       = storetest.Filter
	mustFilter      = storetest.Filter
	shareKey        = storetest.ShareKey
	checkIdentities = storetest.RequireIdentities
	rangePolicies   = storetest.RangePolicies
	count           = storetest.LeadingNumber
	manyEdits       = storetest.ManyEdits
	readAll         = storetest.ReadAll
	requireDamage   = storetest.RequireDamage
	readBenchKey    = storetest.ScatteredKey
)

func requireContents(t testing.TB, want storetest.Model, db Reader) {
	t.Helper()
	storetest.RequireContents(t, want, db)
}

func requireBlobs(t testing.TB, db *DB) int { return storetest.RequireBlobs(t, db) }

func blobNames(t testing.TB, db *DB) []string { return storetest.BlobNames(t, db) }

func requireOnlyLiveFiles(t testing.TB, db *DB) { storetest.RequireOnlyLiveFiles(t, db) }

func changeAtRandom(t testing.TB, db *DB, want storetest.Model, rng *rand.Rand, round int) {
	t.Helper()
	storetest.ChangeAtRandom(t, db, NoSync, want, rng, round)
}

func requireRecount(t testing.TB, db *DB) { storetest.Fine(t, storetest.RecountBlobs(db)) }

// verify checks the tables of an open store as Verify does those of a closed one.
func (d *DB) verify(w io.Writer) error { return storetest.Verify(d, w) }

func requireNothingCharged(t testing.TB, b *MemoryBudget) { storetest.RequireNothingCharged(t, b) }

func loadShare(db *DB, store, n int) error {
	return storetest.LoadShare(func(k, v []byte) error { return db.Set(k, v, Async) }, store, n)
}

func checkShare(db *DB, store, keys, n int) error {
	return storetest.CheckShare(db.Has, store, keys, n)
}
