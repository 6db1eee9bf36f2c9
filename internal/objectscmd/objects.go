// Package objectscmd is the command kvbench objects, for programs that have clients of object stores and no other
// stores to compare with.
package objectscmd

import (
	"context"
	"crypto/rand"
	"io"
	"time"

	"github.com/siftkv/siftkv/internal/bench"
	"github.com/siftkv/siftkv/internal/bench/objects"
	"github.com/siftkv/siftkv/internal/cli"
	"github.com/siftkv/siftkv/internal/cli/progress"
	"github.com/siftkv/siftkv/objstore"
)

// A Surrounding is what a program gives the command.
type Surrounding struct {
	Stdout   io.Writer
	Argv     []string // as it may be printed
	Progress *progress.Reporter

	// OpenS3 opens the object store of a URL; nil: the program has no client of S3.
	OpenS3 func(ctx context.Context, url string) (objstore.Store, error)
}

// filters are those that are measured by default.
const filters = "none;blocked:10;blocked:16;blocked:20;cuckoo:18"

// Command is the command line of kvbench objects.
type Command struct {
	Filter     []string      `default:"${objectfilters}" sep:"none" placeholder:"SPECS" help:"${objects_filter}"`
	Cache      []bench.Size  `default:"0,1MiB,64MiB" placeholder:"SIZES" help:"${objects_cache}"`
	Memory     bench.Size    `default:"4MiB" placeholder:"SIZE" help:"${objects_memory}"`
	Keys       int           `default:"300000" placeholder:"N" help:"Keys of a store (default ${default})."`
	Young      int           `default:"16" placeholder:"N" help:"${objects_young}"`
	TargetFile bench.Size    `default:"512KiB" placeholder:"SIZE" help:"Size of a sorted file (default ${default})."`
	Lookups    int           `default:"5000" placeholder:"N" help:"${objects_lookups}"`
	Delay      time.Duration `default:"10ms" placeholder:"TIME" help:"${objects_delay}"`
	GetPrice   float64       `default:"0.0004" placeholder:"DOLLARS" help:"Price of 1,000 GET (default ${default})."`
	PutPrice   float64       `default:"0.005" placeholder:"DOLLARS" help:"${objects_putprice}"`
	InMemory   bool          `help:"The object store is in memory, and not in a directory."`
	S3         string        `name:"s3" placeholder:"URL" help:"${objects_s3}"`

	RepsFlag `set:"repetitions=50"`
	DataFlags
	CompressionFlag
	DirFlag `set:"room=, about 300 MB for the defaults"`
	JSONFlag
}

// Run measures, prints the tables, and writes the JSON file if asked to.
func (c *Command) Run(ctx context.Context, s *Surrounding) error {
	caches := make([]int64, len(c.Cache))
	for i, size := range c.Cache {
		caches[i] = int64(size)
	}
	config := &objects.Config{
		Settings: objects.Settings{
			Filters: Specs(c.Filter), Caches: caches, Keys: c.Keys, KeySize: c.KeySize, ValueSize: c.ValueSize,
			TargetFile: int64(c.TargetFile), Compression: c.Compression, Young: c.Young, Lookups: c.Lookups,
			Repetitions: c.Reps, Memory: int64(c.Memory), Delay: c.Delay, GetPrice: c.GetPrice, PutPrice: c.PutPrice,
			Seed: c.Seed,
		},
		Dir: c.Dir, InMemory: c.InMemory, Argv: s.Argv, Progress: s.Progress,
	}
	if c.S3 != "" {
		if err := c.inBucket(ctx, s, config); err != nil {
			return err
		}
	}
	return Show(s.Stdout, objects.Text, c.JSON)(objects.Run(ctx, config))
}

// inBucket makes the object store an unused part of a bucket, which is empty afterwards.
func (c *Command) inBucket(ctx context.Context, s *Surrounding, config *objects.Config) error {
	url := cli.RedactURL(c.S3)
	switch {
	case c.InMemory:
		return bench.Usagef("--s3 and --in-memory: the object store is in one place")
	case cli.Scheme(c.S3) != "s3":
		return bench.Usagef("--s3 %s: want a URL such as s3://bucket/prefix", url)
	case s.OpenS3 == nil:
		return bench.Usagef("--s3 %s: this kvbench has no client of S3; that of "+
			"github.com/siftkv/siftkv/objstore/s3/cmd/kvbench has: "+
			"go install github.com/siftkv/siftkv/objstore/s3/cmd/kvbench@latest", url)
	}
	config.Origin = url
	config.Open = func() (objstore.Store, error) {
		bucket, err := s.OpenS3(ctx, c.S3)
		if err != nil {
			return nil, err
		}
		return part{objstore.Sub(bucket, "kvbench-"+rand.Text()), bucket}, nil
	}
	return nil
}

// A part of a bucket closes the bucket.
type part struct {
	objstore.Store
	bucket objstore.Store
}

// Close implements [objstore.Store].
func (p part) Close() error { return p.bucket.Close() }
