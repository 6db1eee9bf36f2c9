package blocked_test

import (
	"fmt"

	"github.com/cespare/xxhash/v2"

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

// The lines are where the program wants them; here they are a slice.
func ExampleLocate() {
	lines, probes, err := blocked.Shape(1000, 0.01)
	if err != nil {
		fmt.Println(err)
		return
	}
	kept := make([]byte, lines*blocked.LineLen)
	spot := blocked.Locate(xxhash.Sum64String("apple"))
	line := kept[spot.Line(lines)*blocked.LineLen:]
	for _, p := range spot.Bits(nil, probes) {
		line[p/8] |= 1 << (p % 8)
	}

	set, err := blocked.FromLines(kept, probes, 1, 1000)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(set.Contains([]byte("apple")), set.Contains([]byte("pear")))
	// Output: true false
}
