package main

import (
	"context"

	"github.com/siftkv/siftkv/kv"
)

// compactCommand is the command line of siftkv compact.
type compactCommand struct {
	Dir
	Lower string `placeholder:"KEY" help:"First key of the range."`
	Upper string `placeholder:"KEY" help:"Last key of the range."`
	TableFlags
}

// Run compacts and says what the store takes before and after.
func (c *compactCommand) Run(ctx context.Context, p *program) error {
	lower, upper, err := p.parseRange(c.Lower, c.Upper)
	if err != nil {
		return err
	}
	o, err := c.options()
	if err != nil {
		return err
	}
	return c.write(o, func(db *kv.DB) error {
		filesBefore, bytesBefore := size(db)
		if err := db.CompactContext(ctx, lower, upper); err != nil {
			return err
		}
		files, bytes := size(db)
		if p.JSON {
			return p.printJSON(map[string]int64{
				"files_before": int64(filesBefore), "bytes_before": bytesBefore, "files": int64(files), "bytes": bytes,
			}, false)
		}
		return p.printf("%d files, %d bytes; before: %d files, %d bytes\n", files, bytes, filesBefore, bytesBefore)
	})
}

func size(db *kv.DB) (files int, bytes int64) {
	for _, l := range db.Metrics().Levels {
		files += l.Files
		bytes += l.Bytes
	}
	return files, bytes
}
