package advice_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"os"

	"github.com/siftkv/siftkv/kv"
	"github.com/siftkv/siftkv/kv/advice"
)

// A program asks now and then what its own lookups would gain from other settings.
func ExampleFor() {
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
	_, err = advice.For(context.Background(), db, nil)
	fmt.Println("too early:", errors.Is(err, advice.ErrSmallSample))

	for i := range 20_000 {
		if _, err := db.Has(fmt.Append(nil, i)); err != nil {
			log.Fatal(err)
		}
	}
	report, err := advice.For(context.Background(), db, nil)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(report.Confidence, "confidence:", report.Why)
	if !report.Keep {
		fmt.Println(report.Words)
		fmt.Print(report.Options) // for kv.ParseOptions, or for siftkv apply
	}
	if err := db.Close(); err != nil {
		log.Fatal(err)
	}
}
