package stress

import (
	"bytes"
	"errors"
	"fmt"

	"github.com/siftkv/siftkv/kv"
)

// increment counts a common counter up in a transaction, and writes keys of its own.
func (w *worker) increment() *Finding {
	l := w.level()
	byUpdate := w.rng.IntN(2) == 0
	if byUpdate {
		l = levelSync
	}
	op := w.begin("Tx.Commit", l)
	op.counter = w.rng.IntN(commonCounters)
	var lacks *Finding
	filled := false
	body := func(tx *kv.Tx) error {
		n, err := w.readCounter(tx, op.counter)
		if err != nil {
			return err
		}
		op.value = n + 1
		if lacks = w.compareMark(tx); lacks != nil {
			return errors.New(lacks.Text)
		}
		if err := tx.Set([]byte(counterKey(op.counter)), fmt.Append(nil, op.value)); err != nil {
			return err
		}
		write := func() error { return replay(tx, op.writes) } // a further attempt writes the same
		if !filled {
			filled = true
			write = func() error { return w.fill(tx, op, 4) }
		}
		if err := write(); err != nil {
			return err
		}
		if lacks = w.compareOwn(tx, op); lacks != nil {
			return errors.New(lacks.Text)
		}
		return nil
	}
	err := w.transact(op, byUpdate, body)
	if lacks != nil {
		return lacks
	}
	return w.settle(op, err)
}

// compareOwn holds what a transaction sees of the worker's keys against what was acknowledged and
// the writes of the transaction.
func (w *worker) compareOwn(tx *kv.Tx, op *operation) *Finding {
	c := w.space.clone()
	c.apply(op.writes)
	for range w.rng.IntN(3) {
		if f := w.compare(tx, c, op.writes[w.rng.IntN(len(op.writes))].key); f != nil {
			return f
		}
	}
	if w.rng.IntN(4) > 0 {
		return nil
	}
	clock := w.r.oracle.clock
	clock.hold.RLock()
	defer clock.hold.RUnlock()
	got, err := readAll(tx, w.space.prefix, w.rng.IntN(2) == 0)
	if err != nil {
		return w.allow(err)
	}
	if diff := difference(c.at(clock.now()), got); diff != "" {
		return found("wrong read", "a scan of a transaction: %s", diff)
	}
	return nil
}

func (w *worker) transact(op *operation, byUpdate bool, body func(*kv.Tx) error) error {
	if byUpdate {
		return w.db.Update(func(tx *kv.Tx) error {
			err := body(tx)
			w.space.submit(op)
			return err
		})
	}
	tx, err := w.db.Begin(true)
	if err != nil {
		return err
	}
	if err := body(tx); err != nil {
		return errors.Join(err, tx.Discard())
	}
	w.space.submit(op)
	return tx.Commit(writeOptions(op.level))
}

func (w *worker) readCounter(r kv.Reader, n int) (int64, error) {
	v, err := r.Get([]byte(counterKey(n)))
	if errors.Is(err, kv.ErrNotFound) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	return parseCounter(string(bytes.TrimSpace(v)))
}
