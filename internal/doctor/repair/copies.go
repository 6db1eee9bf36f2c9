package repair

import (
	"bytes"
	"encoding/binary"

	"github.com/siftkv/siftkv/filterpolicy"
	"github.com/siftkv/siftkv/internal/base"
	"github.com/siftkv/siftkv/internal/blob"
)

// A collection copies records to other blob files, and tables of before and after may both be there if no manifest
// tells which count. A record keeps its sequence number when it is copied: a value that is lost in one file is looked
// for in the others.

// maxSought is for how many values copies are looked for, at 24 bytes each; others count as lost.
const maxSought = 1 << 20

// A recordCopy is where a record may be that is wanted.
type recordCopy struct {
	file *blobFile
	h    blob.Handle
}

func writeSum(key []byte, seq base.SeqNum) uint64 {
	return filterpolicy.Hash(binary.LittleEndian.AppendUint64(bytes.Clone(key), uint64(seq)))
}

// findCopies looks for copies of the values that tables have lost.
func (r *repairer) findCopies(work []*piece) error {
	if r.s.Trusted() || len(work) == 0 {
		return nil // the manifest lists no two files with the same record
	}
	sought := map[uint64]bool{}
	for _, p := range work {
		err := eachHandle(p, func(k base.InternalKey, h blob.Handle) error {
			b := r.blob(h.File)
			if b.whole || k.SeqNum() == 0 || len(sought) == maxSought {
				return nil
			}
			src, err := r.readable(b, k.User, h)
			if err == nil && src == nil {
				sought[writeSum(k.User, k.SeqNum())] = true
			}
			return err
		})
		if err != nil {
			return err
		}
	}
	if len(sought) == 0 {
		return nil
	}
	r.copies = map[uint64]recordCopy{}
	return r.eachKey(r.filesWithRecords(), func(key []byte, records []foundRecord) error {
		for i := range records {
			rec := &records[i]
			sum := writeSum(key, rec.seq)
			if old, ok := r.copies[sum]; sought[sum] && (!ok || rec.file.whole && !old.file.whole) {
				r.copies[sum] = recordCopy{rec.file, rec.h}
			}
		}
		return nil
	})
}

// copyOf returns a copy of a value that is lost, and its reader if the file it is in is not whole; nil: there is none.
func (r *repairer) copyOf(k base.InternalKey) (*recordCopy, *blob.Reader, error) {
	c, ok := r.copies[writeSum(k.User, k.SeqNum())]
	if !ok || k.SeqNum() == 0 {
		return nil, nil, nil
	}
	src, err := r.readable(c.file, k.User, c.h)
	if src == nil || err != nil {
		return nil, nil, err
	}
	s, err := src.OpenStream(k.User, c.h)
	if err != nil || s.Record().Seq != k.SeqNum() {
		return nil, nil, err
	}
	return &c, src, nil
}
