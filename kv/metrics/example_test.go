package metrics_test

import (
	"context"
	"fmt"
	"log"

	"github.com/siftkv/siftkv/kv"
)

func ExampleStore_Sub() {
	db, err := kv.Open("", &kv.Options{InMemory: true, LatencyHistograms: true})
	if err != nil {
		log.Fatal(err)
	}
	defer db.Close()
	before := db.Metrics()
	for i := range 1600 {
		if err := db.Set(fmt.Appendf(nil, "key%04d", i), []byte("value"), kv.NoSync); err != nil {
			log.Fatal(err)
		}
	}
	if err := db.Compact(context.Background(), nil, nil); err != nil {
		log.Fatal(err)
	}
	for i := range 1600 {
		if _, err := db.Get(fmt.Appendf(nil, "key%04d", i)); err != nil {
			log.Fatal(err)
		}
	}

	m := db.Metrics().Sub(before) // what has happened since
	fmt.Printf("%d lookups, each of %.1f blocks\n", m.Gets, m.ReadAmplification())
	fmt.Println("files were written, for each byte of batches:", m.WriteAmplification() > 0)
	fmt.Println("bytes that compactions have to go through:", m.CompactionDebt)
	get := m.Latency.Get
	fmt.Println("lookups took some time:", get.Quantile(0.5) > 0 && get.Quantile(0.99) >= get.Quantile(0.5))
	fmt.Println("one was timed of", get.OneIn)
	// Output:
	// 1600 lookups, each of 1.0 blocks
	// files were written, for each byte of batches: true
	// bytes that compactions have to go through: 0
	// lookups took some time: true
	// one was timed of 16
}
