package kv

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/siftkv/siftkv/internal/base"
	"github.com/siftkv/siftkv/internal/manifest"
	"github.com/siftkv/siftkv/internal/memtable"
	"github.com/siftkv/siftkv/internal/rangedel"
)

// A batch in memory and in the WAL is a header and its entries.
//
//	seq    uint64  sequence number of the first entry; the others count up
//	count  uint32  number of entries
//	entries, each:
//	  kind   uint8   0 delete, 1 set, 2 range delete, 3 merge, 4 set with expiry
//	  key    length uvarint, bytes
//	  value  length uvarint, bytes; not for a delete. A range delete's value is
//	         its end: 0x00, or 0x01 and the key. A merge's value is the operand;
//	         that of a set with expiry begins with the expiry, a uint64
const batchHeaderSize = 8 + 4

// tombstoneSize is what a range tombstone counts beside its bytes, for
// MaxBatchSize.
const tombstoneSize = 64

// A Batch collects writes that take effect together: a reader sees all of them
// or none, and so does recovery after a crash. Later writes of a batch win over
// earlier ones. A batch copies the keys and values it is given. It is not safe
// for concurrent use.
//
// An error of Set and its kin is returned by Commit as well, so that it need not be
// checked at every call.
type Batch struct {
	db        *DB
	data      []byte
	count     uint32
	arena     int // the most that the points take in a memtable, in bytes
	tombs     int // range tombstones
	tombBytes int // the most that these take
	features  manifest.Features
	err       error
}

// NewBatch returns an empty batch.
func (d *DB) NewBatch() *Batch { return &Batch{db: d} }

// Len returns the number of writes in the batch.
func (b *Batch) Len() int { return int(b.count) }

// Empty reports whether there are none.
func (b *Batch) Empty() bool { return b.count == 0 }

// Reset empties the batch for reuse; it keeps its memory.
func (b *Batch) Reset() {
	*b = Batch{db: b.db, data: b.data[:0]}
}

// Set stores value under key.
func (b *Batch) Set(key, value []byte) error {
	if err := errors.Join(checkKey(key), checkValue(value)); err != nil {
		return b.fail(err)
	}
	b.arena += memtable.EntrySize(len(key), len(value))
	return b.add(base.KindSet, key, value)
}

// Delete removes key. A key that is not there is no error.
func (b *Batch) Delete(key []byte) error {
	if err := checkKey(key); err != nil {
		return b.fail(err)
	}
	b.arena += memtable.EntrySize(len(key), 0)
	return b.add(base.KindDelete, key, nil)
}

// DeleteRange removes all keys of [lo, hi); a nil lo or hi has no bound. It costs
// one entry, however many keys there are.
func (b *Batch) DeleteRange(lo, hi []byte) error {
	if err := errors.Join(checkKey(lo), checkKey(hi)); err != nil {
		return b.fail(err)
	}
	if (rangedel.Tombstone{Start: lo, End: hi}).Empty() {
		return b.err
	}
	b.tombs++
	b.tombBytes += tombstoneSize + len(lo) + len(hi)
	return b.add(base.KindRangeDelete, lo, rangedel.AppendEnd(nil, hi))
}

// Merge combines operand with the value of key, as DB.Merge does.
func (b *Batch) Merge(key, operand []byte) error {
	if b.db.opts.ReadOnly {
		return b.fail(ErrReadOnly)
	}
	if b.db.merger == nil {
		return b.fail(fmt.Errorf("%w: Merge needs Options.Merger", ErrNoMerger))
	}
	if err := errors.Join(checkKey(key), checkValue(operand)); err != nil {
		return b.fail(err)
	}
	b.arena += memtable.EntrySize(len(key), len(operand))
	b.features |= manifest.FeatureMerge
	return b.add(base.KindMerge, key, operand)
}

// SetTTL stores value under key until ttl has passed, as DB.SetTTL does. The time
// counts from this call, not from Commit.
func (b *Batch) SetTTL(key, value []byte, ttl time.Duration) error {
	expiry, err := b.db.expiryOf(ttl)
	if err = errors.Join(err, checkKey(key), checkValue(value)); err != nil {
		return b.fail(err)
	}
	b.arena += memtable.EntrySize(len(key), base.ExpirySize+len(value))
	b.features |= manifest.FeatureTTL
	return b.add(base.KindSetTTL, key, base.AppendExpiry(nil, expiry), value...)
}

func (b *Batch) fail(err error) error {
	if b.err == nil {
		b.err = err
	}
	return err
}

