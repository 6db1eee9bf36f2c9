package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/siftkv/siftkv/kv"
)

const (
	slotName = "outbox"
	stream   = "events"
)

// order commits an order, and what others have to know of it: both or neither. Each order writes the same keys of
// events. The store has those of the last order, and the slot has all.
func order(db *kv.DB, item string) error {
	return db.Update(func(tx *kv.Tx) error {
		text, err := tx.Get([]byte("orders"))
		if err != nil && !errors.Is(err, kv.ErrNotFound) {
			return err
		}
		n, _ := strconv.Atoi(string(text)) // none yet: 0
		n++
		return errors.Join(
			tx.Set([]byte("orders"), fmt.Append(nil, n)),
			tx.Set(fmt.Appendf(nil, "order/%08d", n), []byte(item)),
			tx.Set([]byte("event/1"), fmt.Appendf(nil, "order %d: %s", n, item)),
			tx.Set([]byte("event/2"), fmt.Appendf(nil, "reserve %s", item)))
	})
}

// openOutbox opens the slot, which must be there before the first order.
func openOutbox(ctx context.Context, db *kv.DB) (*kv.Slot, error) {
	slot, err := db.OpenSlot(slotName)
	if !errors.Is(err, fs.ErrNotExist) {
		return slot, err
	}
	slot, snapshot, err := db.CreateSlot(ctx, slotName)
	if err != nil {
		return nil, err
	}
	return slot, snapshot.Close()
}

// publish adds the events of changes up to number last to the stream, and waits for those that are to come.
//
// An entry's ID is the number of its change and its place in it. Redis refuses an ID that is not above all before it,
// and takes the events of a change at once, in a transaction. So the stream knows where to go on. Its server must keep
// what it has answered: appendonly yes, and appendfsync always where power fails.
func publish(ctx context.Context, slot *kv.Slot, client *redis.Client, last uint64) error {
	newest, err := client.XRevRangeN(ctx, stream, "+", "-", 1).Result()
	if err != nil {
		return err
	}
	for _, e := range newest {
		number, _, _ := strings.Cut(e.ID, "-")
		published, err := strconv.ParseUint(number, 10, 64)
		if err != nil {
			return err
		}
		if err := slot.Skip(published); err != nil { // the stream is of another store, or the store is older
			return err
		}
	}
	if slot.Position() >= last {
		return nil
	}
	for change, err := range slot.Changes(ctx, []byte("event/")) {
		if err != nil {
			return err
		}
		var w events
		if err := change.Replay(&w); err != nil {
			return err
		}
		_, err := client.TxPipelined(ctx, func(tx redis.Pipeliner) error {
			for i, event := range w {
				tx.XAdd(ctx, &redis.XAddArgs{Stream: stream, ID: fmt.Sprintf("%d-%d", change.Last(), i),
					Values: []string{"event", event}})
			}
			return nil
		})
		if err != nil && !isThere(err) {
			return err
		}
		if err := slot.Ack(change.Last()); err != nil {
			return err
		}
		if change.Last() >= last {
			return nil
		}
	}
	return nil
}

// isThere reports whether Redis has refused an entry that it has: its answer was lost, and the client tried again.
func isThere(err error) bool {
	return redis.HasErrorPrefix(err, "The ID specified in XADD is equal or smaller")
}

// events is a kv.Writer that takes the events of a change.
type events []string

func (w *events) Set(_, value []byte) error {
	*w = append(*w, string(value))
	return nil
}

func (w *events) SetUntil(_, value []byte, _ time.Time) error { return w.Set(nil, value) }
func (w *events) Merge(_, _ []byte) error                     { return nil }
func (w *events) Delete(_ []byte) error                       { return nil }
func (w *events) DeleteRange(_, _ []byte) error               { return nil }

// lastChange returns the number of the last change of a store that has slots.
func lastChange(db *kv.DB) (last uint64) {
	for _, s := range db.Slots() {
		last = max(last, s.Acked+s.Behind)
	}
	return last
}
