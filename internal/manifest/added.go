package manifest

import (
	"github.com/siftkv/siftkv/internal/base"
)

// Some fields of an edit say more of a table that the edit adds: its ingest, its run, its droppable
// entries, and its tombstone clusters. Few tables have them.

// addedTables finds the tables that an edit adds by their numbers, while it is decoded.
type addedTables struct {
	edit      *Edit
	fileIndex map[uint64]int // of edit.Added[:known]; made on first use
	known     int
}

// find returns the added table with a number, or nil.
func (a *addedTables) find(num uint64) *AddedTable {
	if a.fileIndex == nil {
		a.fileIndex = map[uint64]int{}
	}
	for ; a.known < len(a.edit.Added); a.known++ {
		num := a.edit.Added[a.known].Table.Num
		if _, ok := a.fileIndex[num]; !ok {
			a.fileIndex[num] = a.known
		}
	}
	i, ok := a.fileIndex[num]
	if !ok {
		return nil
	}
	return &a.edit.Added[i]
}

// ingested sets the sequence number of a table that the edit adds, and reports whether that can be.
func (a *addedTables) ingested(num uint64, seq base.SeqNum) bool {
	at := a.find(num)
	if at == nil {
		return false
	}
	t := &at.Table
	t.Seq = seq
	return t.SmallestSeq == seq && t.LargestSeq == seq && seq != 0
}

// inRun sets the run of a table that the edit adds, in level 0 or not, and reports whether that can be.
func (a *addedTables) inRun(num, run uint64, level0 bool) bool {
	at := a.find(num)
	if at == nil || (at.Level == 0) != level0 || at.Run != 0 {
		return false
	}
	at.Run = run
	return run != 0
}

// wasteful reports whether the table has something that rewriting it would drop, now or at some time.
func (t *Table) wasteful() bool {
	return t.Overwritten > 0 || t.ExpiryOctiles[len(t.ExpiryOctiles)-1] > 0
}

func (t *Table) appendWaste(dst []byte) []byte {
	return t.ExpiryOctiles.Append(appendUvarints(dst, t.Num, t.Overwritten))
}

// waste sets the droppable entries of a table that the edit adds, and reports whether they are valid.
func (a *addedTables) waste(d *decoder) bool {
	at := a.find(d.Uvarint())
	if at == nil || at.Table.wasteful() {
		return false
	}
	t := &at.Table
	t.Overwritten = d.Uvarint()
	t.ExpiryOctiles = d.Octiles()
	return !d.Bad && t.wasteful()
}

// dense sets how many tombstones of a table that the edit adds are in clusters, and reports whether that is valid.
func (a *addedTables) dense(num, deletes uint64) bool {
	at := a.find(num)
	if at == nil || at.Table.DenseDeletes > 0 || deletes > at.Table.Deletes {
		return false
	}
	at.Table.DenseDeletes = deletes
	return deletes > 0
}
