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
		if !filled { // a further attempt writes the same
			filled = true
			return w.fill(tx, op, 4)
		}
		return replay(tx, op.writes)
	}
	err := w.transact(op, byUpdate, body)
	if lacks != nil {
		return lacks
	}
	return w.settle(op, err)
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

func replay(b writer, writes []write) error {
	var errs []error
	for _, w := range writes {
		switch w.kind {
		case writeDelete:
			errs = append(errs, b.Delete([]byte(w.key)))
		case writeRange:
			errs = append(errs, b.DeleteRange([]byte(w.key), []byte(w.value)))
		default:
			errs = append(errs, b.Set([]byte(w.key), []byte(w.value)))
		}
	}
	return errors.Join(errs...)
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
