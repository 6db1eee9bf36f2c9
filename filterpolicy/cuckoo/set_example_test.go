package cuckoo_test

import (
	"fmt"

	"github.com/siftkv/siftkv/filterpolicy/cuckoo"
)

func ExampleSet() {
	seen, err := cuckoo.New(1_000_000, 0.001, nil) // the rate costs 13 bits of each key
	if err != nil {
		panic(err)
	}
	_ = seen.Add([]byte("job 1"))
	_ = seen.Add([]byte("job 2"))
	fmt.Println(seen.Contains([]byte("job 1")), seen.Contains([]byte("job 3")))
	fmt.Println(seen.Remove([]byte("job 1")), seen.Contains([]byte("job 1")), seen.Len())
	// Output:
	// true false
	// true false 1
}

func ExampleSet_grow() {
	s, err := cuckoo.New(1000, 0.01, &cuckoo.Options{Grow: 2})
	if err != nil {
		panic(err)
	}
	for i := range uint64(10_000) {
		if err := s.AddHash(i); err != nil {
			panic(err)
		}
	}
	fmt.Println(s.Len(), "keys in", s.Tables(), "tables; rate kept:", s.FalsePositiveRate() < 0.01)
	// Output: 10000 keys in 4 tables; rate kept: true
}
