package repair

import (
	"bytes"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/siftkv/siftkv/internal/keyformat"
)

// A LostValue is a value of a blob file that cannot be read any more.
type LostValue struct {
	File   string          `json:"file,omitempty"` // the blob file; not in a list of one's
	Key    keyformat.Bytes `json:"key"`
	Seq    uint64          `json:"seq"`    // of the write, or 0
	Bytes  int64           `json:"bytes"`  // the length that it had
	Offset int64           `json:"offset"` // of its record in the blob file
	Shows  string          `json:"shows"`  // what the key shows now
}

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

func (r *repairer) loseValue(b *blobFile, v LostValue) error {
	if r.o.LostValue != nil {
		told := v
		told.File = b.name()
		if err := r.o.LostValue(told); err != nil {
			return err
		}
	}
	of := &b.lost
	if v.Shows == ShowsOther {
		of = &b.replaced
	}
	if *of == nil {
		*of = &lostValues{}
	}
	l := *of
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
	hidden := uint64(0)
	for _, num := range slices.Sorted(maps.Keys(r.blobs)) {
		b := r.blobs[num]
		if b.lost != nil {
			hidden += b.lost.hidden
			what := "values that cannot be read"
			if b.found == nil {
				what = "values of a blob file that is missing"
			}
			r.loseListed(b.lost, Loss{File: b.name(), What: what})
		}
		if b.replaced != nil {
			r.loseListed(b.replaced, Loss{File: b.name(), Possible: true, What: "values of writes without a number: " +
				"what an older table has of the keys is in their place"})
		}
	}
	if hidden > 0 {
		r.report.note("%d values were lost that no read could see any more: their keys have newer versions", hidden)
	}
}

func (r *repairer) loseListed(l *lostValues, loss Loss) {
	if l.seen == 0 {
		return
	}
	loss.Writes, loss.Ranges, loss.Values, loss.Unlisted = &l.seen, []Range{}, l.listed, l.unlisted
	if loss.Unlisted > 0 {
		loss.Ranges = append(loss.Ranges, l.rest)
	}
	r.report.lose(loss)
}

func (l *Loss) writeValues(b *strings.Builder) {
	for i := range l.Values {
		fmt.Fprintf(b, "\n    %s", &l.Values[i])
	}
	if l.Unlisted > 0 {
		fmt.Fprintf(b, "\n    and %d values more:", l.Unlisted)
	}
}
