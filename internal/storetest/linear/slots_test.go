package linear

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"slices"
	"sort"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"
	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/internal/harness"
	"github.com/siftkv/siftkv/internal/scale"
	"github.com/siftkv/siftkv/internal/storetest/stores"
	"github.com/siftkv/siftkv/internal/vfs"
	"github.com/siftkv/siftkv/internal/vfs/vfstest"
	"github.com/siftkv/siftkv/kv"
)

// An effect is what a commit makes of the keys; -1: it leaves the key.
type effect [NumKeys]int32

func noEffect() (e effect) {
	for k := range e {
		e[k] = -1
	}
	return e
}

// effectOf returns what an operation makes of the keys.
func effectOf(op *Op) effect {
	e := noEffect()
	for _, s := range op.Steps {
		if s.Write && !op.Refused {
			e[s.Key] = s.Value
		}
	}
	return e
}

// A changeReader reads the writes of a change.
type changeReader struct {
	r     *run
	e     effect
	ended bool // the last write was there
}

func (w *changeReader) Set(k, v []byte) error {
	if w.ended = string(k) == "end"; !w.ended {
		w.e[k[1]-'0'] = w.r.number(v)
	}
	return nil
}
func (w *changeReader) SetUntil(k, v []byte, _ time.Time) error { return w.Set(k, v) }
func (w *changeReader) Merge(k, _ []byte) error                 { return fmt.Errorf("an operand of %s", k) }
func (w *changeReader) Delete(k []byte) error                   { w.e[k[1]-'0'] = 0; return nil }
func (w *changeReader) DeleteRange(lo, hi []byte) error {
	for k := range w.e {
		if bytes.Compare(Key(k), lo) >= 0 && bytes.Compare(Key(k), hi) < 0 {
			w.e[k] = 0
		}
	}
	return nil
}

// A commit is a change, as a consumer has it.
type commit struct {
	last uint64
	e    effect
}

// A consumer follows a store through a slot from some moment on.
type consumer struct {
	at      uint64 // the last write of its snapshot
	read    *Op    // the reads of it
	commits []commit
}

// begin makes the slot, and copies the snapshot, as an operation of the history.
func (c *consumer) begin(r *run, id int) *kv.Slot {
	call, op := r.clock.Add(1), &Op{Name: "CreateSlot"}
	slot, snap, err := r.db.CreateSlot(r.t.Context(), strconv.Itoa(id))
	require.NoError(r.t, err)
	r.note(100+id, op, call) // its moment is within the call, whenever the snapshot is read
	for k := range NumKeys {
		r.get(snap, op, k)
	}
	require.NoError(r.t, snap.Close())
	c.at, c.read = slot.Position(), op
	return slot
}

// follow reads all changes up to the last write, acknowledges some, and begins again now and then.
func (c *consumer) follow(r *run, slot *kv.Slot, rng *rand.Rand) {
	defer func() { require.NoError(r.t, slot.Close()) }()
	for w := (changeReader{r: r}); !w.ended; {
		for change, err := range slot.Changes(r.t.Context()) {
			require.NoError(r.t, err)
			w.e = noEffect()
			require.NoError(r.t, change.Replay(&w))
			if w.e != noEffect() {
				c.commits = append(c.commits, commit{change.Last(), w.e})
			}
			require.NoError(r.t, slot.Skip(change.Last()))
			if rng.IntN(10) == 0 {
				require.NoError(r.t, slot.Ack(change.Last()))
			}
			if w.ended || rng.IntN(20) == 0 {
				break
			}
		}
	}
}

// An orderedOp is an operation whose position among the commits a consumer may have told.
type orderedOp struct {
	*Op
	at    int  // of a commit, among the commits; of a snapshot, that of the last commit that it has
	known bool // at
}

// An orderedState is the store after some commits.
type orderedState struct {
	State
	commits int
}

