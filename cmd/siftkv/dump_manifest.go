package main

import (
	"strconv"

	"github.com/siftkv/siftkv/internal/doctor/dump"
	"github.com/siftkv/siftkv/internal/doctor/keytext"
	"github.com/siftkv/siftkv/internal/manifest"
)

// dumpManifestCommand is the command line of siftkv dump-manifest.
type dumpManifestCommand struct {
	File string `arg:"" help:"A manifest, such as MANIFEST-000007."`
}

// Run prints every version edit.
func (c *dumpManifestCommand) Run(p *program) error {
	end, err := dump.Manifest(c.File, p.printEdit)
	if err != nil {
		return err
	}
	return p.printEnd(end)
}

// A tableItem is a table of an edit in JSON.
type tableItem struct {
	Level       int           `json:"level"`
	Run         uint64        `json:"run,omitempty"` // of the level's sorted runs
	Num         uint64        `json:"num"`
	ID          uint64        `json:"id"`
	Bytes       int64         `json:"bytes"`
	Entries     uint64        `json:"entries"`
	SmallestSeq uint64        `json:"smallest_seq"`
	LargestSeq  uint64        `json:"largest_seq"`
	Smallest    keytext.Bytes `json:"smallest"`
	Largest     keytext.Bytes `json:"largest"` // null: no bound
	Exclusive   bool          `json:"largest_exclusive,omitempty"`
}

func (p *program) printEdit(offset int64, e *manifest.Edit) error {
	if p.JSON {
		data := map[string]any{"store_id": e.StoreID, "next_file": e.NextFile, "log_num": e.LogNum, "last_seq": e.LastSeq, "deleted": e.Deleted}
		if e.Closed != 0 {
			data["closed"] = e.Closed
		}
		added := []tableItem{}
		for _, a := range e.Added {
			t := &a.Table
			added = append(added, tableItem{a.Level, a.Run, t.Num, t.ID, t.Size, t.Entries, uint64(t.SmallestSeq), uint64(t.LargestSeq), t.Smallest, t.Largest, t.LargestExclusive})
		}
		data["added"] = added
		return p.printJSON(item{Type: "edit", Offset: &offset, Data: data}, false)
	}
	if err := p.printf("%d\tedit: store %016x, next file %d, log %d, last sequence number %d\n", offset, e.StoreID, e.NextFile, e.LogNum, e.LastSeq); err != nil {
		return err
	}
	if e.Closed != 0 {
		if err := p.printf("\tclosed in good order, with writes up to sequence number %d\n", e.Closed); err != nil {
			return err
		}
	}
	for _, d := range e.Deleted {
		if err := p.printf("\t- L%d %s\n", d.Level, manifest.FileName(manifest.FileTable, d.Num)); err != nil {
			return err
		}
	}
	for _, a := range e.Added {
		t := &a.Table
		bound := p.bound(t.Largest, "no bound")
		if t.LargestExclusive {
			bound += " (excluded)"
		}
		level := strconv.Itoa(a.Level)
		if a.Run != 0 {
			level += " run " + strconv.FormatUint(a.Run, 10)
		}
		if err := p.printf("\t+ L%s %s\t%d bytes, %d entries, sequence numbers %d to %d, keys %s to %s\n", level, manifest.FileName(manifest.FileTable, t.Num),
			t.Size, t.Entries, t.SmallestSeq, t.LargestSeq, p.KeyFormat.String(t.Smallest), bound); err != nil {
			return err
		}
	}
	return nil
}
