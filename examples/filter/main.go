// Filter brings a filter of the application's own into the store: a bitmap with sixteen bits for each key
// of a file, of which a key sets one. It is large for what it does, and asks one bit per lookup.
//
//	go run ./examples/filter DIR
package main

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"log"
	"math/bits"
	"os"

	"github.com/siftkv/siftkv/filterpolicy"
	"github.com/siftkv/siftkv/kv"
)

// bitmap is a policy, a filterpolicy.Decoder: what the store needs to write and read filters of a family
// that it does not know. The name is in every file, so it never changes, nor does what it stands for.
type bitmap struct{}

func (bitmap) Name() string                     { return "example.bitmap" }
func (bitmap) String() string                   { return "example.bitmap" }
func (bitmap) NewBuilder() filterpolicy.Builder { return &builder{} }

// Decode is given the bytes of a file, which may be damaged.
func (bitmap) Decode(data []byte) (filterpolicy.Filter, error) {
	if len(data) == 0 || len(data)%8 != 0 {
		return nil, fmt.Errorf("a bitmap has words of 8 bytes, not %d bytes", len(data))
	}
	return filter{data, uint64(len(data)) * 8}, nil
}

// A builder gathers the hashes of a file's keys: how many there will be is known at the end.
type builder struct{ hashes []uint64 }

func (b *builder) AddHash(h uint64) { b.hashes = append(b.hashes, h) }

func (b *builder) Finish(dst []byte) (data []byte, ok bool) {
	words := max(1, (len(b.hashes)*16+63)/64)
	data = append(dst, make([]byte, words*8)...)
	f := filter{data[len(dst):], uint64(words) * 64}
	for _, h := range b.hashes {
		at, mask := f.bit(h)
		f.data[at] |= mask
	}
	b.hashes = b.hashes[:0]
	return data, true
}

// A filter is asked by any number of goroutines at once.
type filter struct {
	data []byte
	size uint64 // in bits
}

func (f filter) MayContainHash(h uint64) bool {
	at, mask := f.bit(h)
	return f.data[at]&mask != 0
}

// bit brings a hash into [0, size) by a multiplication, which is faster than a division.
func (f filter) bit(h uint64) (at uint64, mask byte) {
	n, _ := bits.Mul64(h, f.size)
	return n / 8, 1 << (n % 8)
}

func main() {
	if len(os.Args) != 2 {
		log.Fatal("usage: filter DIR")
	}
	if err := run(os.Args[1]); err != nil {
		log.Fatal(err)
	}
}

func run(dir string) (err error) {
	db, err := kv.Open(dir, &kv.Options{Filter: bitmap{}})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()

	const keys = 10_000
	b := db.NewBatch()
	for n := range uint64(keys) {
		_ = b.Set(key(2*n), nil)
	}
	if err := errors.Join(b.Commit(nil), db.Compact(context.Background(), nil, nil)); err != nil {
		return err
	}
	for n := range uint64(keys - 1) { // the one past the last key is ruled out by the file's bounds
		if ok, err := db.Has(key(2*n + 1)); ok || err != nil {
			return errors.Join(err, errors.New("an odd key was found"))
		}
	}
	asked := db.Metrics().Lookup()
	rate := asked.FalsePositiveRate() // 1/16, less the bits that several keys share
	fmt.Printf("%d lookups of absent keys, about one in sixteen a false positive: %v\n",
		asked.FilterChecks(), 0.05 < rate && rate < 0.07)
	return nil
}

func key(n uint64) []byte { return binary.BigEndian.AppendUint64(nil, n) }
