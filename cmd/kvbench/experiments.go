package main

import (
	"cmp"
	"context"
	"crypto/rand"
	"os"
	"os/signal"
	"reflect"
	"slices"
	"syscall"
	"time"

	"github.com/siftkv/siftkv/cmd/kvbench/internal/bench"
	"github.com/siftkv/siftkv/cmd/kvbench/internal/cell"
	"github.com/siftkv/siftkv/cmd/kvbench/internal/compare"
	"github.com/siftkv/siftkv/cmd/kvbench/internal/filters"
	"github.com/siftkv/siftkv/cmd/kvbench/internal/objects"
	"github.com/siftkv/siftkv/cmd/kvbench/internal/ranges"
	"github.com/siftkv/siftkv/cmd/kvbench/internal/readamp"
	"github.com/siftkv/siftkv/cmd/kvbench/internal/report"
	"github.com/siftkv/siftkv/cmd/kvbench/internal/sweep"
	"github.com/siftkv/siftkv/internal/cli"
	"github.com/siftkv/siftkv/objstore"
)

type compareCommand struct {
	Engine   []string `placeholder:"NAMES" help:"${compare_engine}"`
	Workload []string `default:"${workloads}" placeholder:"NAMES" help:"${compare_workload}"`
	Keys     int      `default:"3000000" placeholder:"N" help:"Keys to load (default ${default})."`
	Reps     int      `default:"5" placeholder:"N" help:"${compare_reps}"`
	Loads    int      `default:"1" placeholder:"N" help:"${compare_loads}"`
	secondsFlag
	dataFlags
	Cache bench.Size `default:"64MiB" placeholder:"SIZE" help:"${compare_cache}"`
	storeFlags
	Compression []string `default:"snappy,none" placeholder:"NAMES" help:"${compare_compression}"`
	largeFlags
	dirFlag `set:"room=, about 1.7 GB for a million keys and both compressions"`
	rowsFlags
}

// largeFlags are about the workloads of large values.
type largeFlags struct {
	LargeSize    bench.Size `default:"16KiB" placeholder:"SIZE" help:"Bytes of a large value (default ${default})."`
	LargeValues  string     `default:"random" placeholder:"KIND" help:"${compare_largevalues}"`
	LargeData    bench.Size `default:"256MiB" placeholder:"SIZE" help:"${compare_largedata}"`
	Minutes      float64    `default:"0.5" placeholder:"N" help:"${compare_minutes}"`
	SeparateFrom bench.Size `default:"4KiB" placeholder:"SIZE" help:"${compare_separate}"`
	BlobSpace    float64    `default:"1.5" placeholder:"RATIO" help:"${compare_blobspace}"`
}

// engines returns those to compare: what was asked for, or what the workloads are about.
func (c *compareCommand) engines() []string {
	if !slices.ContainsFunc(c.Workload, func(name string) bool { return !compare.IsLarge(name) }) {
		return orElse(c.Engine, compare.LargeEngines()...)
	}
	return orElse(c.Engine, compared...)
}

var compared = []string{"siftkv", "pebble", "badger", "goleveldb", "bbolt"}

func (c *compareCommand) Run(ctx context.Context, p *program) error {
	store := c.settings(c.Cache, "")
	store.SeparateFrom, store.BlobSpace = int(c.SeparateFrom), c.BlobSpace
	return c.show(p)(compare.Run(ctx, &compare.Config{
		Settings: compare.Settings{
			Engines: c.engines(), Workloads: c.Workload, Compressions: c.Compression,
			Keys: c.Keys, KeySize: c.KeySize, ValueSize: c.ValueSize,
			Repetitions: c.Reps, Loads: c.Loads, Seconds: c.Seconds, Seed: c.Seed, Store: store,
			Large: compare.Large{ValueSize: int(c.LargeSize), Values: c.LargeValues, Data: int64(c.LargeData),
				Minutes: c.Minutes},
		},
		Setup: c.setup(p),
	}))
}

// setup returns what experiments need of this program, which is its own worker.
func (f *dirFlag) setup(p *program) compare.Setup {
	self, err := os.Executable()
	if err != nil {
		self = os.Args[0]
	}
	return compare.Setup{Dir: f.Dir, Argv: p.argv, Progress: p.progress, Worker: []string{self, "worker"}}
}

