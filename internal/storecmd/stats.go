package storecmd

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"strings"
	"text/tabwriter"

	"github.com/siftkv/siftkv/filterpolicy"
	"github.com/siftkv/siftkv/internal/base"
	"github.com/siftkv/siftkv/internal/cli"
	"github.com/siftkv/siftkv/internal/keyformat"
	"github.com/siftkv/siftkv/internal/keytext"
	"github.com/siftkv/siftkv/internal/sstable"
	"github.com/siftkv/siftkv/internal/survey"
	"github.com/siftkv/siftkv/internal/survey/shape"
	"github.com/siftkv/siftkv/internal/vfs"
	"github.com/siftkv/siftkv/kv"
	"github.com/siftkv/siftkv/kv/explain"
)

type statsCommand struct {
	Dir
	Files bool        `help:"${stats_files}"`
	HTML  cli.OutFile `name:"html" placeholder:"FILE" help:"${stats_html}"`
	Key   string      `placeholder:"KEY" help:"${stats_key}"`
}

// Run prints the shape of the readable part of the store. If a directory is moved meanwhile, that is the shape of what
// it was, and an error says so.
func (c *statsCommand) Run(ctx context.Context, p *program) error {
	var r statsReport
	take := func(ctx context.Context, dir string, o survey.Options) (*survey.Store, error) {
		s, err := survey.Take(ctx, dir, o)
		if err == nil {
			err = r.add(ctx, s, c.Files || c.HTML != "")
		}
		return s, err
	}
	if c.Dir.Dir.remote() {
		s, err := p.surveyObjects(ctx, c.Dir.Dir, take, survey.Options{})
		if err != nil {
			return err
		}
		r.Stats = shape.Of(s)
		return c.print(ctx, p, &r)
	}
	h, err := survey.HoldBeside(vfs.OS, string(c.Dir.Dir))
	if err != nil {
		return err
	}
	s, err := h.Take(ctx, survey.Options{})
	if err == nil {
		err = r.add(ctx, s, c.Files || c.HTML != "")
	}
	moved := h.Close()
	if err != nil {
		return errors.Join(err, moved)
	}
	return errors.Join(c.print(ctx, p, &r), moved)
}

func (c *statsCommand) print(ctx context.Context, p *program, r *statsReport) error {
	if c.HTML == "" {
		if c.Key != "" {
			return usagef("--key is for --html: siftkv explain prints what a lookup passes")
		}
		return p.report(r)
	}
	var lookup *explain.Lookup
	if c.Key != "" {
		key, err := p.parse("--key", c.Key)
		if err != nil {
			return err
		}
		if err := c.read(ctx, p, func(db *kv.DB) error {
			lookup, err = db.Explain(key)
			return err
		}); err != nil {
			return err
		}
	}
	err := c.HTML.Write(p.out, func(w io.Writer) error { return r.writePage(w, p.KeyFormat, lookup) })
	if err != nil || c.HTML.IsStandard() {
		return err
	}
	if !c.Files {
		r.Files, r.BlobFiles = nil, nil
	}
	return p.report(r)
}

// A statsReport is the shape of a store, with its files if they are asked for.
type statsReport struct {
	*shape.Stats
	Files     []fileStats `json:"files,omitempty"`
	BlobFiles []blobStats `json:"blob_files,omitempty"`
}

type fileStats struct {
	Name       string `json:"name"`
	Level      int    `json:"level"`
	Run        uint64 `json:"run"`
	Bytes      int64  `json:"bytes"`
	Entries    uint64 `json:"entries"`
	LargestSeq uint64 `json:"largest_seq"`

	Smallest, Largest keyformat.Bytes `json:"-"`

	Blocks      uint64  `json:"blocks"` // of data
	DataBytes   uint64  `json:"data_bytes"`
	IndexBytes  uint64  `json:"index_bytes"`
	IndexLeaves uint64  `json:"index_leaves"` // 0: the index is in one piece
	Filter      string  `json:"filter"`       // spec; empty: none
	FilterBytes uint64  `json:"filter_bytes"`
	BitsPerKey  float64 `json:"bits_per_key"`
	// Passes is the share of random hashes that the filter lets pass: its rate of false positives. It is null without
	// a filter that can be used. Expected is the rate in theory; 0: not known.
	Passes      *float64 `json:"passes"`
	Expected    float64  `json:"expected_passes"`
	RangeFilter string   `json:"range_filter"` // spec; empty: none
	Compression string   `json:"compression"`
	BlobBytes   uint64   `json:"blob_bytes,omitempty"` // of records in blob files that it refers to
}

