// Transactions moves money between accounts from several goroutines at once. Whoever reads what another
// has changed since gets kv.ErrConflict at the commit, and Update runs the function once more; so no sum
// is ever lost or made.
//
//	go run ./examples/transactions DIR
package main

import (
	"errors"
	"fmt"
	"log"
	"os"
	"sync"

	"github.com/siftkv/siftkv/kv"
)

const accounts, movers, moves = 4, 8, 50

func main() {
	if len(os.Args) != 2 {
		log.Fatal("usage: transactions DIR")
	}
	if err := run(os.Args[1]); err != nil {
		log.Fatal(err)
	}
}

func run(dir string) (err error) {
	db, err := kv.Open(dir, nil)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	for n := range accounts {
		if err := db.Set(account(n), kv.AppendInt64(nil, 100), kv.NoSync); err != nil {
			return err
		}
	}

	var group sync.WaitGroup
	errs := make([]error, movers)
	for m := range movers {
		group.Go(func() {
			for i := range moves {
				errs[m] = errors.Join(errs[m], move(db, account((m+i)%accounts), account((m+i+1)%accounts), 7))
			}
		})
	}
	group.Wait()
	if err := errors.Join(errs...); err != nil {
		return err
	}

	// A transaction that only reads sees one moment, and never conflicts.
	return db.View(func(tx *kv.Tx) error {
		var sum int64
		for n := range accounts {
			balance, err := read(tx, account(n))
			if err != nil {
				return err
			}
			sum += balance
		}
		fmt.Printf("%d accounts hold %d\n", accounts, sum)
		return nil
	})
}

// move takes an amount from one account to another, unless that would overdraw the first.
func move(db *kv.DB, from, to []byte, amount int64) error {
	return db.Update(func(tx *kv.Tx) error {
		a, errA := read(tx, from)
		b, errB := read(tx, to)
		if err := errors.Join(errA, errB); err != nil || a < amount {
			return err
		}
		return errors.Join(tx.Set(from, kv.AppendInt64(nil, a-amount)), tx.Set(to, kv.AppendInt64(nil, b+amount)))
	})
}

func read(tx *kv.Tx, key []byte) (int64, error) {
	value, err := tx.Get(key)
	if err != nil {
		return 0, err
	}
	return kv.Int64(value)
}

func account(n int) []byte { return fmt.Appendf(nil, "account/%d", n) }
