package manifest

import (
	"bytes"
	"encoding/binary"
	"errors"
	"slices"

	"github.com/siftkv/siftkv/internal/base"
	"github.com/siftkv/siftkv/internal/rangedel"
)

// NumLevels is the number of levels of a store: level 0, with files that overlap, and
// levels 1 to 6, each of one or more sorted runs.
const NumLevels = 7

// A Table describes a sorted file: the bounds of its keys, and what opening it needs.
type Table struct {
	Num      uint64 // its name is FileName(FileTable, Num)
	ID       uint64 // in every checksum of the file
	Size     int64  // bytes
	TailSize int64  // bytes of its tail

	// The file's keys, range tombstones included, are at least Smallest. They are at most Largest, or below it if
	// LargestExclusive is set; a nil Largest has no bound.
	Smallest         []byte
	Largest          []byte
	LargestExclusive bool

	SmallestSeq, LargestSeq base.SeqNum

	// Seq, if not zero, is the sequence number of every entry: the file was ingested
	// unchanged, and its own numbers are zero.
	Seq base.SeqNum

	Entries      uint64 // point entries
	Deletes      uint64 // of them, tombstones
	RangeDeletes uint64
	FilterBytes  uint64
	IndexBytes   uint64
	Merges       uint64 // of the point entries, merge operands
	Expiring     uint64 // of the point entries, values with an expiry
	LastExpiry   uint64 // the latest of these, in microseconds since 1970 UTC

	ExpiryOctiles base.Octiles // of these; zero: not known
	Overwritten   uint64       // point entries under a newer value or tombstone of their key
	DenseDeletes  uint64       // point tombstones in clusters

	Blobs []BlobRef // the blob files that its entries have values in, by ascending number

	Garbage Garbage // in blob files
}

// kinds reports whether the table has entries that version 1 of its format has not.
func (t *Table) kinds() bool { return t.Merges > 0 || t.Expiring > 0 }

// Features are kinds of entries that a store may hold in addition to values and
// tombstones. A program that does not know them must not open it.
type Features uint64

// The features. The values are on disk.
const (
	FeatureMerge           Features = 1 << iota // merge operands
	FeatureTTL                                  // values with an expiry
	FeatureSeparated                            // values in blob files
	FeatureSeparatedInLogs                      // logs with handles of such values
	FeatureSlots                                // logs and files that are kept for slots

	knownFeatures = FeatureMerge | FeatureTTL | FeatureSeparated | FeatureSeparatedInLogs | FeatureSlots
)

// Contains reports whether the bounds admit a user key.
func (t *Table) Contains(key []byte) bool {
	return bytes.Compare(t.Smallest, key) <= 0 && !t.Before(key)
}

// Before reports whether all of the table's keys are before key.
func (t *Table) Before(key []byte) bool {
	if t.Largest == nil {
		return false
	}
	c := bytes.Compare(t.Largest, key)
	return c < 0 || c == 0 && t.LargestExclusive
}

// Overlaps reports whether some key of [lo, hi) may be in the table; a nil hi has no bound.
func (t *Table) Overlaps(lo, hi []byte) bool {
	return rangedel.CompareEnds(t.Smallest, hi) < 0 && !t.Before(lo)
}

// UpperBound returns the smallest key that is after all of the table's keys; nil if there is none.
func (t *Table) UpperBound() []byte {
	if t.Largest == nil || t.LargestExclusive {
		return t.Largest
	}
	return append(slices.Clip(t.Largest), 0)
}