// orderedModel is Model of operations that have positions.
var orderedModel = porcupine.Model{
	Init: func() any { return orderedState{} },
	Step: func(state, input, output any) (bool, any) {
		before, _ := state.(orderedState)
		op, _ := input.(orderedOp)
		ok, after := Model.Step(before.State, op.Op, output)
		now := orderedState{commits: before.commits}
		now.State, _ = after.(State)
		if effectOf(op.Op) != noEffect() {
			now.commits++
		}
		return ok && (!op.known || op.at == now.commits), now
	},
	DescribeOperation: func(input, _ any) string {
		op, _ := input.(orderedOp)
		return fmt.Sprintf("%s at %d (%v)", op.Op, op.at, op.known)
	},
}

// ordered returns the history with what the consumer of all commits tells of their order. Each commit of the history
// must be there once, and no other.
func ordered(t *testing.T, history []porcupine.Operation, all []commit) []porcupine.Operation {
	t.Helper()
	positions, ops := map[effect][]int{}, map[effect]int{}
	for i, c := range all {
		positions[c.e] = append(positions[c.e], i+1)
	}
	history = slices.Clone(history)
	for i := range history {
		op, ok := history[i].Input.(*Op)
		require.True(t, ok)
		e := effectOf(op)
		if ops[e]++; e == noEffect() {
			delete(ops, e)
		}
		p := orderedOp{Op: op}
		if len(positions[e]) == 1 {
			p.at, p.known = positions[e][0], true
		}
		history[i].Input = p
	}
	require.Len(t, positions, len(ops))
	for e, n := range ops {
		require.Len(t, positions[e], n, "commits that make %v of the keys", e)
	}
	return history
}

// Three consumers follow a store through slots: one from the beginning, two that begin while clients work. The first
// has each commit once, in an order that explains all that clients have read. The snapshot of another is the store
// after one of these commits, at a moment within CreateSlot, and its changes are all that follow.
func TestSlotsAreLinearizable(t *testing.T) {
	t.Parallel()
	histories, commits := scale.Count(scale.Fewer(16, 5), 150), 0
	for seed := range histories {
		what := fmt.Sprint("seed ", seed)
		rng := rand.New(rand.NewPCG(uint64(seed), 615))
		o := stores.RandomOptions(rng)
		o.InMemory, harness.Of(o).FS = true, vfstest.YieldingFS{FS: vfs.NewMem()}
		db, err := kv.Open("db", o)
		require.NoError(t, err)
		clients := Clients{Ops: 25, Number: 2 + rng.IntN(3), Random: func(c int) *rand.Rand {
			return rand.New(rand.NewPCG(uint64(seed), uint64(c)))
		}}
		r := &run{t: t, db: db, ended: make(chan struct{}, 1), pad: strings.Repeat("-", []int{0, 3000}[rng.IntN(2)])}
		consumers := make([]consumer, 3)
		first := consumers[0].begin(r, 0)
		var following sync.WaitGroup
		following.Go(func() { consumers[0].follow(r, first, clients.Random(10)) })
		for id := 1; id < 3; id++ {
			rng := clients.Random(10 + id)
			following.Go(func() {
				for range rng.IntN(clients.Ops) {
					r.read(20+id, rng.IntN(NumKeys))
				}
				consumers[id].follow(r, consumers[id].begin(r, id), rng)
			})
		}
		clients.work(r)
		require.NoError(t, db.Set([]byte("end"), nil, kv.NoSync))
		following.Wait()
		all := consumers[0].commits
		history := ordered(t, r.history, all)
		for i := range history {
			p, _ := history[i].Input.(orderedOp)
			for _, c := range consumers {
				if p.Op == c.read {
					n := sort.Search(len(all), func(i int) bool { return all[i].last > c.at })
					p.at, p.known = n, true
					require.Equal(t, all[n:], slices.Concat([]commit{}, c.commits), what)
				}
			}
			history[i].Input = p
		}
		if !porcupine.CheckOperations(orderedModel, history) {
			for _, o := range history {
				t.Logf("client %d [%d, %d] %s", o.ClientId, o.Call, o.Return,
					orderedModel.DescribeOperation(o.Input, nil))
			}
			require.FailNow(t, "the changes of "+what+" do not explain its history")
		}
		commits += len(all)
		require.NoError(t, db.Close())
	}
	t.Logf("%d histories with %d commits", histories, commits)
}
