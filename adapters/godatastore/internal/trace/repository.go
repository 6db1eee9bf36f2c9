package main

import (
	"crypto/sha256"
	"encoding/base32"
	"encoding/binary"
	"math"
	"math/rand/v2"

	ds "github.com/ipfs/go-datastore"
)

// chunkSize is that of the blocks of large files, in bytes. Nodes have 256 KiB; it is less here so that a
// store of tens of megabytes has files of many blocks.
const chunkSize = 16 << 10

// A repository is what a node could ever be asked to add: directories of files, cut into blocks. Blocks lie in
// the order in which they are added: those that another links to come before it.
type repository struct {
	seed   uint64
	blocks []block
	roots  []int // directories, which are what is pinned, fetched and deleted
}

// A block is a leaf, which is data, or has links: a file of several leaves, or a directory.
type block struct {
	id    uint64 // what its content is made of
	size  int
	links []int
	key   ds.Key
}

// newRepository draws directories until they have so many blocks, about. The median of the sizes of files is
// 2 KiB, and the largest hundredth have most of the bytes, as in the home directories of people. A tenth of the
// files are copies of earlier ones.
func newRepository(seed uint64, keys int) *repository {
	r := &repository{seed: seed}
	rng := rand.New(rand.NewPCG(seed, 1))
	var files []int // blocks
	for len(r.blocks) < keys {
		var dir []int
		for range 1 + int(rng.ExpFloat64()*20) {
			if len(files) > 0 && rng.Float64() < 0.1 {
				dir = append(dir, files[rng.IntN(len(files))])
				continue
			}
			size := min(int(2048*math.Exp(1.6*rng.NormFloat64()))+1, 1<<20)
			dir = append(dir, r.addFile(size))
			files = append(files, dir[len(dir)-1])
		}
		r.roots = append(r.roots, r.addBlock(60*len(dir), dir))
	}
	return r
}

func (r *repository) addFile(size int) (root int) {
	var leaves []int
	for ; size > chunkSize; size -= chunkSize {
		leaves = append(leaves, r.addBlock(chunkSize, nil))
	}
	last := r.addBlock(size, nil)
	if len(leaves) == 0 {
		return last
	}
	leaves = append(leaves, last)
	return r.addBlock(50*len(leaves), leaves)
}

func (r *repository) addBlock(size int, links []int) int {
	b := block{id: uint64(len(r.blocks)), size: size, links: links}
	b.key = key(sha256.Sum256(r.content(&b)))
	r.blocks = append(r.blocks, b)
	return len(r.blocks) - 1
}

// content returns the bytes of a block: noise, half of which compression takes away.
func (r *repository) content(b *block) []byte {
	var seed [32]byte
	binary.LittleEndian.PutUint64(seed[:], r.seed)
	binary.LittleEndian.PutUint64(seed[8:], b.id)
	content := make([]byte, b.size)
	_, _ = rand.NewChaCha8(seed).Read(content) // it never fails
	copy(content[b.size/2:], content)
	return content
}

// key is where a blockstore keeps the block of a SHA-256: its multihash in base32.
func key(hash [sha256.Size]byte) ds.Key {
	multihash := append([]byte{0x12, sha256.Size}, hash[:]...)
	return ds.RawKey("/blocks/" + base32.StdEncoding.WithPadding(base32.NoPadding).EncodeToString(multihash))
}