// An Edit is a change of the store. The zero value of a field changes nothing.
type Edit struct {
	StoreID  uint64      // a random number of the store; in a manifest's first edit
	NextFile uint64      // no file has this number or a larger one
	LogNum   uint64      // writes in WALs with smaller numbers are in tables
	LastSeq  base.SeqNum // the largest sequence number that is, or was, in tables
	Features Features    // kinds that logs and tables may hold; adds to those before
	Merger   string      // name of the merger of the store's operands
	Closed   base.SeqNum // the store was closed cleanly: its files have all writes up to here
	Restored uint64      // the backup that is what the store is, in the one edit of a restored store's manifest
	Deleted  []DeletedTable
	Added    []AddedTable

	AddedBlobs   []BlobFile
	DeletedBlobs []uint64 // numbers of blob files that no table refers to any more

	Slots Kept
}

// An AddedTable is a table that came to a level. The tables of a level with the same run are one sorted run: they share
// no keys. A run with a larger number is newer, and 0 is the oldest. In level 0 numbers say nothing about age, and a
// table with 0 is a run by itself.
type AddedTable struct {
	Level int
	Run   uint64
	Table Table
}

// A DeletedTable is a table that left a level.
type DeletedTable struct {
	Level int
	Num   uint64
}

// An edit on disk is a run of fields: tag uvarint, length uvarint, bytes.
//
//	1  store id            uvarint
//	2  next file number    uvarint
//	3  WAL number          uvarint
//	4  last sequence       uvarint
//	5  deleted table       level uvarint, number uvarint
//	6  added table         level, number, id, size, tail size, smallest
//	                       sequence, largest sequence, entries, deletes, range
//	                       deletes, filter bytes, index bytes: uvarints
//	                       upper uint8: 0 inclusive, 1 exclusive, 2 no bound
//	                       smallest: length uvarint, bytes
//	                       largest: length uvarint, bytes
//	7  features            uvarint: 1 merge operands, 2 values with an expiry, 4
//	                       values in blob files, 8 handles of them in logs, 16 slots
//	8  merger              its name
//	9  added table with    as 6, then uvarints: merge operands, values with an
//	   such entries        expiry, the latest expiry
//	10 ingested table      number of an added table above, sequence number of all
//	                       its entries: uvarints
//	11 sorted run          number of an added table above that is not of level 0,
//	                       number of its run, not 0: uvarints
//	12 closed              uvarint: the store was closed cleanly, and its
//	                       files have all writes up to this sequence number
//	13 droppable entries   number of an added table above, entries under a newer
//	                       value or tombstone of their key, octiles 1 to 7 of its
//	                       expiries: uvarints, the octiles as differences
//	14 tombstone clusters  number of an added table above, its point tombstones in
//	                       clusters, not 0: uvarints
//	15 run of level 0      as 11, of a table of level 0: the number of the run's
//	                       first table
//	16 restored            uvarint: the store was restored in an object store, and
//	                       is the backup of this id
//
//	20 added blob file     number, id, size, records, bytes of their values: uvarints
//	21 deleted blob file   number uvarint
//	22 references          number of an added table above, then of each blob file that it
//	                       refers to, by ascending number: number, records, bytes that
//	                       these take there: uvarints
//	23 garbage             number of an added table above, bytes in blob files that its entries
//	                       hide in older tables, about; of its own records there those under a
//	                       newer value or tombstone of their key, those with an expiry, the latest
//	                       expiry, octiles 1 to 7 of the expiries by bytes: uvarints, the octiles as
//	                       differences
//
//	30 history             id, the number of the last write that is not kept for slots: uvarints
//	31 kept log            number, last write, bytes, time, then of each blob file that it has
//	                       handles of its number: uvarints
//	32 kept ingest         its write, bytes, time, then of each of its files the number: uvarints
//	33 kept copy           as 31, of a copy of logs
//
// Fields 7 to 11, 13 to 16, 20 to 23 and 30 to 33 are written only if there are such entries and tables. Only then does
// a program that does not know them refuse the store. A field with another tag comes from a newer version of the
// format, and the store is refused: unlike a property, an edit cannot be skipped.
const (
	tagStoreID = iota + 1
	tagNextFile
	tagLogNum
	tagLastSeq
	tagDeleted
	tagAdded
	tagFeatures
	tagMerger
	tagAddedKinds
	tagIngested
	tagRun
	tagClosed
	tagWaste
	tagDense
	tagLevel0Run
	tagRestored
)

