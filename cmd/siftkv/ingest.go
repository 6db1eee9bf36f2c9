package main

import (
	"context"

	"github.com/siftkv/siftkv/internal/cli"
	"github.com/siftkv/siftkv/internal/keytext"
	"github.com/siftkv/siftkv/kv"
)

// ingestCommand is the command line of siftkv ingest.
type ingestCommand struct {
	Dir
	Files      cli.Files `arg:"" help:"Sorted files of sstable.Writer, in any order; their keys must not overlap."`
	Copy       bool      `help:"Copy the files. By default they are linked where possible, and must not be written to again."`
	SkipVerify bool      `help:"Take on trust that the files are whole: read no data blocks."`
	Create     bool      `help:"Create the store if it is not there."`
}

// Run takes in all of the files, or none.
func (c *ingestCommand) Run(ctx context.Context, p *program) error {
	var files, bytes uint64
	ingest := func(db *kv.DB) error {
		err := db.IngestContext(ctx, c.Files, &kv.IngestOptions{Copy: c.Copy, SkipVerify: c.SkipVerify})
		m := db.Metrics()
		files, bytes = m.IngestedFiles, m.IngestedBytes
		return err
	}
	open := c.write
	if c.Create {
		open = c.with
	}
	if err := open(nil, ingest); err != nil {
		return err
	}
	if p.JSON {
		return p.printJSON(map[string]any{"ingested": names(c.Files), "files": files, "bytes": bytes}, false)
	}
	return p.printf("%d files, %d bytes\n", files, bytes)
}

func names(files []string) []keytext.Name {
	var all []keytext.Name
	for _, f := range files {
		all = append(all, keytext.Name(f))
	}
	return all
}