// add describes a store, and its files if they are asked for.
func (r *statsReport) add(ctx context.Context, s *survey.Store, files bool) error {
	r.Stats = shape.Of(s)
	if files {
		r.BlobFiles = blobsOf(s)
	}
	for i := range s.Tables {
		t := &s.Tables[i]
		if !files || t.Info == nil || t.Level < 0 && s.Manifest != nil {
			continue
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
		f, err := describe(s, t)
		if err != nil {
			return err
		}
		r.Files = append(r.Files, f)
	}
	return nil
}

func describe(s *survey.Store, t *survey.Table) (fileStats, error) {
	p := t.Info
	f := fileStats{Name: t.Name, Level: max(t.Level, 0), Run: t.Run, Bytes: t.Size, Entries: p.Entries,
		LargestSeq: uint64(p.LargestSeq), Smallest: p.Smallest, Largest: p.Largest,
		Blocks: p.DataBlocks, DataBytes: p.DataBytes, IndexBytes: p.IndexBytes, IndexLeaves: p.IndexLeaves,
		Filter: p.FilterPolicy, FilterBytes: p.FilterBytes, RangeFilter: p.RangeFilterPolicy,
		Compression: p.Compression.String()}
	for _, ref := range p.Blobs {
		f.BlobBytes += ref.Bytes
	}
	if p.FilterKeys > 0 {
		f.BitsPerKey = 8 * float64(p.FilterBytes) / float64(p.FilterKeys)
		if policy, err := filterpolicy.Parse(p.FilterPolicy); err == nil {
			f.Expected = filterpolicy.Expected(policy, int(p.FilterKeys)).FPR
		}
	}
	_, err := s.Examine(t.File(), func(file vfs.ReadFile) (err error) { // a fault of the file is among the damage
		f.Passes, err = passRate(file, t)
		return err
	})
	return f, err
}

// filterProbes are the hashes that each filter is asked for.
const filterProbes = 20_000

// passRate asks a file for a key that it has under random hashes: its filter decides by the hash alone. It returns nil
// without a filter that can be used.
func passRate(file vfs.ReadFile, t *survey.Table) (*float64, error) {
	o := &sstable.ReaderOptions{Name: t.Name, AnyExpansion: true, ID: t.Info.ID}
	if t.Listing != nil {
		o.TailSize, o.Seq = t.Listing.TailSize, t.Listing.Seq
	}
	r, err := sstable.NewReader(struct{ io.ReaderAt }{file}, t.Size, o) // which does not close it
	if err != nil {
		return nil, err
	}
	defer func() { _ = r.Close() }() // it was read only
	if !r.HasFilter() || t.Info.Entries == 0 {
		return nil, nil
	}
	random := rand.New(rand.NewPCG(1, 2)) // the same hashes for every file, every time
	passed := 0.0
	for range filterProbes {
		var probe sstable.Probe
		if _, _, _, err := r.Find(nil, t.Info.Smallest, random.Uint64(), base.MaxSeqNum, &probe); err != nil {
			return nil, err
		}
		if probe.IndexLookup {
			passed++
		}
	}
	passed /= filterProbes
	return &passed, nil
}

func (r *statsReport) WriteText(w io.Writer) error {
	if err := r.Stats.WriteText(w); err != nil || len(r.Files) == 0 {
		return err
	}
	out := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	var b strings.Builder
	b.WriteString("\nfile\tlevel\tbytes\tentries\tblocks\tindex B\tfilter\tbits/k\tpasses %\texpected %\t" +
		"for ranges\tcompression\tblob B\t\n")
	for i := range r.Files {
		f := &r.Files[i]
		passes := "-"
		if f.Passes != nil {
			passes = fmt.Sprintf("%.3g", 100**f.Passes)
		}
		fmt.Fprintf(&b, "%s\tL%d\t%d\t%d\t%d\t%d\t%s\t%.2f\t%s\t%.3g\t%s\t%s\t%d\t\n", f.Name, f.Level, f.Bytes,
			f.Entries, f.Blocks, f.IndexBytes, keytext.Line(cmp.Or(f.Filter, "none")), f.BitsPerKey, passes,
			100*f.Expected, keytext.Line(cmp.Or(f.RangeFilter, "none")), f.Compression, f.BlobBytes)
	}
	_, err := io.WriteString(out, b.String())
	return errors.Join(err, out.Flush())
}
