package kv

import (
	"errors"
	"math"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/siftkv/siftkv/internal/memtable"
	"github.com/siftkv/siftkv/internal/property"
	"github.com/siftkv/siftkv/internal/storetest"
)

// drawWrites draws writes of all kinds into a batch.
func drawWrites(t *rapid.T, b *Batch) {
	keys := rapid.SliceOfN(rapid.Byte(), 0, 4)
	values := rapid.SliceOfN(rapid.Byte(), 0, 200)
	var errs []error
	for range rapid.IntRange(0, 12).Draw(t, "writes") {
		k := keys.Draw(t, "key")
		switch rapid.IntRange(0, 6).Draw(t, "kind") {
		case 0:
			errs = append(errs, b.Delete(k))
		case 1:
			errs = append(errs, b.DeleteRange(k, keys.Draw(t, "end")))
		case 2:
			errs = append(errs, b.DeleteRange(nil, nil))
		case 3:
			errs = append(errs, b.Merge(k, values.Draw(t, "operand")))
		case 4:
			ttl := rapid.Int64Range(1, int64(MaxTTL)).Draw(t, "ttl")
			errs = append(errs, b.SetTTL(k, values.Draw(t, "value"), time.Duration(ttl)))
		case 5:
			at := rapid.Int64().Draw(t, "until")
			errs = append(errs, b.SetUntil(k, values.Draw(t, "value"), time.UnixMicro(at)))
		default:
			errs = append(errs, b.Set(k, values.Draw(t, "value")))
		}
	}
	require.NoError(t, errors.Join(errs...))
}

// sealed returns the record of a batch as number 1; nil if it is empty.
func sealed(b *Batch) []byte {
	if b.Len() == 0 {
		return nil
	}
	return slices.Clone(b.repr.Seal(1))
}

// A batch that is replayed or appended into an empty one makes the same record, and into another
// one what the same calls would have made.
func TestReplayAndAppendMakeTheSameRecord(t *testing.T) {
	db := openMem(t, &Options{Merger: modelMerger})
	property.Check(t, func(t *rapid.T) {
		b, before := db.NewBatch(), db.NewBatch()
		drawWrites(t, b)
		drawWrites(t, before)
		record := sealed(b)
		replayed, appended := db.NewBatch(), db.NewBatch()
		require.NoError(t, errors.Join(b.Replay(replayed), appended.Append(b)))
		requireSameBatch(t, b, replayed)
		requireSameBatch(t, b, appended)
		require.Equal(t, record, sealed(b), "it is as it was")

		replayed.Reset()
		appended.Reset()
		require.NoError(t, errors.Join(before.Replay(replayed), b.Replay(replayed)))
		require.NoError(t, errors.Join(appended.Append(before), appended.Append(b)))
		requireSameBatch(t, replayed, appended)
		require.Equal(t, before.Len()+b.Len(), appended.Len())

		twice := db.NewBatch()
		require.NoError(t, errors.Join(b.Replay(twice), b.Replay(twice), b.Append(b)))
		requireSameBatch(t, twice, b)
		require.NoError(t, errors.Join(b.Replay(twice), before.Replay(before)))
		require.Equal(t, 2*b.Len(), twice.Len())
	})
}

func requireSameBatch(t *rapid.T, want, got *Batch) {
	require.Equal(t, sealed(want), sealed(got))
	require.Equal(t, want.Len(), got.Len())
	require.Equal(t, want.Size(), got.Size())
	require.Equal(t, want.repr.Arena, got.repr.Arena)
	require.Equal(t, want.repr.RangeDeletes, got.repr.RangeDeletes)
	require.Equal(t, want.repr.Features, got.repr.Features)
}

// A visit is a call of a visitor.
type visit struct {
	verb, key, value string
	expiry           time.Time
}

// A visitor is an application's own Writer, which keeps what it is told, and fails at one call.
type visitor struct {
	visits []visit
	failAt int
	err    error
}

func (v *visitor) note(verb string, key, value []byte, expiry time.Time) error {
	v.visits = append(v.visits, visit{verb, string(key), string(value), expiry})
	if len(v.visits) == v.failAt {
		return v.err
	}
	return nil
}

func (v *visitor) Set(k, value []byte) error { return v.note("Set", k, value, time.Time{}) }
func (v *visitor) Merge(k, op []byte) error  { return v.note("Merge", k, op, time.Time{}) }
func (v *visitor) Delete(k []byte) error     { return v.note("Delete", k, nil, time.Time{}) }
func (v *visitor) SetUntil(k, value []byte, expiry time.Time) error {
	return v.note("SetUntil", k, value, expiry)
}

func (v *visitor) DeleteRange(lo, hi []byte) error {
	if hi == nil {
		return v.note("DeleteRange", lo, []byte("no end"), time.Time{})
	}
	return v.note("DeleteRange", lo, hi, time.Time{})
}