// add appends an entry whose value is value and more.
func (b *Batch) add(kind base.Kind, key, value []byte, more ...byte) error {
	if size := b.arena + b.tombBytes; size > MaxBatchSize {
		return b.fail(fmt.Errorf("%w: with %d writes the batch takes %d bytes, the limit is %d", ErrTooLarge,
			b.count+1, size, MaxBatchSize))
	}
	if len(b.data) == 0 {
		b.data = slices.Grow(b.data, batchHeaderSize+16+len(key)+len(value))[:batchHeaderSize]
	}
	b.data = append(b.data, byte(kind))
	b.data = binary.AppendUvarint(b.data, uint64(len(key)))
	b.data = append(b.data, key...)
	if kind != base.KindDelete {
		b.data = binary.AppendUvarint(b.data, uint64(len(value)+len(more)))
		b.data = append(append(b.data, value...), more...)
	}
	b.count++
	return b.err
}

// Commit writes the batch. The batch may be used again after Reset.
func (b *Batch) Commit(o *WriteOptions) error { return b.CommitContext(context.Background(), o) }

// seal writes the header: from now on the data is a WAL record.
func (b *Batch) seal(seq base.SeqNum) []byte {
	binary.LittleEndian.PutUint64(b.data, uint64(seq))
	binary.LittleEndian.PutUint32(b.data[8:], b.count)
	return b.data
}

var errBatch = errors.New("malformed batch")

// A batchReader takes the entries of a batch in order.
type batchReader struct {
	data []byte
	seq  base.SeqNum // of the next entry
	left uint32
}

// A batchEntry is one write. Its slices alias the batch.
type batchEntry struct {
	key   base.InternalKey
	value []byte // of a range delete: its encoded end
}

// readBatch starts to read a record.
func readBatch(record []byte) (batchReader, error) {
	if len(record) < batchHeaderSize {
		return batchReader{}, errBatch
	}
	r := batchReader{
		seq:  base.SeqNum(binary.LittleEndian.Uint64(record)),
		left: binary.LittleEndian.Uint32(record[8:]),
		data: record[batchHeaderSize:],
	}
	// Each entry has two bytes at the least, so the count is bounded by the data.
	if r.seq > base.MaxSeqNum-base.SeqNum(r.left) || uint64(r.left)*2 > uint64(len(r.data)) {
		return batchReader{}, errBatch
	}
	return r, nil
}

// next returns the next entry; ok is false at the end.
func (r *batchReader) next() (e batchEntry, ok bool, err error) {
	if r.left == 0 {
		if len(r.data) > 0 {
			err = errBatch
		}
		return e, false, err
	}
	if len(r.data) == 0 {
		return e, false, errBatch
	}
	kind := base.Kind(r.data[0])
	r.data = r.data[1:]
	user, ok := r.bytes()
	switch kind {
	case base.KindDelete:
	case base.KindSet, base.KindRangeDelete, base.KindMerge, base.KindSetTTL:
		if ok {
			e.value, ok = r.bytes()
		}
		ok = ok && (kind != base.KindSetTTL || len(e.value) >= base.ExpirySize)
	default:
		return e, false, fmt.Errorf("%w: %w: an entry is of %s", errBatch, ErrNewerFormat, kind)
	}
	if !ok {
		return e, false, errBatch
	}
	e.key = base.MakeKey(user, r.seq, kind)
	r.seq++
	r.left--
	return e, true, nil
}

func (r *batchReader) bytes() ([]byte, bool) {
	n, w := binary.Uvarint(r.data)
	if w <= 0 || n > uint64(len(r.data)-w) {
		return nil, false
	}
	b := r.data[w : w+int(n) : w+int(n)]
	r.data = r.data[w+int(n):]
	return b, true
}

// arenaSize returns the most that a record's points take in a memtable.
func arenaSize(record []byte) (int, error) {
	size, _, err := measure(record)
	return size, err
}

// measure returns the most that a record's points take in a memtable, and of which
// features it makes use.
func measure(record []byte) (size int, used manifest.Features, err error) {
	r, err := readBatch(record)
	if err != nil {
		return 0, 0, err
	}
	for {
		e, ok, err := r.next()
		if err != nil || !ok {
			return size, used, err
		}
		switch e.key.Kind() {
		case base.KindRangeDelete:
			continue
		case base.KindMerge:
			used |= manifest.FeatureMerge
		case base.KindSetTTL:
			used |= manifest.FeatureTTL
		}
		size += memtable.EntrySize(len(e.key.User), len(e.value))
	}
}
