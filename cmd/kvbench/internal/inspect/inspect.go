// Package inspect looks at stores and at lookup traces. Of sorted files it says what each
// level's filters and indexes take, what the filters let pass, and how large blocks are.
package inspect

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"

	"github.com/siftkv/siftkv/cmd/kvbench/internal/bench"
	"github.com/siftkv/siftkv/cmd/kvbench/internal/engine"
	"github.com/siftkv/siftkv/cmd/kvbench/internal/measure"
	"github.com/siftkv/siftkv/filterpolicy"
	"github.com/siftkv/siftkv/internal/base"
	"github.com/siftkv/siftkv/internal/sstable"
	"github.com/siftkv/siftkv/kv"
)

// Schema names the form of a Result in JSON.
const Schema = "kvbench.inspect/v1"

// A Config says what to look at.
type Config struct {
	Path   string // a store's directory, or a sorted file
	Probes int    // random hashes that each filter is asked for
	Walked int    // files whose blocks are measured, at most: every entry is read
}

// A Result is what was found.
type Result struct {
	Schema string       `json:"schema"`
	Path   string       `json:"path"`
	Shape  engine.Shape `json:"shape"`           // by level; empty for a single file
	Blobs  *Blobs       `json:"blobs,omitempty"` // of a store that has blob files
	Files  []File       `json:"files"`           // by name
	Walked int          `json:"walked"`
	Blocks Histogram    `json:"blocks"` // of the files that were walked
}

// Blobs are sums over the blob files of a store, as metrics.Blobs has them.
type Blobs struct {
	Files       int    `json:"files"`
	Bytes       int64  `json:"bytes"`
	Records     uint64 `json:"records"`
	LiveRecords uint64 `json:"live_records"`
	LiveBytes   uint64 `json:"live_bytes"`
	Garbage     uint64 `json:"garbage"`
	HiddenBytes uint64 `json:"hidden_bytes"`
}

// A File is a sorted file.
type File struct {
	Name        string    `json:"name"`
	Bytes       int64     `json:"bytes"`
	Entries     uint64    `json:"entries"`
	DataBlocks  uint64    `json:"data_blocks"`
	DataBytes   uint64    `json:"data_bytes"`
	IndexBytes  uint64    `json:"index_bytes"`
	IndexLeaves uint64    `json:"index_leaves"` // 0: in one piece
	Filter      string    `json:"filter"`       // spec; empty without one
	FilterBytes uint64    `json:"filter_bytes"`
	FilterKeys  uint64    `json:"filter_keys"`
	BitsPerKey  float64   `json:"bits_per_key"`
	Passed      *PassRate `json:"passed"` // null without a usable filter
	Theory      float64   `json:"theory"` // rate that the spec predicts; 0: none
	Compression string    `json:"compression"`
	Apart       uint64    `json:"apart,omitempty"`      // entries whose values lie apart
	BlobBytes   uint64    `json:"blob_bytes,omitempty"` // that their records take in blob files
	Damage      string    `json:"damage"`               // of the filters; empty: none

	RangeFilter      string `json:"range_filter"` // spec; empty without one
	RangeFilterBytes uint64 `json:"range_filter_bytes"`
	RangeFilterKeys  uint64 `json:"range_filter_keys"`
}

// A PassRate is the share of random hashes that a filter lets pass, its false-positive
// rate, with the 95 % Wilson interval. It says how full the filter is, whatever its
// family.
type PassRate struct {
	Value float64 `json:"value"`
	Low   float64 `json:"low"`
	High  float64 `json:"high"`
}

// A Histogram counts data blocks by size.
type Histogram struct {
	Stored  []Bucket `json:"stored"`  // as in the file, compressed
	Decoded []Bucket `json:"decoded"` // in memory
}

// A Bucket counts blocks of at least From and less than To bytes.
type Bucket struct {
	From   int64 `json:"from"`
	To     int64 `json:"to"`
	Blocks int   `json:"blocks"`
}

// Run looks at a store that no process has open, or at one file, and changes nothing.
func Run(ctx context.Context, c Config) (*Result, error) {
	info, err := os.Stat(c.Path)
	if err != nil {
		return nil, bench.Usagef("inspect: %w", err)
	}
	r := &Result{Schema: Schema, Path: c.Path}
	paths := []string{c.Path}
	if info.IsDir() {
		if r.Shape, r.Blobs, err = shape(c.Path); err != nil {
			return nil, err
		}
		if paths, err = tables(c.Path); err != nil {
			return nil, err
		}
	}
	var blocks sizes
	every := max(1, (len(paths)+c.Walked-1)/max(1, c.Walked))
	for i, path := range paths {
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		f, err := file(path, c.Probes)
		if err != nil {
			return nil, err
		}
		r.Files = append(r.Files, *f)
		if c.Walked > 0 && i%every == 0 {
			if err := blocks.walk(ctx, path); err != nil {
				return nil, err
			}
			r.Walked++
		}
	}
	r.Blocks = Histogram{Stored: buckets(blocks.stored), Decoded: buckets(blocks.decoded)}
	return r, nil
}

