package main

import (
	"fmt"

	"github.com/siftkv/siftkv/internal/doctor/dump"
)

// An item is a line of a dump in JSON. Every line has a type: entry, edit,
// properties, damage or end.
type item struct {
	Type   string  `json:"type"`
	Offset *int64  `json:"offset,omitempty"`
	Seq    *uint64 `json:"seq,omitempty"`
	Kind   string  `json:"kind,omitempty"`
	Key    any     `json:"key,omitempty"`
	Value  any     `json:"value,omitempty"`
	End    any     `json:"end,omitempty"` // of a range delete; absent: no bound
	What   string  `json:"what,omitempty"`
	Data   any     `json:"data,omitempty"`
}

// printEntry prints one version or tombstone.
func (p *program) printEntry(offset *int64, e *dump.Entry) error {
	if p.JSON {
		it := item{Type: "entry", Offset: offset, Seq: &e.Seq, Kind: e.Kind, Key: p.KeyFormat.JSON(e.Key)}
		switch {
		case !e.HasValue():
		case e.Kind == "range-delete":
			it.End = p.KeyFormat.JSON(e.Value)
		default:
			it.Value = p.KeyFormat.JSON(e.Value)
		}
		return p.printJSON(it, false)
	}
	if offset != nil {
		if err := p.printf("%d\t", *offset); err != nil {
			return err
		}
	}
	line := fmt.Sprintf("%d\t%s\t%s", e.Seq, e.Kind, p.KeyFormat.String(e.Key))
	if e.HasValue() {
		line += "\t" + p.KeyFormat.String(e.Value)
	}
	return p.printf("%s\n", line)
}

// printFaults prints what is damaged, and returns an error for the exit status if
// something is.
func (p *program) printFaults(faults []error) error {
	for _, f := range faults {
		var err error
		if p.JSON {
			err = p.printJSON(item{Type: "damage", What: f.Error()}, false)
		} else {
			err = p.printf("# damage: %v\n", f)
		}
		if err != nil {
			return err
		}
	}
	if len(faults) == 0 {
		return nil
	}
	return fmt.Errorf("%w: %d places; what checks out was printed", errDamage, len(faults))
}

// printEnd prints how a log ends.
func (p *program) printEnd(e *dump.End) error {
	var err error
	if p.JSON {
		err = p.printJSON(item{Type: "end",
			Data: map[string]any{"records": e.Records, "bytes": e.Bytes, "skipped": e.Skipped, "closed": e.Closed}},
			false)
	} else {
		end := "closed"
		if !e.Closed {
			end = "not closed"
		}
		err = p.printf("# %d records in %d bytes, %d bytes skipped, %s\n", e.Records, e.Bytes, e.Skipped, end)
	}
	if err != nil {
		return err
	}
	return p.printFaults(e.Faults)
}
