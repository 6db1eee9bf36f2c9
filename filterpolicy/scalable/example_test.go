package scalable_test

import (
	"fmt"

	"github.com/siftkv/siftkv/filterpolicy/scalable"
)

func Example() {
	// Nobody knows how many there will be: 1 k, then 10 k, then 100 k more.
	seen, err := scalable.New(1000, 0.01, &scalable.Options{Growth: 10})
	if err != nil {
		fmt.Println(err)
		return
	}
	for i := range 50_000 {
		seen.Add(fmt.Appendf(nil, "key-%d", i))
	}
	fmt.Println(seen.Contains([]byte("key-49999")), seen.Layers(), seen.Cap())
	fmt.Println(seen.FalsePositiveRate() <= 0.01)
	// Output:
	// true 3 111000
	// true
}
