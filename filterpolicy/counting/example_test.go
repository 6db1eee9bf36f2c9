package counting_test

import (
	"fmt"

	"github.com/siftkv/siftkv/filterpolicy/counting"
)

func Example() {
	cart, err := counting.New(1_000_000, 0.01, nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	apple := []byte("apple")
	cart.Add(apple)
	cart.Add(apple)
	fmt.Println(cart.Count(apple), cart.Remove(apple), cart.Contains(apple))
	fmt.Println(cart.Count(apple), cart.Remove(apple), cart.Contains(apple))
	fmt.Println(cart.Remove(apple))
	// Output:
	// 2 true true
	// 1 true false
	// false
}
