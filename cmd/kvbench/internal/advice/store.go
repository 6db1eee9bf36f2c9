package advice

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/siftkv/siftkv/cmd/kvbench/internal/bench"
	"github.com/siftkv/siftkv/internal/advise"
	"github.com/siftkv/siftkv/internal/bytesize"
	"github.com/siftkv/siftkv/internal/sstable"
	"github.com/siftkv/siftkv/internal/survey"
	"github.com/siftkv/siftkv/internal/vfs"
	"github.com/siftkv/siftkv/kv"
	"github.com/siftkv/siftkv/kv/explain"
)

// A store is one in a directory that no process writes to. Nothing of it is changed.
type store struct {
	dir     string
	found   *survey.Store
	options *kv.Options // it was last opened with, for reading only
	tables  []table     // by run, the youngest first
	shape   advise.Store

	db     *kv.DB
	number map[string]int32 // of tables by name
	sizes  []blockSizes     // by table
}

// A table is a sorted file of the store.
type table struct {
	*survey.Table
	reader *sstable.Reader // asks the index
}

// blockSizes are those of the blocks of a file that were read.
type blockSizes struct{ blocks, bytes int64 }

// openStore opens the store in dir.
func openStore(ctx context.Context, dir string) (s *store, err error) {
	held, err := survey.Hold(vfs.OS, dir, vfs.Shared)
	if err != nil {
		return nil, bench.Usagef("advise %s: %w", dir, err)
	}
	found, err := held.Take(ctx, survey.Options{})
	if err = errors.Join(err, held.Close()); err != nil {
		return nil, fmt.Errorf("advise: %w", err)
	}
	if found.Manifest == nil || len(found.Damage) > 0 {
		return nil, fmt.Errorf("advise: the store is damaged; run siftkv verify %s", dir)
	}
	s = &store{dir: dir, found: found, number: map[string]int32{}}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.close())
		}
	}()
	if err := s.readOptions(); err != nil {
		return nil, err
	}
	s.list()
	for i := range s.tables {
		t := &s.tables[i]
		s.number[t.Name] = int32(i)
		t.reader, err = sstable.Open(filepath.Join(dir, t.Name), &sstable.ReaderOptions{SkipFilter: true,
			AnyExpansion: true, Seq: t.Listing.Seq})
		if err != nil {
			return s, fmt.Errorf("advise: %w", err)
		}
	}
	s.sizes = make([]blockSizes, len(s.tables))
	s.db, err = s.open(s.options.CacheSize)
	return s, err
}

// close closes what is open.
func (s *store) close() error {
	var errs []error
	if s.db != nil {
		errs = append(errs, s.db.Close())
	}
	for _, t := range s.tables {
		if t.reader != nil {
			errs = append(errs, t.reader.Close())
		}
	}
	return errors.Join(errs...)
}

// open opens the store for reading, with a cache of its own.
func (s *store) open(cache int64) (*kv.DB, error) { return openReadOnly(s.dir, s.options, cache) }

func openReadOnly(dir string, options *kv.Options, cache int64) (*kv.DB, error) {
	o := *options
	o.ReadOnly, o.InMemory, o.CacheSize, o.MemoryLimit = true, false, cache, 0
	db, err := kv.Open(dir, &o)
	if err != nil {
		return nil, fmt.Errorf("advise: open %s: %w", dir, err)
	}
	return db, nil
}

// What a store has of memory if it does not say.
const (
	usualCache          = 64 << 20
	usualFalsePositives = 256 << 10
)

// readOptions reads what the store was last opened with.
func (s *store) readOptions() error {
	s.options = &kv.Options{}
	if s.found.Options != nil {
		o, err := kv.ParseOptions(s.found.Options.Text)
		if err != nil {
			return fmt.Errorf("advise: options of %s: %w", s.dir, err)
		}
		s.options = o
	}
	if name := s.found.Manifest.First.Merger; name != "" && s.options.Merger == nil {
		s.options.Merger = kv.NewMerger(name, newest)
	}
	s.setSize(&s.options.CacheSize, "CacheSize", usualCache)
	s.setSize(&s.options.FalsePositiveMemory, "FalsePositiveMemory", usualFalsePositives)
	return nil
}

