package bloom_test

import (
	"fmt"
	"sync"

	"github.com/siftkv/siftkv/filterpolicy/bloom"
)

func ExampleConcurrentSet() {
	seen, err := bloom.NewConcurrent(1_000_000, 0.001)
	if err != nil {
		fmt.Println(err)
		return
	}
	var group sync.WaitGroup
	for _, half := range [][]string{{"apple", "pear"}, {"plum", "quince"}} {
		group.Go(func() {
			for _, word := range half {
				seen.Add([]byte(word))
			}
		})
	}
	group.Wait()
	fmt.Println(seen.Contains([]byte("plum")), seen.Len())
	// Output: true 4
}

func ExampleSet() {
	seen, err := bloom.New(1_000_000, 0.01) // a million keys, 1 % false positives
	if err != nil {
		fmt.Println(err)
		return
	}
	seen.Add([]byte("apple"))
	fmt.Println(seen.Contains([]byte("apple")), seen.Contains([]byte("pear")))

	// De-duplication takes one pass.
	for _, word := range []string{"apple", "plum", "plum"} {
		if seen.AddNew([]byte(word)) {
			fmt.Println("new:", word)
		}
	}
	fmt.Printf("%d keys, %.1f bits for each of %d\n", seen.Len(), float64(8*seen.Size())/float64(seen.Cap()),
		seen.Cap())
	// Output:
	// true false
	// new: plum
	// 2 keys, 9.6 bits for each of 1000000
}
