package repair

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/siftkv/siftkv/internal/keytext"
)

// A LostValue is a value of a blob file that cannot be read any more.
type LostValue struct {
	File   string        `json:"file,omitempty"` // the blob file; not in a list of one's
	Key    keytext.Bytes `json:"key"`
	Seq    uint64        `json:"seq"`    // of the write, or 0
	Bytes  int64         `json:"bytes"`  // the length that it had
	Offset int64         `json:"offset"` // of its record in the blob file
	Shows  string        `json:"shows"`  // what the key shows now
}

// String is one line.
func (v *LostValue) String() string {
	s := fmt.Sprintf("key %s: %d bytes at offset %d; it shows %s", v.Key, v.Bytes, v.Offset, v.Shows)
	if v.Shows == ShowsNothing {
		s += ", and nothing older"
	}
	return s
}

// A report lists lost values up to these bounds, of all blob files together; it counts the others, and has
// the range of their keys. Options.LostValue is told all.
const (
	maxListed      = 10_000
	maxListedBytes = 4 << 20 // of keys
)

// lostValues are those of one blob file.
type lostValues struct {
	listed   []LostValue
	seen     uint64 // that readers saw
	hidden   uint64 // that something newer hides
	unlisted uint64 // of those that were seen
	rest     Range  // of the keys of these
}

// loseValue notes a value that is lost.
func (r *repairer) loseValue(b *blobFile, v LostValue) error {
	if r.o.LostValue != nil {
		told := v
		told.File = b.name()
		if err := r.o.LostValue(told); err != nil {
			return err
		}
	}
	if b.lost == nil {
		b.lost = &lostValues{}
	}
	l := b.lost
	if v.Shows == ShowsNewer {
		l.hidden++
		return nil
	}
	l.seen++
	if r.listed < maxListed && r.listedBytes+len(v.Key) <= maxListedBytes {
		r.listed++
		r.listedBytes += len(v.Key)
		l.listed = append(l.listed, v)
		return nil
	}
	if l.unlisted++; l.unlisted == 1 {
		l.rest = Range{Lower: v.Key, Upper: v.Key}
		return nil
	}
	if bytes.Compare(v.Key, l.rest.Lower) < 0 {
		l.rest.Lower = v.Key
	}
	if bytes.Compare(v.Key, l.rest.Upper) > 0 {
		l.rest.Upper = v.Key
	}
	return nil
}

// loseValues reports what was lost with each blob file.
func (r *repairer) loseValues() {
	var files []*blobFile
	hidden := uint64(0)
	for _, b := range r.blobs {
		if b.lost != nil {
			files = append(files, b)
			hidden += b.lost.hidden
		}
	}
	slices.SortFunc(files, func(a, b *blobFile) int { return cmp.Compare(a.num, b.num) })
	for _, b := range files {
		if b.lost.seen == 0 {
			continue
		}
		loss := Loss{File: b.name(), What: "values that cannot be read", Writes: &b.lost.seen, Ranges: []Range{},
			Values: b.lost.listed, Unlisted: b.lost.unlisted}
		if b.found == nil {
			loss.What = "values of a blob file that is missing"
		}
		if loss.Unlisted > 0 {
			loss.Ranges = append(loss.Ranges, b.lost.rest)
		}
		r.report.lose(loss)
	}
	if hidden > 0 {
		r.report.note("%d values were lost that nobody could see any more: their keys have newer versions", hidden)
	}
}

// writeValues writes the values of a loss, a line each.
func (l *Loss) writeValues(b *strings.Builder) {
	for i := range l.Values {
		fmt.Fprintf(b, "\n    %s", &l.Values[i])
	}
	if l.Unlisted > 0 {
		fmt.Fprintf(b, "\n    and %d values more:", l.Unlisted)
	}
}
