package siftprometheus_test

import (
	"fmt"
	"log"

	"github.com/prometheus/client_golang/prometheus"

	siftprometheus "github.com/siftkv/siftkv/adapters/prometheus"
	"github.com/siftkv/siftkv/kv"
)

func ExampleNewCollector() {
	db, err := kv.Open("", &kv.Options{InMemory: true, LatencyHistograms: true})
	if err != nil {
		log.Fatal(err)
	}
	defer db.Close()
	if err := db.Set([]byte("apple"), []byte("red"), nil); err != nil {
		log.Fatal(err)
	}

	registry := prometheus.NewRegistry() // or prometheus.DefaultRegisterer
	registry.MustRegister(siftprometheus.NewCollector(db, prometheus.Labels{"store": "fruit"}))
	// http.Handle("/metrics", promhttp.HandlerFor(registry, promhttp.HandlerOpts{}))

	families, err := registry.Gather()
	if err != nil {
		log.Fatal(err)
	}
	for _, f := range families {
		if f.GetName() == "siftkv_writes_total" {
			fmt.Println(f.GetName(), f.Metric[0].Label[0].GetValue(), f.Metric[0].GetCounter().GetValue())
		}
	}
	// Output: siftkv_writes_total fruit 1
}