// setSize gives an option that is not set what the store says of it, or what is usual.
func (s *store) setSize(option *int64, field string, usual int64) {
	if *option != 0 {
		return
	}
	*option = usual
	if size, err := bytesize.Parse(s.said(field)); err == nil {
		*option = size
	}
}

// newest stands in for a merger of the application's own: lookups read what they would with that one, and
// nobody wants the values. What it makes is never written.
func newest(_, _, newer []byte) ([]byte, error) { return newer, nil }

// said returns a field of the store's options, set or not; empty if that is not known.
func (s *store) said(field string) string {
	if s.found.Options == nil {
		return ""
	}
	for line := range strings.Lines(s.found.Options.Text) {
		name, value, ok := strings.Cut(strings.TrimPrefix(line, "# "), "=")
		if ok && strings.TrimSpace(name) == field {
			return strings.Trim(strings.TrimSpace(value), `"`)
		}
	}
	return ""
}

// list orders the tables by run as lookups ask them, and describes them.
func (s *store) list() {
	for i := range s.found.Tables {
		if t := &s.found.Tables[i]; t.Listing != nil && t.Info != nil {
			s.tables = append(s.tables, table{Table: t})
		}
	}
	age := map[runID]uint64{}
	for _, t := range s.tables {
		age[t.id()] = max(age[t.id()], t.age())
	}
	slices.SortStableFunc(s.tables, func(a, b table) int {
		return cmp.Or(cmp.Compare(a.Level, b.Level), cmp.Compare(age[b.id()], age[a.id()]),
			cmp.Compare(string(a.Listing.Smallest), string(b.Listing.Smallest)))
	})
	for i, t := range s.tables {
		if i == 0 || t.id() != s.tables[i-1].id() {
			s.shape.Runs++
		}
		p := t.Info.Properties
		f := advise.File{Run: s.shape.Runs - 1, Level: t.Level, Keys: max(p.FilterKeys, p.Entries-p.Overwritten),
			Blocks: p.DataBlocks, Bytes: int64(p.DataBytes), IndexBytes: int64(p.IndexBytes),
			FilterBytes: int64(p.FilterBytes), BlockSize: int64(p.BlockSize),
			Decoded: int64(min(p.BlockSize, p.RawKeyBytes+p.RawValueBytes))}
		if p.FilterFamily != "" {
			f.Filter = p.FilterPolicy
		}
		if p.RangeFilterFamily != "" {
			f.Ranges, f.RangeBytes = p.RangeFilterPolicy, int64(p.RangeFilterBytes)
		}
		s.shape.Files = append(s.shape.Files, f)
	}
	s.shape.BlobFiles = len(s.found.Manifest.Blobs)
	s.shape.Cache, s.shape.Budget = s.options.CacheSize, s.options.FilterBudget
	s.shape.BlockSize, _ = bytesize.Parse(s.said("BlockSize")) // 0: not known
	s.shape.Remembered = max(0, s.options.FalsePositiveMemory)
	s.shape.Filter, s.shape.Compaction = s.said("Filter"), cmp.Or(s.said("Compaction"), kv.Leveled.String())
	s.shape.Tree = s.tree()
}

// tree returns how the levels are sized, as far as that is known.
func (s *store) tree() (t advise.Tree) {
	t.RunsPerLevel, _ = strconv.Atoi(s.said("RunsPerLevel")) // 0: the default
	t.Level0, _ = strconv.Atoi(s.said("L0CompactionThreshold"))
	t.Space, _ = strconv.ParseFloat(s.said("SpaceAmplification"), 64)
	t.BaseLevel, _ = bytesize.Parse(s.said("BaseLevelSize"))
	t.Memtable, _ = bytesize.Parse(s.said("MemtableSize"))
	return t
}