// shape opens a store and returns its levels, and its blob files if it has any.
func shape(dir string) (s engine.Shape, blobs *Blobs, err error) {
	db, err := kv.Open(dir, &kv.Options{ReadOnly: true})
	if err != nil {
		return s, nil, fmt.Errorf("inspect %s: %w", dir, err)
	}
	m := db.Metrics()
	if b := &m.Blobs; b.Files > 0 {
		blobs = &Blobs{Files: b.Files, Bytes: b.Bytes, Records: b.Records, LiveRecords: b.LiveRecords,
			LiveBytes: b.LiveBytes, Garbage: b.Garbage, HiddenBytes: b.HiddenBytes}
	}
	return engine.ShapeOf(m), blobs, db.Close()
}

// tables lists the sorted files of a directory.
func tables(dir string) ([]string, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, fmt.Errorf("inspect: %w", err)
	}
	var paths []string
	for _, e := range entries {
		if filepath.Ext(e.Name()) == ".sst" {
			paths = append(paths, filepath.Join(dir, e.Name()))
		}
	}
	return paths, nil
}

// file reads the tail of a file and probes its filter.
func file(path string, probes int) (f *File, err error) {
	r, err := sstable.Open(path, &sstable.ReaderOptions{AnyExpansion: true})
	if err != nil {
		return nil, fmt.Errorf("inspect: %w", err)
	}
	defer func() { err = errors.Join(err, r.Close()) }()
	p := r.Properties()
	f = &File{
		Name: filepath.Base(path), Entries: p.Entries, DataBlocks: p.DataBlocks, DataBytes: p.DataBytes,
		IndexBytes: p.IndexBytes, IndexLeaves: p.IndexLeaves, FilterBytes: p.FilterBytes, FilterKeys: p.FilterKeys,
		Compression: p.Compression.String(),
		RangeFilter: p.RangeFilterPolicy, RangeFilterBytes: p.RangeFilterBytes, RangeFilterKeys: p.RangeFilterKeys,
	}
	f.Apart = p.Apart
	for _, ref := range p.Blobs {
		f.BlobBytes += ref.Bytes
	}
	if info, err := os.Stat(path); err == nil {
		f.Bytes = info.Size()
	}
	if damage := errors.Join(r.FilterError(), r.RangeFilterError()); damage != nil {
		f.Damage = damage.Error()
	}
	if f.Filter = p.FilterPolicy; p.FilterKeys > 0 {
		f.BitsPerKey = 8 * float64(p.FilterBytes) / float64(p.FilterKeys)
		if policy, err := filterpolicy.Parse(p.FilterPolicy); err == nil {
			f.Theory = filterpolicy.Expected(policy, int(p.FilterKeys)).FPR
		}
	}
	if r.HasFilter() && probes > 0 {
		f.Passed, err = passRate(r, p, probes)
	}
	return f, err
}

// passRate asks a file for a key that it has under hashes that are random: the filter
// goes by the hash alone.
func passRate(r *sstable.Reader, p *sstable.Properties, probes int) (*PassRate, error) {
	random := rand.New(rand.NewPCG(1, 2)) // the same hashes for every file, every time
	passed := 0
	for range probes {
		var probe sstable.Probe
		if _, _, _, err := r.Find(nil, p.Smallest, random.Uint64(), base.MaxSeqNum, &probe); err != nil {
			return nil, fmt.Errorf("inspect: %w", err)
		}
		if probe.IndexLookup {
			passed++
		}
	}
	rate := &PassRate{Value: float64(passed) / float64(probes)}
	rate.Low, rate.High = measure.Wilson(rate.Value, float64(probes))
	return rate, nil
}

// sizes are the bytes of data blocks.
type sizes struct{ stored, decoded []int64 }

// walk goes through the entries of a file in order, and looks each up in a second
// reader: that one reads a block when the walk comes to it, and says how large it is.
func (s *sizes) walk(ctx context.Context, path string) (err error) {
	entries, err := sstable.Open(path, &sstable.ReaderOptions{SkipFilter: true, AnyExpansion: true})
	if err != nil {
		return fmt.Errorf("inspect: %w", err)
	}
	defer func() { err = errors.Join(err, entries.Close()) }()
	blocks, err := sstable.Open(path, &sstable.ReaderOptions{SkipFilter: true, AnyExpansion: true})
	if err != nil {
		return fmt.Errorf("inspect: %w", err)
	}
	defer func() { err = errors.Join(err, blocks.Close()) }()
	n, buffer := 0, []byte(nil)
	it := entries.NewIter(sstable.IterOptions{Sequential: true})
	for ok := it.First(); ok; ok = it.Next() {
		if n++; n%1024 == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
		var p sstable.Probe
		if buffer, _, _, err = blocks.Find(buffer[:0], it.Key().User, 0, base.MaxSeqNum, &p); err != nil {
			return fmt.Errorf("inspect: %w", err)
		}
		if p.BlocksFromDisk == 1 && p.IndexLeavesFromDisk == 0 {
			s.stored, s.decoded = append(s.stored, p.BytesFromDisk), append(s.decoded, p.BytesDecoded)
		}
	}
	if err := it.Error(); err != nil {
		return fmt.Errorf("inspect: %w", err)
	}
	return nil
}

// buckets counts sizes in a dozen equal steps from the least to the greatest.
func buckets(sizes []int64) []Bucket {
	if len(sizes) == 0 {
		return []Bucket{}
	}
	least, most := slices.Min(sizes), slices.Max(sizes)
	const steps = 12
	width := (most-least)/steps + 1
	out := make([]Bucket, 0, steps)
	for from := least; from <= most; from += width {
		out = append(out, Bucket{From: from, To: from + width})
	}
	for _, size := range sizes {
		out[(size-least)/width].Blocks++
	}
	return out
}
