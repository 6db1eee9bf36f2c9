package stress

import (
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/siftkv/siftkv/kv"
)

// A writer is a batch or a transaction.
type writer interface {
	kv.Writer
	SetTTL(key, value []byte, ttl time.Duration) error
}

// fill writes the mark and some of the worker's keys.
func (w *worker) fill(b writer, op *operation, most int) error {
	m := op.writes[0]
	errs := []error{b.Set([]byte(m.key), []byte(m.value))}
	if w.r.want["rangedel"] && w.rng.IntN(64) == 0 {
		errs = append(errs, w.smallRanges(b, op))
	}
	return errors.Join(append(errs, w.writes(b, op, most))...)
}

// writes adds writes to some of the worker's keys.
func (w *worker) writes(b writer, op *operation, most int) error {
	var errs []error
	for range w.rng.IntN(most + 1) {
		k := w.key()
		n := write{key: k}
		var err error
		switch x := w.rng.IntN(20); {
		case x < 3:
			n.kind = writeDelete
			err = b.Delete([]byte(k))
		case x < 4 && w.r.want["rangedel"]:
			n.kind, n.value = writeRange, fmt.Sprintf("%sk%03d", w.space.prefix, w.rng.IntN(keysPerWorker+1))
			if n.value <= n.key {
				n.value = n.key + "\x00"
			}
			err = b.DeleteRange([]byte(k), []byte(n.value))
		case x < 7 && w.r.want["merge"]:
			n.kind, n.value = writeMerge, strconv.FormatUint(op.id, 10)
			err = b.Merge([]byte(k), []byte(n.value))
		case x < 9 && w.r.want["ttl"]:
			n.kind, n.value = writeTTL, w.value(op)
			err = w.setTTL(b, &n)
		default:
			n.value = w.value(op)
			err = b.Set([]byte(k), []byte(n.value))
		}
		op.writes = append(op.writes, n)
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// smallRanges deletes many ranges, of a key or a few each.
func (w *worker) smallRanges(b writer, op *operation) error {
	var errs []error
	for range 5 + w.rng.IntN(60) {
		lo := w.rng.IntN(keysPerWorker)
		n := write{kind: writeRange, key: fmt.Sprintf("%sk%03d", w.space.prefix, lo)}
		n.value = fmt.Sprintf("%sk%03d", w.space.prefix, lo+1+w.rng.IntN(3)/2)
		op.writes = append(op.writes, n)
		errs = append(errs, b.DeleteRange([]byte(n.key), []byte(n.value)))
	}
	return errors.Join(errs...)
}

// setTTL writes a value that expires, or has, while the clock stands still.
func (w *worker) setTTL(b writer, n *write) error {
	c := w.r.oracle.clock
	c.hold.RLock()
	defer c.hold.RUnlock()
	ttl := time.Duration(1+w.rng.IntN(120)) * time.Second
	n.expiry = c.now() + uint64(ttl.Microseconds())
	switch w.rng.IntN(8) {
	case 0:
		n.expiry = c.now() - uint64(w.rng.IntN(2))
		fallthrough
	case 1, 2:
		return b.SetUntil([]byte(n.key), []byte(n.value), time.UnixMicro(int64(n.expiry)))
	}
	return b.SetTTL([]byte(n.key), []byte(n.value), ttl)
}

// copied returns a batch of the writes in b, to which err may have happened, and of some more,
// that were copied from one to the other.
func (w *worker) copied(b *kv.Batch, op *operation, err error) (*kv.Batch, error) {
	other := w.db.NewBatch()
	if w.rng.IntN(2) == 0 {
		more := w.writes(other, op, 4)
		return b, errors.Join(err, more, b.Append(other))
	}
	replayed := b.Replay(other)
	return other, errors.Join(err, replayed, w.writes(other, op, 4))
}

// replay writes what was written before.
func replay(b writer, writes []write) error {
	var errs []error
	for _, w := range writes {
		switch w.kind {
		case writeDelete:
			errs = append(errs, b.Delete([]byte(w.key)))
		case writeRange:
			errs = append(errs, b.DeleteRange([]byte(w.key), []byte(w.value)))
		case writeMerge:
			errs = append(errs, b.Merge([]byte(w.key), []byte(w.value)))
		case writeTTL:
			errs = append(errs, b.SetUntil([]byte(w.key), []byte(w.value), time.UnixMicro(int64(w.expiry))))
		default:
			errs = append(errs, b.Set([]byte(w.key), []byte(w.value)))
		}
	}
	return errors.Join(errs...)
}