func everyKindOfWrite(t *testing.T, db *DB) *Batch {
	t.Helper()
	b := db.NewBatch()
	require.NoError(t, errors.Join(b.Set([]byte("a"), []byte("1")), b.Delete([]byte("b")),
		b.DeleteRange([]byte("c"), []byte("d")), b.DeleteRange(nil, nil), b.Merge([]byte("e"), []byte("2")),
		b.SetTTL([]byte("f"), []byte("3"), time.Second), b.SetUntil([]byte("g"), nil, time.UnixMicro(7))))
	return b
}

func TestReplayCallsInOrderUntilAnError(t *testing.T) {
	clock := &storetest.Clock{}
	db := openMem(t, &Options{Merger: modelMerger, Clock: clock.Time})
	b := everyKindOfWrite(t, db)
	want := []visit{{verb: "Set", key: "a", value: "1"}, {verb: "Delete", key: "b"},
		{verb: "DeleteRange", key: "c", value: "d"}, {verb: "DeleteRange", value: "no end"},
		{verb: "Merge", key: "e", value: "2"},
		{verb: "SetUntil", key: "f", value: "3", expiry: clock.Time().Add(time.Second)},
		{verb: "SetUntil", key: "g", expiry: time.UnixMicro(7)}}
	clock.Advance(time.Hour) // the moments are what they were
	v := &visitor{}
	require.NoError(t, b.Replay(v))
	require.Equal(t, want, v.visits)
	for n := 1; n <= len(want); n++ {
		v = &visitor{failAt: n, err: errDisk}
		require.ErrorIs(t, b.Replay(v), errDisk)
		require.Equal(t, want[:n], v.visits)
	}
	v = &visitor{}
	require.NoError(t, db.NewBatch().Replay(v))
	require.ErrorIs(t, b.Set(make([]byte, MaxKeySize+1), nil), ErrTooLarge)
	require.ErrorIs(t, b.Replay(v), ErrTooLarge, "a batch that has failed")
	b.Reset()
	require.NoError(t, b.Replay(v), "an empty one that had writes")
	require.Empty(t, v.visits)
}

// A idleWriter does nothing.
type idleWriter struct{ calls int }

func (i *idleWriter) Set(_, _ []byte) error                   { i.calls++; return nil }
func (i *idleWriter) SetUntil(_, _ []byte, _ time.Time) error { i.calls++; return nil }
func (i *idleWriter) Merge(_, _ []byte) error                 { i.calls++; return nil }
func (i *idleWriter) Delete(_ []byte) error                   { i.calls++; return nil }
func (i *idleWriter) DeleteRange(_, _ []byte) error           { i.calls++; return nil }

func TestReplayAllocatesNothing(t *testing.T) {
	db := openMem(t, &Options{Merger: modelMerger})
	b, w := everyKindOfWrite(t, db), &idleWriter{}
	require.Zero(t, testing.AllocsPerRun(100, func() {
		if err := b.Replay(w); err != nil {
			t.Error(err)
		}
	}))
	require.Equal(t, 101*b.Len(), w.calls)
}

func TestAppendRefuses(t *testing.T) {
	db := openMem(t, &Options{Merger: modelMerger})
	b, other, failed := db.NewBatch(), db.NewBatch(), db.NewBatch()
	require.NoError(t, errors.Join(b.Set([]byte("a"), nil), b.Append(other), other.Append(b), other.Append(b)))
	require.Equal(t, 1, b.Len(), "an empty batch adds nothing")
	require.Equal(t, 2, other.Len())
	require.ErrorIs(t, failed.Delete(make([]byte, MaxKeySize+1)), ErrTooLarge)

	require.ErrorIs(t, b.Append(failed), ErrTooLarge)
	require.ErrorIs(t, b.Commit(nil), ErrTooLarge, "it sticks")
	require.ErrorIs(t, b.Append(other), ErrTooLarge)
	require.ErrorIs(t, failed.Append(failed), ErrTooLarge)
	require.ErrorIs(t, other.Append(b), ErrTooLarge)

	for _, room := range []int{0, 1} { // both together take MaxBatchSize, or one byte more
		b, other = db.NewBatch(), db.NewBatch()
		require.NoError(t, errors.Join(b.Set([]byte("a"), nil), other.Set([]byte("b"), nil)))
		b.repr.Arena = MaxBatchSize - memtable.EntrySize(1, 0) + room
		size := b.Size()
		if err := b.Append(other); room == 0 {
			require.NoError(t, err)
			require.Equal(t, 2, b.Len())
			b.Reset()
			continue
		} else {
			require.ErrorIs(t, err, ErrTooLarge)
		}
		require.Equal(t, 1, b.Len())
		require.Equal(t, size, b.Size(), "nothing was added")
		require.ErrorIs(t, b.Commit(nil), ErrTooLarge)
		b.Reset()
		require.NoError(t, b.Append(other))
	}
	requireContents(t, storetest.Model{}, db)
}