// A runID tells sorted runs apart.
type runID struct {
	level int
	run   uint64
	alone uint64 // number of a table of level 0 that is a run by itself
}

func (t *table) id() runID {
	if t.Level == 0 && t.Run == 0 {
		return runID{0, 0, t.Num}
	}
	return runID{t.Level, t.Run, 0}
}

// age orders runs of a level.
func (t *table) age() uint64 {
	if t.Level > 0 {
		return t.Run
	}
	return uint64(max(t.Listing.Seq, t.Listing.LargestSeq))
}

// maxNeighbours bounds the search for an absent key right behind a present one.
const maxNeighbours = 8

// answer looks a key up whose lookups had k.Found as their answer. If the key was absent and is present now, an absent
// key right behind it takes its place in k: its lookups read the same blocks.
func (s *store) answer(k *advise.Key) (e *explain.Lookup, err error) {
	key := k.Bytes
	for i := range maxNeighbours {
		if e, err = s.db.Explain(key); err != nil {
			return nil, fmt.Errorf("advise: look up %q: %w", key, err)
		}
		if k.Changed = i > 0 || e.Found != k.Found; e.Found == k.Found || k.Found {
			break
		}
		key = append(slices.Clip(key), 0)
	}
	if e.Found == k.Found {
		k.Bytes = key
	}
	return e, nil
}

// path looks a key up, and notes which files that came to.
func (s *store) path(k *advise.Key) error {
	e, err := s.answer(k)
	if err != nil {
		return err
	}
	k.Hash = e.Hash
	for _, step := range e.Steps {
		v := step.Verdict
		if step.Level < 0 || v == explain.RuledOutByBounds || v == explain.RuledOutByRangeTombstone {
			continue
		}
		n, ok := s.number[step.Source]
		if !ok {
			return s.strange(step.Source)
		}
		block, ok, err := s.tables[n].reader.BlockOf(k.Bytes)
		if err != nil {
			return fmt.Errorf("advise: %w", err)
		}
		if !ok {
			continue
		}
		to := advise.Step{File: n, Block: int32(min(block, math.MaxInt32)), Present: step.Probe.KeyPresent}
		p := &step.Probe
		if to.Present {
			to.Again = int32(max(0, p.BlocksFromCache+p.BlocksFromDisk-1))
		}
		if p.BlocksFromDisk > 0 {
			s.sizes[n].blocks += int64(p.BlocksFromDisk)
			s.sizes[n].bytes += p.BytesDecoded
			if p.BlocksFromDisk == 1 && p.IndexLeavesFromDisk == 0 {
				to.Decoded = int32(min(p.BytesDecoded, math.MaxInt32))
				to.Stored = int32(min(p.BytesFromDisk, math.MaxInt32))
			}
		}
		k.Path = append(k.Path, to)
	}
	if last := len(k.Path) - 1; last >= 0 && e.Found != k.Found {
		k.Path[last].Present = k.Found
	}
	return nil
}

// strange is the error of a file that the store did not have when it was surveyed.
func (s *store) strange(name string) error {
	return fmt.Errorf("advise: %s is in use and was not there before: is %s open elsewhere?", name, s.dir)
}

// enoughBlocks are so many that their mean is that of a file.
const enoughBlocks = 20

// noteSizes sets how large blocks are in the cache, as far as some were read; those of other
// files are taken to be as large as all that were, and if there are none, as the files say they
// should be.
func (s *store) noteSizes() {
	var all blockSizes
	for _, n := range s.sizes {
		all.blocks, all.bytes = all.blocks+n.blocks, all.bytes+n.bytes
	}
	for i, n := range s.sizes {
		if n.blocks < enoughBlocks {
			n = all
		}
		if n.blocks > 0 {
			s.shape.Files[i].Decoded = n.bytes / n.blocks
		}
	}
}
