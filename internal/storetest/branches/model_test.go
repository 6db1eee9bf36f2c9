package branches

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/internal/scale"
	"github.com/siftkv/siftkv/internal/storetest"
	"github.com/siftkv/siftkv/kv"
	"github.com/siftkv/siftkv/kv/objects"
	"github.com/siftkv/siftkv/objstore"
)

// A branchRun is a random history of branches and checkpoints, held against maps.
type branchRun struct {
	t           *testing.T
	rng         *rand.Rand
	store       objstore.Store
	branches    map[string]storetest.Model
	open        map[string]*kv.DB
	checkpoints map[string]map[string]storetest.Model // by branch and name
	named       int
}

func (r *branchRun) branch() string {
	names := slices.Sorted(maps.Keys(r.branches))
	return names[r.rng.IntN(len(names))]
}

// checkpoint returns one of a branch, or none.
func (r *branchRun) checkpoint(branch string) string {
	names := append([]string{""}, slices.Sorted(maps.Keys(r.checkpoints[branch]))...)
	return names[r.rng.IntN(len(names))]
}

func (r *branchRun) db(branch string) *kv.DB {
	if r.open[branch] == nil {
		r.open[branch] = openBranch(r.t, branchOf(r.store, branch))
	}
	return r.open[branch]
}

func (r *branchRun) close(branch string) {
	if db := r.open[branch]; db != nil {
		require.NoError(r.t, db.Close())
		delete(r.open, branch)
	}
}

// step does something at random.
func (r *branchRun) step() {
	t, ctx, branch := r.t, context.Background(), r.branch()
	o, want := branchOf(r.store, branch), r.branches[branch]
	switch n := r.rng.IntN(20); {
	case n < 8:
		from := r.rng.IntN(500)
		fillBranch(t, r.db(branch), want, from, from+r.rng.IntN(300), strconv.Itoa(r.rng.Int()))
	case n < 10:
		require.NoError(t, r.db(branch).Flush(context.Background()))
	case n < 12:
		require.NoError(t, r.db(branch).Compact(context.Background(), nil, nil))
	case n < 13:
		r.close(branch)
	case n < 14:
		storetest.RequireContents(t, want, r.db(branch))
	case n < 16:
		r.named++
		name := fmt.Sprintf("c%d", r.named)
		_, err := r.db(branch).PinCheckpoint(ctx, name)
		require.NoError(t, err)
		r.checkpoints[branch][name] = maps.Clone(want)
	case n < 17:
		if name := r.checkpoint(branch); name != "" {
			require.NoError(t, o.DropCheckpoint(ctx, name))
			delete(r.checkpoints[branch], name)
		}
	case n < 19 && len(r.branches) < 6:
		r.named++
		name, from := fmt.Sprintf("b%d", r.named%7), r.checkpoint(branch) // names are used again
		if _, there := r.branches[name]; there {
			require.ErrorIs(t, o.Clone(ctx, name), objects.ErrExists)
			return
		}
		state := r.checkpoints[branch][from]
		if from == "" {
			require.NoError(t, r.db(branch).Flush(context.Background()))
			state = want
		}
		require.NoError(t, checkpointOf(o, from).Clone(ctx, name))
		r.branches[name], r.checkpoints[name] = maps.Clone(state), map[string]storetest.Model{}
	case branch != "":
		r.close(branch)
		err := o.DropBranch(ctx, branch)
		if err != nil {
			require.ErrorIs(t, err, objects.ErrInUse)
			return
		}
		delete(r.branches, branch)
		delete(r.checkpoints, branch)
	}
}

// check opens all that there is.
func (r *branchRun) check() {
	for branch, want := range r.branches {
		r.close(branch)
		requireBranch(r.t, branchOf(r.store, branch), want)
		for name, state := range r.checkpoints[branch] {
			requireBranch(r.t, checkpointOf(branchOf(r.store, branch), name), state)
		}
	}
}

// Branches and checkpoints have what maps have, while all that nobody needs is deleted at once.
func TestModelOfCheckpointsAndClones(t *testing.T) {
	t.Parallel()
	for seed := range max(storetest.ModelSeeds/20, scale.Fewer(uint64(5), 2)) {
		r := &branchRun{t: t, rng: rand.New(rand.NewPCG(seed, 24)), store: objstore.NewMem(),
			branches: map[string]storetest.Model{"": {}}, open: map[string]*kv.DB{},
			checkpoints: map[string]map[string]storetest.Model{"": {}}}
		r.db("")
		for i := range 120 {
			r.step()
			if i%40 == 39 {
				r.check()
			}
		}
		if t.Failed() {
			t.Fatalf("seed %d", seed)
		}
	}
}
