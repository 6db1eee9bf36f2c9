package blocked_test

import (
	"fmt"

	"github.com/siftkv/siftkv/filterpolicy/blocked"
)

func ExampleSet() {
	seen, err := blocked.New(1_000_000, 0.01)
	if err != nil {
		fmt.Println(err)
		return
	}
	seen.Add([]byte("apple"))
	fmt.Println(seen.Contains([]byte("apple")), seen.Contains([]byte("pear")))
	fmt.Printf("%.1f bits per key\n", float64(8*seen.Size())/float64(seen.Cap()))
	// Output:
	// true false
	// 9.9 bits per key
}
