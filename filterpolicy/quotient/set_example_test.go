package quotient_test

import (
	"fmt"

	"github.com/siftkv/siftkv/filterpolicy/quotient"
)

func ExampleSet() {
	monday, _ := quotient.New(1000, 1e-6, nil)
	tuesday, _ := quotient.New(1000, 1e-6, nil)
	_ = monday.Add([]byte("ann"))
	_ = tuesday.Add([]byte("ann"))
	_ = tuesday.Add([]byte("bob"))
	if err := monday.Merge(tuesday); err != nil {
		panic(err)
	}
	fmt.Println(monday.Count([]byte("ann")), monday.Count([]byte("bob")), monday.Contains([]byte("eve")))
	fmt.Println(monday.Remove([]byte("bob")), monday.Contains([]byte("bob")), monday.Len())
	// Output:
	// 2 1 false
	// true false 2
}

func ExampleOptions() {
	s, err := quotient.New(1000, 0.01, &quotient.Options{Grow: 4})
	if err != nil {
		panic(err)
	}
	for i := range uint64(16_000) {
		if err := s.AddHash(i); err != nil {
			panic(err)
		}
	}
	fmt.Println("rate kept:", s.FalsePositiveRate() < 0.01)
	// Output: rate kept: true
}
