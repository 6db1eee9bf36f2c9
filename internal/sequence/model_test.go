package sequence

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/internal/scale"
	"github.com/siftkv/siftkv/internal/sequence/sequencetest"
	"github.com/siftkv/siftkv/objstore"
)

// A life is what a writer saw from its fence on.
type life struct {
	epoch  uint64
	fence  uint64
	newest uint64   // slot of the newest data found
	acked  []uint64 // slots
}

// A record is what all writers and readers of a sequence saw. Clients run one at a time.
type record struct {
	t      *testing.T
	lives  []*life
	bodies map[uint64]string // what a slot held, by those who put or read it
}

// saw notes what a slot holds, which is the same for all who see it.
func (r *record) saw(slot uint64, body string) {
	if slot == 0 {
		return
	}
	if before, ok := r.bodies[slot]; ok {
		require.Equal(r.t, before, body, "slot %d", slot)
	}
	r.bodies[slot] = body
}

// check holds all lives against each other: the successor found what was acknowledged before, and nothing of a
// predecessor's was acknowledged beyond its fence.
func (r *record) check() {
	for _, a := range r.lives {
		for _, b := range r.lives {
			if a != b {
				require.NotEqual(r.t, a.epoch, b.epoch, "two writers of one epoch")
			}
			for _, slot := range a.acked {
				if a.epoch < b.epoch {
					require.LessOrEqual(r.t, slot, b.newest, "epoch %d found what %d was told", b.epoch,
						a.epoch)
				} else {
					require.Greater(r.t, slot, b.fence, "epoch %d puts behind the fence of %d", a.epoch, b.epoch)
				}
			}
		}
	}
}

// live is a writer's life: it opens the sequence, puts, trims.
func (r *record) live(ctx context.Context, c *sequencetest.Client, s *Sequence) {
	ctx, c.Stop = context.WithCancel(ctx)
	defer c.Stop()
	w, newest, err := s.Open(ctx)
	if err != nil {
		return
	}
	r.saw(newest.Slot, string(newest.Body))
	l := &life{epoch: w.Epoch(), fence: w.Next() - 1, newest: newest.Slot}
	r.lives = append(r.lives, l)
	for i := range 1 + c.Rng.IntN(8) {
		body := fmt.Sprintf("%d of epoch %d", i, l.epoch)
		slot, err := w.Put(ctx, raw(body))
		if err != nil {
			ctx, c.Stop = context.WithCancel(c.Schedule.T.Context())
			if slot, err = w.Put(ctx, raw(body+", again")); err != nil {
				return
			}
			body += ", again"
		}
		r.saw(slot, body)
		if len(l.acked) > 0 {
			require.Greater(r.t, slot, l.acked[len(l.acked)-1])
		}
		l.acked = append(l.acked, slot)
		if c.Rng.IntN(3) == 0 {
			_, _ = s.Trim(ctx, slot, slot, time.Now().Add(-sequencetest.Grace))
		}
	}
}

// follow reads what is newest, again and again.
func (r *record) follow(ctx context.Context, c *sequencetest.Client, s *Sequence) {
	for range 5 + c.Rng.IntN(40) {
		if e, err := s.Newest(ctx); err == nil {
			r.saw(e.Slot, string(e.Body))
		}
	}
}

// TestModelOfWriters lets writers open a sequence again and again, beside a reader.
func TestModelOfWriters(t *testing.T) {
	fenced, acked, seeds := 0, 0, scale.Count(scale.Fewer(120, 40), 600)
	for seed := range uint64(seeds) {
		synctest.Test(t, func(t *testing.T) {
			sc := sequencetest.New(t, seed)
			r := &record{t: t, bodies: map[uint64]string{}}
			for range 2 + sc.Rng.IntN(3) {
				sc.Start(func(ctx context.Context, c *sequencetest.Client) {
					for range 4 {
						r.live(ctx, c, newTestSequence(c))
					}
				})
			}
			sc.Start(func(ctx context.Context, c *sequencetest.Client) {
				for range 2 {
					r.follow(ctx, c, newTestSequence(c))
				}
			})
			sc.Run()
			last := &life{}
			w, newest := open(t, newTestSequence(sc.Mem))
			r.saw(newest.Slot, string(newest.Body))
			last.epoch, last.fence, last.newest = w.Epoch(), w.Next()-1, newest.Slot
			r.lives = append(r.lives, last)
			r.check()
			requireTrimmable(t, newTestSequence(sc.Mem), newest)
			for _, l := range r.lives {
				acked += len(l.acked)
			}
			fenced += len(r.lives) - 1
		})
		if t.Failed() {
			t.Fatalf("seed %d", seed)
		}
	}
	require.Greater(t, acked, 10*seeds, "the schedules let writers work")
	require.Greater(t, fenced, 4*seeds, "and be fenced")
}

// requireTrimmable requires that what is left of the sequence is fences and the newest data after a Trim, whatever
// delayed requests have put back.
func requireTrimmable(t *testing.T, s *Sequence, newest Entry) {
	t.Helper()
	_, err := s.Trim(t.Context(), 1<<40, 1<<40, always)
	require.NoError(t, err)
	for o, err := range s.store.List(t.Context(), "", "") {
		require.NoError(t, err)
		slot, ok := s.SlotOf(o.Key)
		require.True(t, ok)
		require.True(t, slot == newest.Slot || o.Size == FenceSize, o.Key)
	}
	l, err := s.Tail(t.Context())
	require.NoError(t, err)
	require.Equal(t, newest.Slot, l.Data)
	_, err = s.Get(t.Context(), l.Last+1)
	require.ErrorIs(t, err, objstore.ErrNotExist)
}
