package repair

import (
	"bytes"
	"slices"

	"github.com/siftkv/siftkv/internal/base"
)

// What a key with a lost value shows afterwards.
const (
	// ShowsNothing: the key is not there. A tombstone hides what it had before.
	ShowsNothing = "nothing"
	// ShowsOperands: merge operands that are newer than the value, without it.
	ShowsOperands = "merge operands alone"
	// ShowsNewer: what it did before. The value was an old one, which something newer hides.
	ShowsNewer = "what is newer"
	// ShowsOther: a value of the key from another table. It is the lost one, or an older one: neither has a number.
	ShowsOther = "what an older table has of it"
)

// A newerVersions asks the tables for versions of the keys of one of them, in the order of keys.
type newerVersions struct {
	of   *piece
	all  []*piece
	over []*mergeInput // nil: not open yet
	open bool
}

// shows returns what a reader sees of a key if there is a tombstone in the place of k.
func (n *newerVersions) shows(k base.InternalKey) (string, error) {
	if err := n.begin(); err != nil {
		return "", err
	}
	shows := ShowsNothing
	for _, in := range n.over {
		if in.r.Tombstones().Cover(k.User, base.MaxSeqNum) > k.SeqNum() {
			return ShowsNewer, nil
		}
		for ok := in.it.SeekGE(base.SearchKey(k.User, base.MaxSeqNum)); ok; ok = in.it.Next() {
			at := in.it.Key()
			if !bytes.Equal(at.User, k.User) || at.SeqNum() <= k.SeqNum() {
				break
			}
			if at.Kind() != base.KindMerge {
				return ShowsNewer, nil
			}
			shows = ShowsOperands
		}
		if err := in.it.Error(); err != nil {
			return "", err
		}
	}
	return shows, nil
}

// same shows accept what other tables have of the write k, the newest table first, until it returns true. Older says
// that the table is older than that of k. Slices are valid for one call.
func (n *newerVersions) same(k base.InternalKey, accept func(k base.InternalKey, value []byte, older bool) (bool,
	error)) error {
	if err := n.begin(); err != nil {
		return err
	}
	for _, in := range n.over {
		if in.num == n.of.t.Num {
			continue
		}
		if !in.it.SeekGE(base.SearchKey(k.User, k.SeqNum())) {
			if err := in.it.Error(); err != nil {
				return err
			}
			continue
		}
		if at := in.it.Key(); bytes.Equal(at.User, k.User) && at.SeqNum() == k.SeqNum() {
			if done, err := accept(at, in.it.Value(), in.age < n.of.age()); done || err != nil {
				return err
			}
		}
	}
	return nil
}

// begin opens the tables that may have something newer, the own among them.
func (n *newerVersions) begin() error {
	if n.open {
		return nil
	}
	n.open = true
	for _, p := range n.all {
		if p.t.LargestSeq < n.of.t.SmallestSeq || p != n.of && !overlap(&p.t, &n.of.t) {
			continue
		}
		in, err := openPiece(p)
		if err != nil {
			return err
		}
		n.over = append(n.over, in)
	}
	slices.SortFunc(n.over, byAge)
	return nil
}

func (n *newerVersions) close() error { return closeInputs(n.over) }