// work is what compare runs itself as: it serves the parent. An interrupt from the terminal, or its end, reaches the
// whole group of processes; the parent acts on it.
func (p *program) work() error {
	signal.Ignore(os.Interrupt, syscall.SIGHUP)
	return compare.Serve(context.Background(), os.Stdin, p.stdout, nil)
}

type scaleCommand struct {
	Keys       int      `placeholder:"N" help:"${scale_keys}"`
	Engine     []string `placeholder:"NAMES" help:"${scale_engine}"`
	CacheShare float64  `default:"0.1" placeholder:"PART" help:"${scale_cacheshare}"`

	Cold    bool       `help:"${scale_cold}"`
	Memory  bench.Size `default:"512MiB" placeholder:"SIZE" help:"${scale_memory}"`
	Variant []string   `sep:"none" placeholder:"WORDS" help:"${scale_variant}"`
	Lookups int        `default:"50000" placeholder:"N" help:"${scale_lookups}"`

	Procs      []int `placeholder:"N" help:"${scale_procs}"`
	Goroutines []int `default:"1,8,64,1024" placeholder:"N" help:"${scale_goroutines}"`

	repsFlag
	secondsFlag
	dataFlags
	storeFlags
	compressionFlag `set:"compressions=none, snappy"`
	dirFlag         `set:"room=, about 150 bytes per key at most while a store is settled"`
	rowsFlags
}

func (c *scaleCommand) Run(ctx context.Context, p *program) error {
	switch {
	case c.Cold && len(c.Procs) > 0:
		return bench.Usagef("--cold and --procs are two experiments: choose one")
	case c.Cold:
		return c.cold(ctx, p)
	case len(c.Procs) > 0:
		return c.contend(ctx, p)
	}
	config := c.config(p, scaleKeys, "siftkv")
	config.Sizes, config.CacheShare = compare.Sizes(config.Keys), c.CacheShare
	return c.show(p)(compare.Scale(ctx, config))
}

// config returns what the experiments have in common, with what is measured if nothing is said.
func (c *scaleCommand) config(p *program, keys int, engines ...string) *compare.Config {
	return &compare.Config{
		Settings: compare.Settings{
			Engines: orElse(c.Engine, engines...), Keys: cmp.Or(c.Keys, keys), KeySize: c.KeySize,
			ValueSize: c.ValueSize, Repetitions: c.Reps, Seconds: c.Seconds, Seed: c.Seed,
			Store: c.settings(0, c.Compression),
		},
		Setup: c.setup(p),
	}
}

const (
	scaleKeys   = 10_000_000
	contendKeys = 1_000_000
)

func (c *scaleCommand) contend(ctx context.Context, p *program) error {
	config := c.config(p, contendKeys, "siftkv", "pebble")
	config.Procs, config.Goroutines = c.Procs, c.Goroutines
	return c.show(p)(compare.Contend(ctx, config))
}

func (c *scaleCommand) cold(ctx context.Context, p *program) error {
	config := c.config(p, scaleKeys, "siftkv", "pebble")
	config.Sizes, config.Variants = compare.ColdSizes(config.Keys), orElse(specs(c.Variant), coldVariants...)
	config.Memory, config.Lookups, config.Repetitions, config.Seconds = int64(c.Memory), c.Lookups, 0, 0
	return c.show(p)(compare.Cold(ctx, config))
}

// coldVariants are what SiftKV is measured with if nothing else is asked for.
var coldVariants = []string{compare.UsualVariant, "ribbon:8", "budget:10", "index:64KiB"}

// orElse returns what was given, or the default of it.
func orElse(given []string, usual ...string) []string {
	if len(given) == 0 {
		return usual
	}
	return given
}

// readampFilters are the filters of SiftKV that readamp measures by default.
const readampFilters = "none;bloom:10;blocked:10;cuckoo:12;oracle"

