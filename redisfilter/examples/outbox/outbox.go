package main

import (
	"bytes"
	"context"
	"crypto/rand"
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

// openOutbox opens the slot, which must be there before the first order. The key outbox has a name of the slot that no
// other store has: a store that a backup was restored to has no slot, and makes a new name with it.
func openOutbox(ctx context.Context, db *kv.DB) (*kv.Slot, error) {
	slot, err := db.OpenSlot(slotName)
	if !errors.Is(err, fs.ErrNotExist) {
		return slot, err
	}
	if err := db.Set([]byte("outbox"), []byte(rand.Text()), kv.Sync); err != nil {
		return nil, err
	}
	slot, snapshot, err := db.CreateSlot(ctx, slotName)
	if err != nil {
		return nil, err
	}
	return slot, snapshot.Close()
}

// add adds the events of a change to the stream, and notes with them which change it was. Redis runs it as a whole or
// not at all. If the stream is not at the change before, add does nothing. It returns where the stream was.
var add = redis.NewScript(`
	local at = redis.call('GET', KEYS[2]) or ARGV[1]
	if at:sub(1, #ARGV[1]) == ARGV[1] then
		for i = 3, #ARGV do redis.call('XADD', KEYS[1], '*', 'event', ARGV[i]) end
		redis.call('SET', KEYS[2], ARGV[2])
	end
	return at`)

var errDiverged = errors.New("the stream is of another store, or store or stream is a restored one")

// publish adds the events of all changes that are there to the stream.
//
// A change that comes again, since its acknowledgement was lost, is the last one that the stream has. A stream that is
// anywhere else is an error. You then decide what its readers still need; without the key events:at the stream goes on
// with the changes after the slot's last acknowledgement. Redis must keep what it has answered: appendonly yes, and
// appendfsync always where power fails.
func publish(ctx context.Context, db *kv.DB, slot *kv.Slot, client *redis.Client) error {
	name, err := db.Get([]byte("outbox"))
	if err != nil {
		return err
	}
	last := lastChange(db)
	if slot.Position() >= last {
		return nil
	}
	for change, err := range slot.Changes(ctx) { // also those without events, so that the stream is at each
		if err != nil {
			return err
		}
		var w events
		if err := change.Replay(&w); err != nil {
			return err
		}
		before := fmt.Sprintf("%s %d ", name, slot.Position())
		after := fmt.Sprintf("%s %d %q", name, change.Last(), w)
		at, err := add.Run(ctx, client, []string{stream, stream + ":at"}, append([]any{before, after}, w...)...).Text()
		if err != nil {
			return err
		}
		if !strings.HasPrefix(at, before) && at != after {
			return fmt.Errorf("%w: it is at %s, and not at %s", errDiverged, at, before)
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

// events is a kv.Writer that takes the events of a change.
type events []any

func (w *events) Set(key, value []byte) error {
	if bytes.HasPrefix(key, []byte("event/")) {
		*w = append(*w, string(value))
	}
	return nil
}

func (w *events) SetUntil(key, value []byte, _ time.Time) error { return w.Set(key, value) }
func (w *events) Merge(_, _ []byte) error                       { return nil }
func (w *events) Delete(_ []byte) error                         { return nil }
func (w *events) DeleteRange(_, _ []byte) error                 { return nil }

// lastChange returns the number of the last change of a store that has slots.
func lastChange(db *kv.DB) (last uint64) {
	for _, s := range db.Slots() {
		last = max(last, s.Acked+s.Behind)
	}
	return last
}
