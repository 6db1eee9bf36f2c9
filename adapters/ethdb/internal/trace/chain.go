package main

import (
	"math/rand/v2"

	"github.com/ethereum/go-ethereum/ethdb"
)

const (
	transactions = 150 // of a block
	contracts    = 50  // every so many accounts one is a contract
	slots        = 40  // that a contract has set
	kept         = 64  // blocks: so many later the nodes are deleted that a block replaced
)

// A chain imports blocks into a store. Nothing is between them: go-ethereum has caches there, and its store sees
// fewer lookups of what is popular.
type chain struct {
	db       ethdb.KeyValueStore
	rng      *rand.Rand
	popular  *rand.Zipf
	accounts uint64 // 0 and so on
	trie     *trie
	number   uint64         // of the last block
	stale    [kept][][]byte // nodes that blocks replaced, by the number of the block
}

func newChain(db ethdb.KeyValueStore, seed uint64, accounts int) *chain {
	rng := rand.New(rand.NewPCG(seed, 1))
	return &chain{
		db: db, rng: rng, popular: rand.NewZipf(rng, 1.1, 50, uint64(accounts-1)),
		accounts: uint64(accounts), trie: newTrie(accounts),
	}
}

// genesis writes the state before the first block.
func (c *chain) genesis() error {
	b := newBlock(c.db, c.number)
	for i := range c.accounts {
		b.put(accountKey(i), accountSize)
		for slot := uint64(0); i%contracts == 0 && slot < slots; slot++ {
			b.put(slotKey(i, slot), slotSize)
		}
	}
	for p := range c.trie.nodes() {
		b.put(nodeKey(p, 0), c.trie.size(p))
	}
	c.putBlock(b)
	return b.close()
}

// importBlock runs the transactions of the next block and writes what they change.
func (c *chain) importBlock() error {
	b := newBlock(c.db, c.number+1)
	parent := blockHash(c.number)
	b.get(numberKey(parent))
	b.get(headerKey(c.number, parent))
	c.number++
	hash := blockHash(c.number)
	b.has(headerKey(c.number, hash)) // it may have been imported before
	b.has(bodyKey(c.number, hash))
	var changed []uint64
	for range transactions {
		changed = append(changed, c.transact(b)...)
		c.ask(b)
	}
	c.commit(b, changed)
	c.putBlock(b)
	return b.close()
}

// transact reads and changes the state of one who sends, and of one who receives: most often a contract, sometimes a
// new account. It returns both.
func (c *chain) transact(b *block) (changed []uint64) {
	from, to := c.someone(), c.someone()
	switch x := c.rng.IntN(100); {
	case x < 60:
		to -= to % contracts
	case x < 70:
		to = c.accounts
		c.accounts++
	}
	for _, account := range []uint64{from, to} {
		b.get(accountKey(account))
		b.put(accountKey(account), accountSize)
	}
	if to%contracts == 0 {
		c.call(b, to, from)
	}
	return []uint64{from, to}
}

// call reads variables of a contract, some of which were never set, and what it knows of the sender and of somebody
// else, which often is nothing. It changes the sender's.
func (c *chain) call(b *block, contract, sender uint64) {
	for range 2 {
		b.get(slotKey(contract, uint64(c.rng.ExpFloat64()*slots/3)))
	}
	b.get(slotKey(contract, slots+c.someone()))
	of := slotKey(contract, slots+sender)
	b.get(of)
	b.put(of, slotSize)
}

// someone draws an account: one of those that are popular, or one that came lately.
func (c *chain) someone() uint64 {
	if c.rng.IntN(5) == 0 {
		return c.accounts - 1 - c.rng.Uint64N(min(1000, c.accounts))
	}
	return c.popular.Uint64()
}

// ask looks a transaction up for a wallet: one of the last blocks, or one that is in no block yet.
func (c *chain) ask(b *block) {
	number := c.number + c.rng.Uint64N(4)
	if c.rng.IntN(2) == 0 {
		number = c.number - 1 - c.rng.Uint64N(min(c.number, kept))
	}
	b.has(transactionKey(number, c.rng.Uint64N(transactions)))
}

// commit reads the nodes above accounts and writes them under new hashes. Nodes that were replaced long ago go.
func (c *chain) commit(b *block, accounts []uint64) {
	old := &c.stale[c.number%kept]
	for _, key := range *old {
		b.delete(key)
	}
	*old = nil
	for _, account := range accounts {
		for _, p := range c.trie.above(accountHash(account)) {
			if c.trie.written[p] == c.number {
				continue
			}
			key := nodeKey(p, c.trie.written[p])
			b.get(key)
			*old = append(*old, key)
			c.trie.written[p] = c.number
			b.put(nodeKey(p, c.number), c.trie.size(p))
		}
	}
}

// putBlock writes the last block itself.
func (c *chain) putBlock(b *block) {
	hash := blockHash(c.number)
	b.put(numberKey(hash), 8)
	b.put(headerKey(c.number, hash), headerSize)
	b.put(bodyKey(c.number, hash), bodySize)
	for i := range uint64(transactions) {
		b.put(transactionKey(c.number, i), 4)
	}
}