// readampCommand is the command line of kvbench readamp: that of a sweep whose engines, filters and trees it names.
type readampCommand struct {
	Engine   []string `default:"${readampengines}" placeholder:"NAMES" help:"${readamp_engine}"`
	Filter   []string `default:"${five}" sep:"none" placeholder:"SPECS" help:"${readamp_filter}"`
	Budget   string   `default:"bloom:10" placeholder:"SPEC" help:"${readamp_budget}"`
	rowFlags `group:"Settings of all rows" set:"data=that of --seed"`
	dirFlag  `set:"room=, about 700 MB for the defaults"`
	jsonFlag
}

// settings returns what was given of all rows. A seed alone is that of the data too.
func (c *readampCommand) settings() sweep.Block {
	b := blockOf(reflect.ValueOf(c.rowFlags))
	if seed := b["seed"]; len(seed) == 1 && b["data-seed"] == nil {
		b["data-seed"] = seed
	}
	return b
}

// Run measures, prints the tables, and writes the JSON file if asked to. Broken
// identities are an error, but only after the result is out.
func (c *readampCommand) Run(ctx context.Context, p *program) error {
	b := c.settings()
	if err := oneEach(b, "readamp measures all rows with one"); err != nil {
		return err
	}
	return c.inLab(p, func(lab *cell.Lab) error {
		set, err := readamp.Run(ctx, lab, &readamp.Config{Engines: c.Engine, Filters: specs(c.Filter), Budget: c.Budget,
			Settings: b})
		if err := show(p, report.ReadAmp, c.JSON)(set, err); err != nil {
			return err
		}
		return report.Identities(set).Err()
	})
}

// families are the filters that kvbench filters measures by default.
const families = "bloom:10;blocked:10;blocked:16;cuckoo:12;cuckoo:12,4,semisort;xor:8;fuse:8;fuse:8,4;ribbon:7;" +
	"gcs:7;quotient:7"

// rangeFamilies are the range filters that kvbench filters --ranges measures by default.
const rangeFamilies = "cut:4;cut:6;cut:8"

type filtersCommand struct {
	Keys      []int    `default:"100000,1000000" placeholder:"N" help:"${filters_keys}"`
	Filter    []string `sep:"none" placeholder:"SPECS" help:"${filters_filter}"`
	Ranges    bool     `help:"${filters_ranges}"`
	Sets      []string `default:"random,names,urls,series" placeholder:"SETS" help:"${filters_sets}"`
	Libraries bool     `default:"true" negatable:"" help:"Also measure the libraries that one would otherwise pick."`
	Probes    int      `placeholder:"N" help:"${filters_probes}"`
	repsFlag  `set:"repetitions=3"`
	Seed      uint64 `default:"1" placeholder:"N" help:"Seed of all keys (default ${default})."`
	rowsFlags
}

func (c *filtersCommand) Run(ctx context.Context, p *program) error {
	if c.Ranges {
		return c.runRanges(ctx, p)
	}
	c.otherwise(1_000_000, families)
	return c.show(p)(filters.Run(ctx, &filters.Config{
		Probing: c.probing(), Filters: specs(c.Filter), Libraries: c.Libraries, Argv: p.argv, Progress: p.progress,
	}))
}

// otherwise sets the probes and filters that are not given.
func (c *filtersCommand) otherwise(probes int, families string) {
	if c.Probes == 0 {
		c.Probes = probes
	}
	if len(c.Filter) == 0 {
		c.Filter = []string{families}
	}
}

// probing returns what both have in common.
func (c *filtersCommand) probing() bench.Probing {
	return bench.Probing{Keys: c.Keys, Probes: c.Probes, Repetitions: c.Reps, Seed: c.Seed}
}

func (c *filtersCommand) runRanges(ctx context.Context, p *program) error {
	c.otherwise(50_000, rangeFamilies)
	return c.show(p)(ranges.Run(ctx, &ranges.Config{
		Probing: c.probing(), Sets: c.Sets, Filters: specs(c.Filter), Argv: p.argv, Progress: p.progress,
	}))
}

const objectFilters = "none;blocked:10;blocked:16;blocked:20;cuckoo:18"

// openS3 opens the object store of a URL. It is nil in a program without a client of S3.
var openS3 func(ctx context.Context, url string) (objstore.Store, error)

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

func (p part) Close() error { return p.bucket.Close() }
