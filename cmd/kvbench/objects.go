package main

import (
	"context"
	"crypto/rand"
	"time"

	"github.com/siftkv/siftkv/cmd/kvbench/internal/bench"
	"github.com/siftkv/siftkv/cmd/kvbench/internal/objects"
	"github.com/siftkv/siftkv/internal/cli"
	"github.com/siftkv/siftkv/objstore"
)

// objectFilters are those that are measured by default.
const objectFilters = "none;blocked:10;blocked:16;blocked:20;cuckoo:18"

// openS3 opens the object store of a URL. It is nil in a program without a client of S3.
var openS3 func(ctx context.Context, url string) (objstore.Store, error)

// objectsCommand is the command line of kvbench objects.
type objectsCommand struct {
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

	repsFlag `set:"repetitions=50"`
	dataFlags
	compressionFlag
	dirFlag `set:"room=, about 300 MB for the defaults"`
	rowsFlags
}

// Run measures, prints the tables, and writes the JSON file if asked to.
func (c *objectsCommand) Run(ctx context.Context, p *program) error {
	caches := make([]int64, len(c.Cache))
	for i, size := range c.Cache {
		caches[i] = int64(size)
	}
	config := &objects.Config{
		Settings: objects.Settings{
			Filters: specs(c.Filter), Caches: caches, Keys: c.Keys, KeySize: c.KeySize, ValueSize: c.ValueSize,
			TargetFile: int64(c.TargetFile), Compression: c.Compression, Young: c.Young, Lookups: c.Lookups,
			Repetitions: c.Reps, Memory: int64(c.Memory), Delay: c.Delay, GetPrice: c.GetPrice, PutPrice: c.PutPrice,
			Seed: c.Seed,
		},
		Dir: c.Dir, InMemory: c.InMemory, Argv: p.argv, Progress: p.progress,
	}
	if c.S3 != "" {
		if err := c.inBucket(ctx, config); err != nil {
			return err
		}
	}
	return c.show(p)(objects.Run(ctx, config))
}

// inBucket makes the object store an unused part of a bucket, which is empty afterwards.
func (c *objectsCommand) inBucket(ctx context.Context, config *objects.Config) error {
	url := cli.RedactURL(c.S3)
	switch {
	case c.InMemory:
		return bench.Usagef("--s3 and --in-memory: the object store is in one place")
	case cli.Scheme(c.S3) != "s3":
		return bench.Usagef("--s3 %s: want a URL such as s3://bucket/prefix", url)
	case openS3 == nil:
		return bench.Usagef("--s3 %s: this kvbench has no client of S3: build it with its tag: "+
			"go install -tags s3 github.com/siftkv/siftkv/cmd/kvbench@latest", url)
	}
	config.Origin = url
	config.Open = func() (objstore.Store, error) {
		bucket, err := openS3(ctx, c.S3)
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
