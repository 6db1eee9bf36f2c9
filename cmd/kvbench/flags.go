package main

import (
	"github.com/siftkv/siftkv/internal/bench"
	"github.com/siftkv/siftkv/internal/bench/engine"
	"github.com/siftkv/siftkv/internal/objectscmd"
)

// Each idea has one flag, which is declared here if several commands have it. Names of
// settings are those of cells (cell.Fields); an alias is what a flag was called before.
// Texts that are longer than a line are in texts, under the name of the flag.

// secondsFlag bounds a workload by time.
type secondsFlag struct {
	Seconds float64 `default:"0.5" placeholder:"S" help:"${seconds}"`
}

// cacheFlag is the block cache.
type cacheFlag struct {
	Cache bench.Size `default:"64MiB" placeholder:"SIZE" help:"Block cache of each store (default ${default})."`
}

// storeFlags are settings that all engines have.
type storeFlags struct {
	Memtable       bench.Size `default:"16MiB" placeholder:"SIZE" help:"Memtable of a store (default ${default})."`
	Block          bench.Size `aliases:"block-size" default:"4096" placeholder:"SIZE" help:"${block}"`
	MaxCompactions int        `aliases:"compactions" default:"2" placeholder:"N" help:"${maxcompactions}"`
	SiftkvSpace    int        `placeholder:"PERCENT" help:"Space that SiftKV may take, of what is live (130)."`
}

// settings returns the settings of an engine with a cache and a compression.
func (f *storeFlags) settings(cache bench.Size, compression string) engine.Settings {
	return engine.Settings{
		CacheBytes: int64(cache), MemtableBytes: int64(f.Memtable), BlockBytes: int(f.Block),
		Compression: compression, Compactions: f.MaxCompactions, SpacePercent: f.SiftkvSpace,
	}
}

// dirFlag says where stores are made; the command sets the variable room to what they take.
type dirFlag struct{ objectscmd.DirFlag }

// Flags that kvbench objects has too, which other programs are made with.
type (
	dataFlags       = objectscmd.DataFlags
	repsFlag        = objectscmd.RepsFlag
	compressionFlag = objectscmd.CompressionFlag
	jsonFlag        = objectscmd.JSONFlag
	resultFile      = objectscmd.ResultFile
)

func specs(texts []string) []string { return objectscmd.Specs(texts) }
