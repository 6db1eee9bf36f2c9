package kv

import (
	"bytes"

	"github.com/siftkv/siftkv/internal/base"
	"github.com/siftkv/siftkv/internal/iterator"
	"github.com/siftkv/siftkv/internal/sstable"
)

// Most entries of a scan come from one table, one after the other. In a store of one run all do.
// In a tree of levels the last one has some ten between two of the levels above. A move within
// the table is a step in a block and a comparison with the fence. That is the smallest of the
// upper bound and the first keys of all other inputs. It needs no merge, copies no key, and calls
// no interface.

// settle takes key and value from the table that i.key comes from, if entries of it can be
// passed without the other inputs. The input has found the entry and is on it.
func (i *cursor) settle() {
	i.fence = iterator.KeyPrefix(i.upper)
	if i.upper == nil {
		i.fence = noFence
	}
	t, next := i.input.Table()
	if t == nil {
		return
	}
	if next != nil {
		f := iterator.KeyPrefix(next)
		// The others may have older versions of the key: it is passed first.
		if f == iterator.KeyPrefix(i.key) && bytes.Compare(i.key, next) >= 0 {
			return
		}
		i.fence = min(i.fence, f)
	}
	i.table = t
}

// noFence is at or above the first bytes of every key.
const noFence = 1<<64 - 1

// nextInTable is Next in the table.
func (i *cursor) nextInTable(t *sstable.Iter) bool {
	if !t.Step() { // at the end of a block, which leaves the key
		i.key = append(i.key[:0], t.User()...)
		return i.next()
	}
	k := t.Key()
	again := t.Again()
	if !again && (k.Kind() == base.KindSet || i.keysOnly && i.sizedApart(t, k.Kind())) && k.SeqNum() <= i.at &&
		(iterator.KeyPrefix(k.User) < i.fence || i.within(k.User)) {
		i.returned++
		return true
	}
	if again {
		i.key = append(i.key[:0], k.User...)
	}
	i.valid, i.err, i.table = false, nil, nil
	// The others have nothing of the previous key: it was before the fence.
	return i.came(i.forward(i.input.Moved(true), again))
}

// within reports whether a key is before the fence, of which it has the first bytes.
func (i *cursor) within(user []byte) bool {
	_, next := i.input.Table()
	return (next == nil || bytes.Compare(user, next) < 0) && (i.upper == nil || bytes.Compare(user, i.upper) < 0)
}

// passDeletes goes on from the tombstone of i.key, past those that follow it in its table before
// the other inputs have anything. It does so without the merge, as nextInTable does. It leaves
// i.key at the last one if older versions of that may follow.
func (i *cursor) passDeletes() bool {
	t, next := i.input.Table()
	if t == nil || !i.plain {
		return i.input.Next()
	}
	for t.Step() {
		k := t.Key()
		again := t.Again()
		if again {
			i.key = append(i.key[:0], k.User...)
		}
		if again || k.Kind() != base.KindDelete || k.SeqNum() > i.at ||
			next != nil && bytes.Compare(k.User, next) >= 0 || i.upper != nil && bytes.Compare(k.User, i.upper) >= 0 {
			return i.input.Moved(true)
		}
	}
	i.key = append(i.key[:0], t.User()...) // at the end of a block, which leaves the key
	return i.input.Next()
}
