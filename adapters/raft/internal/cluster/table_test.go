package cluster

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"

	"github.com/hashicorp/raft"

	siftraft "github.com/siftkv/siftkv/adapters/raft"
	"github.com/siftkv/siftkv/kv"
)

// The state of the cluster is a table of all entries that were applied: under 'r' and the index, 8 bytes big-endian,
// the term, 8 bytes, the digest of the chain up to this entry, 32 bytes, and the data. The chain's end and the number
// of entries are under keys of their own, and read whenever an entry is applied: an entry that is applied twice, left
// out, or applied to another state shows.
var (
	chainKey = []byte("chain")
	countKey = []byte("count")
)

// A row is an entry that was applied.
type row struct {
	Index, Term uint64
	Chain       string
	Data        string
}

// A table is what a node has applied.
type table struct {
	Count uint64
	Rows  []row
}

// record applies an entry: it is the Apply of the nodes' FSMs.
func record(tx *kv.Tx, e *raft.Log) any {
	chain, err := find(tx, chainKey)
	if err != nil {
		return err
	}
	count, err := find(tx, countKey)
	if err != nil {
		return err
	}
	next := link(chain, e.Index, e.Term, e.Data)
	n := binary.BigEndian.AppendUint64(nil, number(count)+1)
	value := binary.BigEndian.AppendUint64(nil, e.Term)
	value = append(append(value, next...), e.Data...)
	return errors.Join(tx.Set(rowKey(e.Index), value), tx.Set(chainKey, next), tx.Set(countKey, n))
}

func link(chain []byte, index, term uint64, data []byte) []byte {
	b := binary.BigEndian.AppendUint64(bytes.Clone(chain), index)
	sum := sha256.Sum256(append(binary.BigEndian.AppendUint64(b, term), data...))
	return sum[:]
}

func number(value []byte) uint64 {
	if len(value) == 0 {
		return 0
	}
	return binary.BigEndian.Uint64(value)
}

func rowKey(index uint64) []byte { return binary.BigEndian.AppendUint64([]byte{'r'}, index) }

func find(r kv.Reader, key []byte) ([]byte, error) {
	value, err := r.Get(key)
	if errors.Is(err, kv.ErrNotFound) {
		return nil, nil
	}
	return value, err
}

// readTable reads the table of an FSM, and checks the chain of digests from its beginning.
func readTable(f *siftraft.FSM) (t table, err error) {
	err = f.View(func(s *kv.Snapshot) (err error) {
		count, err := find(s, countKey)
		if err != nil {
			return err
		}
		t.Count = number(count)
		it, err := s.NewIter(&kv.IterOptions{LowerBound: rowKey(0), UpperBound: []byte("s")})
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, it.Close()) }()
		var chain []byte
		for ok := it.First(); ok; ok = it.Next() {
			r := row{Index: binary.BigEndian.Uint64(it.Key()[1:]), Term: binary.BigEndian.Uint64(it.Value())}
			data := it.Value()[8+sha256.Size:]
			chain = link(chain, r.Index, r.Term, data)
			if !bytes.Equal(chain, it.Value()[8:8+sha256.Size]) {
				return fmt.Errorf("entry %d was applied to another state than that of the entries before it", r.Index)
			}
			r.Chain, r.Data = hex.EncodeToString(chain), string(data)
			t.Rows = append(t.Rows, r)
		}
		return it.Error()
	})
	return t, err
}

// readChain returns the digest of what an FSM has applied up to an index, which is that of an entry.
func readChain(f *siftraft.FSM, index uint64) (chain string, err error) {
	err = f.View(func(s *kv.Snapshot) error {
		value, err := s.Get(rowKey(index))
		if err == nil {
			chain = hex.EncodeToString(value[8 : 8+sha256.Size])
		}
		return err
	})
	return chain, err
}
