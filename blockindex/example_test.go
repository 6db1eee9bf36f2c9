package blockindex_test

import (
	"fmt"

	"github.com/siftkv/siftkv/blockindex"
)

// An index of three blocks, and the block that a key would be in.
func Example() {
	var b blockindex.Builder
	b.Add([]byte("cherry"), 4096) // block 0 ends at 4096 and holds keys up to "cherry"
	b.Add([]byte("melon"), 8100)
	b.Add([]byte("quince"), 12000)

	index, err := blockindex.Decode(b.Append(nil))
	if err != nil {
		fmt.Println(err)
		return
	}
	i := index.Find([]byte("lemon"))
	offset, length := index.Block(i)
	fmt.Printf("lemon: block %d, %d bytes at %d\n", i, length, offset)
	fmt.Println("zucchini is past the last block:", index.Find([]byte("zucchini")) == index.Len())
	// Output:
	// lemon: block 1, 4004 bytes at 4096
	// zucchini is past the last block: true
}
