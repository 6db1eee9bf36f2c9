package advice

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"github.com/siftkv/siftkv/filterpolicy"
	"github.com/siftkv/siftkv/internal/advise"
	"github.com/siftkv/siftkv/internal/base"
	"github.com/siftkv/siftkv/internal/manifest"
	"github.com/siftkv/siftkv/internal/rangedel"
	"github.com/siftkv/siftkv/internal/sstable"
	"github.com/siftkv/siftkv/internal/tablemeta"
	"github.com/siftkv/siftkv/internal/vfs"
)

// copyTo writes a store into a new directory that has the same entries in the same files of the
// same sorted runs, with the filters of a setting: what the store is once compactions have
// written all of its files anew. What is in logs comes along.
func (s *store) copyTo(ctx context.Context, dir string, o advise.Setting) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("advise: %w", err)
	}
	m := s.found.Manifest
	e := m.First
	e.StoreID, e.LogNum, e.NextFile, e.Closed = m.StoreID, m.LogNum, m.NextFile+1, 0
	e.LastSeq, e.Deleted, e.Added, e.DeletedBlobs = s.lastSeq(), nil, nil, nil
	var err error
	if e.AddedBlobs, err = s.shareBlobs(ctx, dir); err != nil {
		return err
	}
	rewritten := s.rewritten(&o)
	for i := range s.tables {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		added, err := s.rewrite(dir, &s.tables[i], rewritten(i))
		if err != nil {
			return err
		}
		e.Added = append(e.Added, added)
	}
	for _, l := range s.found.Logs {
		if l.Num < m.LogNum {
			continue
		}
		data, err := os.ReadFile(filepath.Join(s.dir, l.Name))
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, l.Name), data, 0o600)
		}
		if err != nil {
			return fmt.Errorf("advise: %w", err)
		}
	}
	log, err := manifest.Create(vfs.OS, dir, m.NextFile, &e)
	if err != nil {
		return fmt.Errorf("advise: %w", err)
	}
	return log.Close()
}

// shareBlobs gives a copy the store's blob files, which are the same under any setting, and lists them. They are linked
// where that can be done.
func (s *store) shareBlobs(ctx context.Context, dir string) (blobs []manifest.BlobFile, err error) {
	for _, num := range slices.Sorted(maps.Keys(s.found.Manifest.Blobs)) {
		b := s.found.Manifest.Blobs[num]
		from, to := filepath.Join(s.dir, b.Name()), filepath.Join(dir, b.Name())
		if os.Link(from, to) != nil {
			err = vfs.CopyFile(vfs.OS, to, vfs.OS, from, ctx.Err)
		}
		if err != nil {
			return nil, fmt.Errorf("advise: %w", err)
		}
		blobs = append(blobs, b)
	}
	return blobs, nil
}

// lastSeq returns the largest sequence number in the store's files.
func (s *store) lastSeq() (last base.SeqNum) {
	last = base.SeqNum(s.found.Manifest.LastSeq)
	for _, t := range s.tables {
		last = max(last, t.Listing.LargestSeq, t.Listing.Seq)
	}
	return last
}

// newFilters are those that a file gets; nil is none. Its blocks get a size; 0 is its own.
type newFilters struct {
	block  int64
	points filterpolicy.Policy
	ranges filterpolicy.RangePolicy
}

// rewritten returns what filters each file gets under a setting, by number. Its own it keeps if the
// setting has none.
func (s *store) rewritten(o *advise.Setting) func(i int) newFilters {
	policies := s.shape.Policies(o)
	return func(i int) (n newFilters) {
		n.block = o.BlockSize
		f := &s.shape.Files[i]
		n.points, _ = filterpolicy.Parse(f.Filter) // of a family that is not known: none
		if policies != nil {
			n.points = policies[f.Run]
		}
		switch {
		case o.Ranges == "":
			n.ranges, _ = filterpolicy.ParseRange(f.Ranges)
		case f.Run < s.shape.Runs-1:
			n.ranges, _ = filterpolicy.ParseRange(o.Ranges)
		}
		return n
	}
}

// rewrite writes a file anew, with other filters.
func (s *store) rewrite(dir string, t *table, filters newFilters) (added manifest.AddedTable, err error) {
	if filters.points == nil {
		if filters.points, err = filterpolicy.Parse("none"); err != nil {
			return added, err
		}
	}
	f, err := os.Create(filepath.Join(dir, t.Name))
	if err != nil {
		return added, fmt.Errorf("advise: %w", err)
	}
	p := &t.Info.Properties
	o := &sstable.WriterOptions{BlockSize: int(cmp.Or(filters.block, int64(p.BlockSize))),
		RestartInterval: int(p.RestartInterval),
		Compression:     p.Compression, Filter: filters.points, RangeFilter: filters.ranges, Merger: p.Merger,
		IndexPartition: s.options.IndexPartition}
	if x := s.options.Prefix; x != nil && x.Name() == p.FilterPrefix {
		o.Prefix, o.PrefixOnly = x, p.PrefixOnly
	}
	info, tombstones, err := s.copyEntries(f, t, o)
	if err = errors.Join(err, f.Close()); err != nil {
		return added, fmt.Errorf("advise: write %s anew: %w", t.Name, err)
	}
	return manifest.AddedTable{Level: t.Level, Run: t.Run, Table: tablemeta.Of(t.Num, info, tombstones)}, nil
}

// copyEntries writes all that is in a table: handles as they are, since the copy has the blob files.
func (s *store) copyEntries(f *os.File, t *table, o *sstable.WriterOptions) (*sstable.FileInfo, []rangedel.Tombstone,
	error) {
	w := sstable.NewWriter(f, o)
	w.KnowBlobs(func(num uint64) uint64 { return s.found.Manifest.Blobs[num].ID })
	it := t.reader.NewIter(sstable.IterOptions{Sequential: true})
	for ok := it.First(); ok; ok = it.Next() {
		if err := w.Add(it.Key(), it.Value()); err != nil {
			return nil, nil, err
		}
	}
	err := it.Error()
	tombstones := t.reader.Tombstones().Clip(nil, nil, nil)
	for _, tomb := range tombstones {
		err = errors.Join(err, w.AddTombstone(tomb))
	}
	info, finish := w.Finish()
	return info, tombstones, errors.Join(err, finish)
}
