package siftwalletdb

import (
	"errors"
	"fmt"
	"sync"

	"github.com/btcsuite/btcwallet/walletdb"
)

// A batcher collects the functions of goroutines that call Batch. The first of them begins the transaction; while it
// waits for its turn to write, others put their functions beside its own. So batches are large when writers
// have to wait, and nobody waits for others to come.
type batcher struct {
	mu      sync.Mutex
	waiting []*batched
}

type batched struct {
	f    func(tx walletdb.ReadWriteTx) error
	done chan error
}

// errAlone tells a caller of Batch that its function has failed among others, and is to be run by itself.
var errAlone = errors.New("walletdb: siftkv: to be run alone")

// Batch is Update for many goroutines that write little: functions of several run in one transaction, in which each
// sees what those before it have written. A function that fails is taken out, the others are run again without it,
// and then it is run by itself, for the error that Batch returns. So functions may run more than once.
func (d *db) Batch(f func(tx walletdb.ReadWriteTx) error) error {
	own := &batched{f, make(chan error, 1)}
	d.batch.mu.Lock()
	d.batch.waiting = append(d.batch.waiting, own)
	first := len(d.batch.waiting) == 1
	d.batch.mu.Unlock()
	if first {
		d.runBatch()
	}
	if err := <-own.done; !errors.Is(err, errAlone) {
		return err
	}
	return d.Update(f, func() {})
}

// take empties the queue. Whoever comes next is the first of another batch.
func (b *batcher) take() []*batched {
	b.mu.Lock()
	defer b.mu.Unlock()
	taken := b.waiting
	b.waiting = nil
	return taken
}

// runBatch runs the functions that have come when it is this goroutine's turn to write.
func (d *db) runBatch() {
	t, err := d.begin(true)
	all := d.batch.take()
	outcome := errAlone // unless this goroutine ends before there is one
	defer func() {
		if t != nil {
			t.end()
		}
		for _, b := range all {
			b.done <- outcome
		}
	}()
	for err == nil {
		failed := runAll(t, all)
		if failed < 0 {
			if outcome = t.commit(); outcome == nil {
				t.committed()
			}
			return
		}
		t.end()
		all[failed].done <- errAlone
		all = append(all[:failed:failed], all[failed+1:]...)
		if len(all) == 0 {
			return
		}
		t, err = d.begin(true)
	}
	outcome = err
}

// runAll returns the index of the first function that fails, or panics; -1: none does.
func runAll(t *tx, all []*batched) int {
	for i, b := range all {
		if runOne(t, b) != nil {
			return i
		}
	}
	return -1
}

func runOne(t *tx, b *batched) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic: %v", p) // it will panic again, where its caller sees it
		}
	}()
	return b.f(t)
}