const (
	tagAddedBlob = iota + 20
	tagDeletedBlob
	tagBlobRefs
	tagGarbage
)

const (
	tagHistory = iota + 30
	tagKeptLog
	tagKeptIngest
	tagKeptCopy
)

const (
	upperInclusive = iota
	upperExclusive
	upperUnbounded
)

// ErrNewerFormat is matched when a newer version of the program wrote the store.
var ErrNewerFormat = base.ErrNewerFormat

var errEdit = errors.New("malformed version edit")

// Append appends the encoded edit to dst.
func (e *Edit) Append(dst []byte) []byte {
	field := func(tag uint64, body []byte) {
		dst = binary.AppendUvarint(dst, tag)
		dst = binary.AppendUvarint(dst, uint64(len(body)))
		dst = append(dst, body...)
	}
	number := func(tag, v uint64) {
		if v != 0 {
			field(tag, binary.AppendUvarint(nil, v))
		}
	}
	number(tagStoreID, e.StoreID)
	number(tagNextFile, e.NextFile)
	number(tagLogNum, e.LogNum)
	number(tagLastSeq, uint64(e.LastSeq))
	number(tagFeatures, uint64(e.Features))
	number(tagClosed, uint64(e.Closed))
	number(tagRestored, e.Restored)
	if e.Merger != "" {
		field(tagMerger, []byte(e.Merger))
	}
	for _, d := range e.Deleted {
		field(tagDeleted, appendUvarints(nil, uint64(d.Level), d.Num))
	}
	for i := range e.Added {
		tag := uint64(tagAdded)
		if e.Added[i].Table.kinds() {
			tag = tagAddedKinds
		}
		field(tag, e.Added[i].append(nil))
	}
	for i := range e.Added {
		if t := &e.Added[i].Table; t.Seq != 0 {
			field(tagIngested, appendUvarints(nil, t.Num, uint64(t.Seq)))
		}
	}
	for i := range e.Added {
		if a := &e.Added[i]; a.Run != 0 {
			tag := uint64(tagRun)
			if a.Level == 0 {
				tag = tagLevel0Run
			}
			field(tag, appendUvarints(nil, a.Table.Num, a.Run))
		}
	}
	for i := range e.Added {
		if t := &e.Added[i].Table; t.wasteful() {
			field(tagWaste, t.appendWaste(nil))
		}
	}
	for i := range e.Added {
		if t := &e.Added[i].Table; t.DenseDeletes > 0 {
			field(tagDense, appendUvarints(nil, t.Num, t.DenseDeletes))
		}
	}
	e.appendBlobs(field)
	e.Slots.append(field)
	return dst
}

func appendUvarints(dst []byte, vs ...uint64) []byte {
	for _, v := range vs {
		dst = binary.AppendUvarint(dst, v)
	}
	return dst
}

func (a *AddedTable) append(dst []byte) []byte {
	t := &a.Table
	dst = appendUvarints(dst, uint64(a.Level), t.Num, t.ID, uint64(t.Size), uint64(t.TailSize),
		uint64(t.SmallestSeq), uint64(t.LargestSeq), t.Entries, t.Deletes, t.RangeDeletes, t.FilterBytes, t.IndexBytes)
	switch {
	case t.Largest == nil:
		dst = append(dst, upperUnbounded)
	case t.LargestExclusive:
		dst = append(dst, upperExclusive)
	default:
		dst = append(dst, upperInclusive)
	}
	for _, k := range [][]byte{t.Smallest, t.Largest} {
		dst = binary.AppendUvarint(dst, uint64(len(k)))
		dst = append(dst, k...)
	}
	if t.kinds() {
		dst = appendUvarints(dst, t.Merges, t.Expiring, t.LastExpiry)
	}
	return dst
}
