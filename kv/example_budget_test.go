package kv_test

import (
	"fmt"
	"log"

	"github.com/siftkv/siftkv/kv"
)

// Stores of one process share 64 MiB: whichever is busy has most of it.
func ExampleMemoryBudget() {
	budget := kv.NewMemoryBudget(64 << 20)
	var stores []*kv.DB
	for range 3 {
		db, err := kv.Open("tenant", &kv.Options{MemoryBudget: budget, InMemory: true})
		if err != nil {
			log.Fatal(err)
		}
		stores = append(stores, db)
	}
	usage := budget.Usage()
	fmt.Println(usage.Stores, "stores within", usage.Limit>>20, "MiB:", usage.Bytes() <= usage.Limit)
	for _, db := range stores {
		if err := db.Close(); err != nil {
			log.Fatal(err)
		}
	}
	fmt.Println(budget.Usage().Bytes(), "bytes are left")
	// Output:
	// 3 stores within 64 MiB: true
	// 0 bytes are left
}
