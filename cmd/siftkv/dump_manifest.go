package main

import (
	"context"
	"strconv"

	"github.com/siftkv/siftkv/internal/cli"
	"github.com/siftkv/siftkv/internal/doctor/dump"
	"github.com/siftkv/siftkv/internal/keytext"
	"github.com/siftkv/siftkv/internal/manifest"
)

// dumpManifestCommand is the command line of siftkv dump-manifest.
type dumpManifestCommand struct {
	File cli.File `arg:"" help:"A manifest, such as MANIFEST-000007."`
}

// Run prints every version edit.
func (c *dumpManifestCommand) Run(ctx context.Context, p *program) error {
	end, err := dump.Manifest(string(c.File), func(offset int64, e *manifest.Edit) error {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		return p.printEdit(offset, e)
	})
	if err != nil {
		return err
	}
	return p.printEnd(end)
}

// An editItem is a version edit in JSON.
type editItem struct {
	StoreID  keytext.ID    `json:"store_id"`
	NextFile uint64        `json:"next_file"`
	LogNum   uint64        `json:"log_num"`
	LastSeq  uint64        `json:"last_seq"`
	Closed   uint64        `json:"closed_seq,omitempty"` // closed in good order, with writes up to this sequence number
	Deleted  []deletedItem `json:"deleted"`
	Added    []tableItem   `json:"added"`
}

// A deletedItem is a table that an edit takes away.
type deletedItem struct {
	Level int    `json:"level"`
	Num   uint64 `json:"num"`
}

// A tableItem is a table of an edit in JSON.
type tableItem struct {
	Level       int           `json:"level"`
	Run         uint64        `json:"run,omitempty"` // of the level's sorted runs
	Num         uint64        `json:"num"`
	ID          keytext.ID    `json:"id"`
	Bytes       int64         `json:"bytes"`
	Entries     uint64        `json:"entries"`
	SmallestSeq uint64        `json:"smallest_seq"`
	LargestSeq  uint64        `json:"largest_seq"`
	Smallest    keytext.Bytes `json:"smallest"`
	Largest     keytext.Bytes `json:"largest"` // null: no bound
	Exclusive   bool          `json:"largest_exclusive,omitempty"`
}

func describeEdit(e *manifest.Edit) *editItem {
	it := &editItem{
		StoreID: keytext.ID(e.StoreID), NextFile: e.NextFile, LogNum: e.LogNum, LastSeq: uint64(e.LastSeq),
		Closed:  uint64(e.Closed),
		Deleted: []deletedItem{}, Added: []tableItem{},
	}
	for _, d := range e.Deleted {
		it.Deleted = append(it.Deleted, deletedItem{d.Level, d.Num})
	}
	for _, a := range e.Added {
		t := &a.Table
		it.Added = append(it.Added, tableItem{
			a.Level, a.Run, t.Num, keytext.ID(t.ID), t.Size, t.Entries, uint64(t.SmallestSeq), uint64(t.LargestSeq),
			t.Smallest, t.Largest, t.LargestExclusive,
		})
	}
	return it
}

func (p *program) printEdit(offset int64, e *manifest.Edit) error {
	if p.JSON {
		return p.printJSON(item{Type: "edit", Offset: &offset, Data: describeEdit(e)}, false)
	}
	if err := p.printf("%d\tedit: store %016x, next file %d, log %d, last sequence number %d\n", offset, e.StoreID,
		e.NextFile, e.LogNum, e.LastSeq); err != nil {
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
		if err := p.printf("\t+ L%s %s\t%d bytes, %d entries, sequence numbers %d to %d, keys %s to %s\n", level,
			manifest.FileName(manifest.FileTable, t.Num),
			t.Size, t.Entries, t.SmallestSeq, t.LargestSeq, p.KeyFormat.String(t.Smallest), bound); err != nil {
			return err
		}
	}
	return nil
}
