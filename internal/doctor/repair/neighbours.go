package repair

import (
	"bytes"

	"github.com/siftkv/siftkv/internal/base"
	"github.com/siftkv/siftkv/internal/blob"
)

// neighbours are the tables that are left and may have keys of a lost one.
type neighbours struct {
	pieces []*piece
	inputs []*mergeInput // of pieces; nil until they are asked
}

// An evidence is what the tables that are left say of a value that a lost table may have had.
type evidence int

const (
	silent  evidence = iota // nothing speaks against it
	open                    // an entry with sequence number 0 is newer or older
	refuted                 // the lost table did not have it, or something hides it
)

// ask returns what the tables say of a lost table's value of a key with a sequence number. Ours says of a record
// whether it is known to be older than that value.
func (n *neighbours) ask(t *lostTable, key []byte, seq base.SeqNum, ours func(place) bool) (evidence, error) {
	says := silent
	if n.inputs == nil {
		n.inputs = make([]*mergeInput, len(n.pieces))
	}
	for i, p := range n.pieces {
		if !p.t.Contains(key) {
			continue
		}
		if n.inputs[i] == nil {
			in, err := openPiece(p)
			if err != nil {
				return says, err
			}
			n.inputs[i] = in
		}
		in := n.inputs[i]
		if in.r.Tombstones().Cover(key, base.MaxSeqNum) > seq {
			return refuted, nil
		}
		newer := t.level >= 0 && p.level >= 0 && t.isAfter(p) // the table's place
		for ok := in.it.SeekGE(base.SearchKey(key, base.MaxSeqNum)); ok; ok = in.it.Next() {
			k := in.it.Key()
			if !bytes.Equal(k.User, key) {
				break
			}
			switch {
			case k.Kind() == base.KindMerge: // it hides nothing, and may need the value
			case newer || k.SeqNum() >= seq:
				return refuted, nil
			case k.SeqNum() == 0 && !isOld(k, in.it.Value(), ours):
				says = open
			}
		}
		if err := in.it.Error(); err != nil {
			return says, err
		}
	}
	return says, nil
}

// isOld reports whether an entry with sequence number 0 is of an older write: its record says so.
func isOld(k base.InternalKey, value []byte, ours func(place) bool) bool {
	if !k.Kind().Separated() {
		return false
	}
	h, _, err := blob.HandleOf(k.Kind(), value)
	return err == nil && ours(place{h.File, h.Offset})
}

func (n *neighbours) close() error { return closeInputs(n.inputs) }