// A batch of another store can be appended, unless it holds operands and this one has no merger.
func TestAppendABatchOfAnotherStore(t *testing.T) {
	clock := &storetest.Clock{}
	merges, plain := openMem(t, &Options{Merger: modelMerger, Clock: clock.Time}), openMem(t, nil)
	from := merges.NewBatch()
	require.NoError(t, errors.Join(from.Set([]byte("a"), []byte("1")),
		from.SetUntil([]byte("b"), []byte("2"), time.Now().Add(time.Hour))))
	b := plain.NewBatch()
	require.NoError(t, errors.Join(b.Append(from), b.Commit(nil)))
	requireContents(t, storetest.Model{"a": "1", "b": "2"}, plain)
	require.NoError(t, from.Merge([]byte("a"), []byte("3")))
	b = plain.NewBatch()
	require.ErrorIs(t, b.Append(from), ErrNoMerger)
	require.Zero(t, b.Len())
	require.ErrorIs(t, b.Commit(nil), ErrNoMerger)
	require.ErrorIs(t, from.Replay(plain.NewBatch()), ErrNoMerger)
	b = merges.NewBatch()
	require.NoError(t, errors.Join(b.Append(from), b.Commit(nil)))
	requireContents(t, storetest.Model{"a": "1,3", "b": "2"}, merges)
}

func TestReplayIntoATransaction(t *testing.T) {
	clock := &storetest.Clock{}
	db := openMem(t, &Options{Merger: modelMerger, Clock: clock.Time})
	set(t, db, "b", "gone")
	set(t, db, "c1", "gone too")
	b := everyKindOfWrite(t, db)
	want := storetest.Model{"e": "2", "f": "3"} // all that came before was deleted
	tx := beginTx(t, db, true)
	require.NoError(t, b.Replay(tx))
	require.Equal(t, want, contents(t, tx, nil))
	require.NoError(t, tx.Commit(nil))
	requireContents(t, want, db)
	require.ErrorIs(t, b.Replay(tx), ErrTxDone)
	tx = beginTx(t, db, false)
	require.ErrorIs(t, b.Replay(tx), ErrTxReadOnly)
	require.NoError(t, tx.Discard())
}

func TestTheSizeOfABatch(t *testing.T) {
	db := openMem(t, nil)
	b := db.NewBatch()
	require.Zero(t, b.Size())
	require.NoError(t, b.Set([]byte("key"), []byte("value")))
	one := b.Size()
	require.Equal(t, len(sealed(b)), one)
	require.Greater(t, one, len("keyvalue"))
	require.NoError(t, b.Delete([]byte("key")))
	require.Equal(t, one+len("key")+2, b.Size())
	require.Equal(t, len(sealed(b)), b.Size())
	b.Reset()
	require.Zero(t, b.Size())
}

// SetUntil is SetTTL for a moment, Set for none, and Delete for one that has passed.
func TestSetUntil(t *testing.T) {
	clock := &storetest.Clock{}
	db := openMem(t, &Options{Clock: clock.Time})
	now := clock.Time()
	for key, expiry := range map[string]time.Time{
		"never": {}, "soon": now.Add(time.Second + 999*time.Nanosecond), "last": time.UnixMicro(math.MaxInt64),
		"now": now, "past": now.Add(-time.Microsecond), "1970": time.UnixMicro(0), "before": time.Unix(-1, 0),
		"long before": time.Unix(math.MinInt64/2, 0),
	} {
		set(t, db, key, "older")
		require.NoError(t, db.SetUntil([]byte(key), []byte("v"), expiry, NoSync))
	}
	want := storetest.Model{"never": "v", "soon": "v", "last": "v"}
	for range 2 {
		requireContents(t, want, db)
		require.NoError(t, db.Compact(t.Context(), nil, nil))
	}
	clock.Advance(time.Second - time.Microsecond)
	requireContents(t, want, db)
	clock.Advance(time.Microsecond)
	delete(want, "soon")
	requireContents(t, want, db)

	b := db.NewBatch()
	tooLate := time.UnixMicro(math.MaxInt64).Add(time.Microsecond)
	require.ErrorIs(t, b.SetUntil([]byte("k"), nil, tooLate), ErrInvalidTTL)
	require.ErrorIs(t, b.Commit(nil), ErrInvalidTTL)
	for _, expiry := range []time.Time{{}, now, time.Unix(-1, 0)} {
		require.ErrorIs(t, db.SetUntil(make([]byte, MaxKeySize+1), nil, expiry, nil), ErrTooLarge)
		require.ErrorIs(t, db.SetUntil(nil, tooLargeValue(), expiry, nil), ErrTooLarge)
	}
}
