package models

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"testing"

	"github.com/siftkv/siftkv/internal/scale"
	"github.com/siftkv/siftkv/internal/storetest"
	"github.com/siftkv/siftkv/internal/storetest/stores"
	"github.com/siftkv/siftkv/internal/vfs"
	"github.com/siftkv/siftkv/kv"
	"github.com/stretchr/testify/require"
)

// ingest takes in up to three files that do not overlap.
func (r *modelRun) ingest(n int) {
	all := storetest.Model{}
	for range 1 + r.rng.IntN(30) {
		all[string(r.key())] = ""
	}
	keys, next := all.Keys(), maps.Clone(r.m)
	var paths []string
	for len(keys) > 0 {
		take := 1 + r.rng.IntN(len(keys))
		if len(paths) == 2 {
			take = len(keys)
		}
		path := fmt.Sprintf("ingest-%d-%d", n, len(paths))
		storetest.WriteIngestFile(r.t, r.rng, r.fs, path, stores.RandomOptions(r.rng).Filter, next, keys[:take])
		paths, keys = append(paths, path), keys[take:]
	}
	r.rng.Shuffle(len(paths), func(i, j int) { paths[i], paths[j] = paths[j], paths[i] })
	require.NoError(r.t, r.db.Ingest(r.t.Context(), paths,
		&kv.IngestOptions{Link: r.rng.IntN(3) == 0, SkipVerify: r.rng.IntN(3) == 0}))
	r.m = next
}

// TestModelWithIngest is TestModel with ingests between the other operations.
func TestModelWithIngest(t *testing.T) {
	t.Parallel()
	for seed := range uint64(scale.Count(scale.Fewer(6, 2), 12)) {
		rng := rand.New(rand.NewPCG(seed, 606))
		r := &modelRun{t: t, rng: rng, fs: vfs.NewMem(), opts: stores.RandomOptions(rng), m: modelStore{},
			clock: &storetest.Clock{}}
		r.open()
		if !t.Run(fmt.Sprintf("seed=%d", seed), func(t *testing.T) {
			r.t = t
			for n := range 600 {
				if rng.IntN(20) == 0 {
					r.ingest(n)
				}
				r.step()
			}
			r.checkAll()
			r.release()
			require.NoError(t, r.db.Close())
		}) {
			return
		}
	}
}
