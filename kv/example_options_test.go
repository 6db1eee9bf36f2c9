package kv_test

import (
	"fmt"

	"github.com/siftkv/siftkv/kv"
)

func ExampleParseOptions() {
	o, err := kv.ParseOptions(`
# of a server
MemoryLimit = 1GiB
Compression = zstd
Filter = ribbon:7
`)
	if err != nil {
		panic(err)
	}
	o.FileMode = 0o640
	fmt.Print(o)
	_, err = kv.ParseOptions("MemoryLimit = 1GiB\nCompression = lz4")
	fmt.Println(err)
	// Output:
	// MemoryLimit = 1GiB
	// Compression = zstd
	// Filter = ribbon:7
	// FileMode = 0640
	// siftkv: invalid options: line 2: Compression: sstable: unknown compression "lz4": want none, snappy or zstd
}
