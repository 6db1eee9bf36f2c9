package repair

import (
	"bytes"
	"cmp"
	"container/heap"
	"maps"
	"slices"

	"github.com/siftkv/siftkv/internal/base"
	"github.com/siftkv/siftkv/internal/blob"
)

// scanMemory is how much the readers of all blob files have in memory, in bytes.
const scanMemory = 64 << 20

// A foundRecord is a record of a blob file with a right key.
type foundRecord struct {
	file       *blobFile
	h          blob.Handle
	seq        base.SeqNum
	expiry     uint64
	referenced bool // by a table that is left
}

// eachKey calls visit with all records of the blob files, key by key in order, the newest first. Slices are valid for
// one call. A record that is in two blob files, since one is a copy, comes twice. For files without key order it has
// all keys in memory.
func (r *repairer) eachKey(files []*blobFile, visit func(key []byte, records []foundRecord) error) error {
	queue, err := r.firstRecords(files)
	if err != nil {
		return err
	}
	var key []byte
	var group []foundRecord
	for n := 0; len(queue) > 0; n++ {
		if n%4096 == 0 && r.ctx.Err() != nil {
			return r.ctx.Err()
		}
		c := queue[0]
		if len(group) > 0 && !bytes.Equal(key, c.key) {
			if err := visit(key, group); err != nil {
				return err
			}
			group = group[:0]
		}
		key, group = append(key[:0], c.key...), append(group, c.at)
		if ok, err := c.next(); err != nil {
			return err
		} else if ok {
			heap.Fix(&queue, 0)
		} else {
			heap.Pop(&queue)
		}
	}
	if len(group) > 0 {
		return visit(key, group)
	}
	return nil
}

// firstRecords returns cursors at the first records of the blob files that can be read and have any.
func (r *repairer) firstRecords(files []*blobFile) (queue recordQueue, err error) {
	refs, err := r.references()
	if err != nil {
		return nil, err
	}
	for _, b := range files {
		src, err := r.open(b)
		if err != nil {
			return nil, err
		}
		if src == nil {
			continue
		}
		s, err := blob.NewScanner(src)
		if r.s.IsDamage(err) {
			continue
		}
		if err != nil {
			return nil, err
		}
		s.ReadAhead(min(256<<10, scanMemory/len(files)))
		c := &recordCursor{r: r, file: b, s: s, refs: refs[b.num]}
		if !r.byKey(b) {
			if err := c.sort(); err != nil {
				return nil, err
			}
		}
		ok, err := c.next()
		if err != nil {
			return nil, err
		}
		if ok {
			queue = append(queue, c)
		}
	}
	heap.Init(&queue)
	return queue, nil
}

// references returns the offsets of the records that tables have handles of, by blob file, ascending: eight bytes for
// each.
func (r *repairer) references() (map[uint64][]int64, error) {
	refs := map[uint64][]int64{}
	for _, p := range r.pieces {
		if len(p.t.Blobs) == 0 {
			continue
		}
		err := eachHandle(p, func(_ base.InternalKey, h blob.Handle) error {
			refs[h.File] = append(refs[h.File], h.Offset)
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	for offsets := range maps.Values(refs) {
		slices.Sort(offsets)
	}
	return refs, nil
}

// byKey reports whether the records of an open blob file are in the order of keys, as its header says.
func (r *repairer) byKey(b *blobFile) bool {
	_, byCommit, err := blob.OpenUnfinished(onlyReader{b.file}, b.size, blob.ReaderOptions{Name: b.path})
	return err == nil && !byCommit
}

// A recordCursor goes through one blob file, past damage.
type recordCursor struct {
	r    *repairer
	file *blobFile
	s    *blob.Scanner
	refs []int64 // offsets of this record and later ones that tables have handles of
	key  []byte  // valid until the next move
	last []byte
	at   foundRecord

	sorted []keyedRecord // what is left of a file that is in no order; nil: it is read as it goes
}

type keyedRecord struct {
	key []byte
	at  foundRecord
}

// sort reads all of a file without key order.
func (c *recordCursor) sort() error {
	all := []keyedRecord{}
	for {
		ok, err := c.scan()
		if err != nil {
			return err
		}
		if !ok {
			break
		}
		all = append(all, keyedRecord{bytes.Clone(c.key), c.at})
	}
	slices.SortFunc(all, func(a, b keyedRecord) int {
		return cmp.Or(bytes.Compare(a.key, b.key), cmp.Compare(b.at.seq, a.at.seq))
	})
	c.sorted = all
	return nil
}

func (c *recordCursor) next() (ok bool, err error) {
	if c.sorted != nil {
		if len(c.sorted) == 0 {
			return false, nil
		}
		c.key, c.at, c.sorted = c.sorted[0].key, c.sorted[0].at, c.sorted[1:]
		return true, nil
	}
	for {
		c.last = append(c.last[:0], c.key...)
		if ok, err = c.scan(); !ok || bytes.Compare(c.last, c.key) <= 0 {
			return ok, err
		}
		c.key = bytes.Clone(c.last) // no writer has written this: keys ascend
	}
}

// scan moves to the next record of the file.
func (c *recordCursor) scan() (ok bool, err error) {
	ok = c.s.Next()
	if err := c.s.Err(); err != nil {
		if !c.r.s.IsDamage(err) {
			return false, err
		}
		ok = c.s.Skip()
		if err := c.s.Err(); err != nil && !c.r.s.IsDamage(err) {
			return false, err
		}
	}
	if !ok {
		return false, nil
	}
	rec := c.s.Record()
	c.key = rec.Key
	c.at = foundRecord{file: c.file, h: c.s.Handle(c.file.num), seq: rec.Seq, expiry: rec.Expiry}
	for len(c.refs) > 0 && c.refs[0] < c.at.h.Offset {
		c.refs = c.refs[1:]
	}
	c.at.referenced = len(c.refs) > 0 && c.refs[0] == c.at.h.Offset
	return true, nil
}

// A recordQueue has cursors by key and, of a key, by descending sequence number, then by descending number of the file:
// of records with sequence number 0, that of the newer file is newer.
type recordQueue []*recordCursor

func (q recordQueue) Len() int { return len(q) }
func (q recordQueue) Less(i, j int) bool {
	if c := bytes.Compare(q[i].key, q[j].key); c != 0 {
		return c < 0
	}
	if q[i].at.seq != q[j].at.seq {
		return q[i].at.seq > q[j].at.seq
	}
	return q[i].file.num > q[j].file.num
}
func (q recordQueue) Swap(i, j int) { q[i], q[j] = q[j], q[i] }
func (q *recordQueue) Push(c any)   { *q = append(*q, c.(*recordCursor)) }
func (q *recordQueue) Pop() any {
	old := *q
	c := old[len(old)-1]
	*q = old[:len(old)-1]
	return c
}
