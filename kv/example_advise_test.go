package kv_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"os"

	"github.com/siftkv/siftkv/kv"
)

// A program asks now and then what its own lookups would gain from other settings.
func ExampleDB_Advise() {
	dir, err := os.MkdirTemp("", "advise")
	if err != nil {
		log.Fatal(err)
	}
	defer func() { _ = os.RemoveAll(dir) }()
	db, err := kv.Open(dir, &kv.Options{LookupSample: 1 << 20})
	if err != nil {
		log.Fatal(err)
	}
	for i := range 10_000 {
		if err := db.Set(fmt.Append(nil, i), []byte("value"), kv.NoSync); err != nil {
			log.Fatal(err)
		}
	}
	if err := db.Compact(context.Background(), nil, nil); err != nil {
		log.Fatal(err)
	}
	_, err = db.Advise(context.Background(), nil)
	fmt.Println("too early:", errors.Is(err, kv.ErrSmallSample))

	for i := range 20_000 {
		if _, err := db.Has(fmt.Append(nil, i)); err != nil {
			log.Fatal(err)
		}
	}
	advice, err := db.Advise(context.Background(), nil)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(advice.Confidence, "confidence:", advice.Why)
	if !advice.Keep {
		fmt.Println(advice.Words)
		fmt.Print(advice.Options) // for kv.ParseOptions, or for siftkv apply
	}
	if err := db.Close(); err != nil {
		log.Fatal(err)
	}
}
