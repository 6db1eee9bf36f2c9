package main

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"math/rand/v2"

	ds "github.com/ipfs/go-datastore"
	"github.com/ipfs/go-datastore/query"

	"github.com/siftkv/siftkv/adapters/godatastore"
)

// Shares of the requests. The rest are peers that want a block that is not there.
const (
	shareFetch = 0.05 // of a directory with all that is below
	shareGive  = 0.15 // a peer wants a block that is there: its size is asked for, then the block

	// Half of the absent blocks that peers want are wanted by many of them: these.
	popularAbsent = 20_000

	collections = 4 // of garbage, spread over the load; a twentieth of the directories is not pinned any more
)

// A node is one of IPFS: it adds directories, pins them, gives blocks to peers, and collects garbage.
type node struct {
	store *godatastore.Datastore
	of    *repository
	rng   *rand.Rand
	added int          // directories that were added
	gone  map[int]bool // of these, those that are not pinned any more
}

// serve is request i of n.
func (n *node) serve(ctx context.Context, i, of int) error {
	first := len(n.of.roots) * 2 / 3 // directories that were there before
	if (n.added-first)*of < (len(n.of.roots)-first)*i {
		if err := n.add(ctx); err != nil {
			return err
		}
	}
	if every := max(1, of/collections); i%every == every-1 {
		for range n.added / 20 {
			n.gone[n.rng.IntN(n.added)] = true
		}
		if err := n.collect(ctx); err != nil {
			return err
		}
	}
	switch x := n.rng.Float64(); {
	case x < shareFetch:
		return n.fetch(ctx, n.of.roots[n.popular()])
	case x < shareFetch+shareGive:
		return n.give(ctx, n.of.blocks[n.of.roots[n.popular()]].links)
	}
	_, err := n.store.Has(ctx, n.absent())
	return err
}

// popular draws a directory that was added; few are asked for often.
func (n *node) popular() int {
	return int(rand.NewZipf(n.rng, 1.1, 20, uint64(n.added-1)).Uint64())
}

// absent draws a block that nobody ever adds: one of those that many want, or one that is wanted once.
func (n *node) absent() ds.Key {
	x := n.rng.Uint64() | 1<<63
	if n.rng.IntN(2) == 0 {
		x = rand.NewZipf(n.rng, 1.01, 1, popularAbsent-1).Uint64()
	}
	return key(sha256.Sum256(binary.LittleEndian.AppendUint64([]byte("absent"), x)))
}

// add adds the next directory: each block is put if it is not there.
func (n *node) add(ctx context.Context) error {
	root := n.of.roots[n.added]
	first := 0
	if n.added > 0 {
		first = n.of.roots[n.added-1] + 1
	}
	n.added++
	for _, link := range n.of.blocks[root].links {
		if link < first { // a copy of an earlier file, down to its blocks
			if err := n.walk(link, func(b *block) error { return n.put(ctx, b) }); err != nil {
				return err
			}
		}
	}
	for i := first; i <= root; i++ {
		if err := n.put(ctx, &n.of.blocks[i]); err != nil {
			return err
		}
	}
	return nil
}

// put writes a block if it is not there, as a blockstore does.
func (n *node) put(ctx context.Context, b *block) error {
	has, err := n.store.Has(ctx, b.key)
	if err != nil || has {
		return err
	}
	return n.store.Put(ctx, b.key, n.of.content(b))
}

// walk calls f with a block, and then with those below it, in the order of the links.
func (n *node) walk(from int, f func(*block) error) error {
	b := &n.of.blocks[from]
	err := f(b)
	for _, link := range b.links {
		if err == nil {
			err = n.walk(link, f)
		}
	}
	return err
}

// fetch reads all blocks of a directory. What was deleted is no error; its links are unknown then, and
// nothing below it is asked for.
func (n *node) fetch(ctx context.Context, root int) error {
	err := n.walk(root, func(b *block) error {
		_, err := n.store.Get(ctx, b.key)
		return err
	})
	return ignoreAbsent(err)
}

// give answers a peer that wants one of some blocks.
func (n *node) give(ctx context.Context, of []int) error {
	b := &n.of.blocks[of[n.rng.IntN(len(of))]]
	if _, err := n.store.GetSize(ctx, b.key); err != nil {
		return ignoreAbsent(err)
	}
	_, err := n.store.Get(ctx, b.key)
	return err
}

// collect deletes what no pinned directory has. To mark what is pinned reads each block that may have links:
// files of one leaf are known by their identifiers to have none.
func (n *node) collect(ctx context.Context) error {
	marked := make(map[ds.Key]bool)
	for i, root := range n.of.roots[:n.added] {
		if n.gone[i] {
			continue
		}
		err := n.walk(root, func(b *block) error {
			if marked[b.key] {
				return nil
			}
			marked[b.key] = true
			if len(b.links) == 0 {
				return nil
			}
			_, err := n.store.Get(ctx, b.key)
			return err
		})
		if err != nil {
			return err
		}
	}
	found, err := n.store.Query(ctx, query.Query{Prefix: "/blocks", KeysOnly: true})
	if err != nil {
		return err
	}
	all, err := found.Rest()
	for _, e := range all {
		if k := ds.RawKey(e.Key); err == nil && !marked[k] {
			err = n.store.Delete(ctx, k)
		}
	}
	return err
}

func ignoreAbsent(err error) error {
	if errors.Is(err, ds.ErrNotFound) {
		return nil
	}
	return err
}
