package kv_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"time"

	"github.com/siftkv/siftkv/kv"
)

// A printer is told what a batch does.
type printer struct{}

func (printer) Set(key, value []byte) error     { return show("Set", key, value) }
func (printer) Merge(key, operand []byte) error { return show("Merge", key, operand) }
func (printer) Delete(key []byte) error         { return show("Delete", key) }
func (printer) DeleteRange(lo, hi []byte) error { return show("DeleteRange", lo, hi) }
func (printer) SetUntil(key, value []byte, expiry time.Time) error {
	return show("SetUntil", key, value, expiry.AppendFormat(nil, time.TimeOnly))
}

func show(verb string, args ...[]byte) error {
	_, err := fmt.Printf("%s %s\n", verb, args)
	return err
}

// What a batch does is told to a Writer of one's own, or to another batch or a transaction.
func ExampleBatch_Replay() {
	db, err := kv.Open("", &kv.Options{InMemory: true})
	if err != nil {
		log.Fatal(err)
	}
	defer db.Close()
	b := db.NewBatch()
	_ = b.Set([]byte("name"), []byte("ann")) // Replay and Commit return the first error
	_ = b.Delete([]byte("nick"))
	_ = b.DeleteRange([]byte("session/"), []byte("session0"))
	if err := b.Replay(printer{}); err != nil {
		log.Fatal(err)
	}
	// Output:
	// Set [name ann]
	// Delete [nick]
	// DeleteRange [session/ session0]
}

// A bulk load that is made durable once, at its end.
func ExampleDB_Sync() {
	db, err := kv.Open("", &kv.Options{InMemory: true}) // a directory, as a rule
	if err != nil {
		log.Fatal(err)
	}
	defer db.Close()
	for i := range 1000 {
		if err := db.Set(fmt.Appendf(nil, "row/%04d", i), nil, kv.Async); err != nil {
			log.Fatal(err)
		}
	}
	fmt.Println(db.Sync(context.Background())) // with nil, all rows survive a loss of power
	// Output: <nil>
}

// An order is written, and its amount added to a sum that nobody reads. Such transactions do
// not conflict with each other.
func ExampleTx_Merge() {
	db, err := kv.Open("", &kv.Options{InMemory: true, Merger: kv.Int64Add})
	if err != nil {
		log.Fatal(err)
	}
	defer db.Close()
	for order, amount := range []int64{30, 12} {
		err := db.Update(func(tx *kv.Tx) error {
			return errors.Join(tx.Set(fmt.Appendf(nil, "order/%d", order), kv.AppendInt64(nil, amount)),
				tx.Merge([]byte("sum"), kv.AppendInt64(nil, amount)))
		})
		if err != nil {
			log.Fatal(err)
		}
	}
	sum, err := db.Get([]byte("sum"))
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(kv.Int64(sum))
	// Output: 42 <nil>
}
