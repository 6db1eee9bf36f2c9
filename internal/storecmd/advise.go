package storecmd

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/siftkv/siftkv/internal/bytesize"
	"github.com/siftkv/siftkv/internal/keytext"
	"github.com/siftkv/siftkv/kv"
	"github.com/siftkv/siftkv/kv/advice"
)

// adviceTrace is the argument of commands that take advice from a trace.
type adviceTrace struct {
	Dir
	Trace  string        `arg:"" optional:"" help:"${advise_trace}"`
	Filter []string      `sep:"none" placeholder:"SPECS" help:"${advise_filter}"`
	Memory string        `placeholder:"SIZE" help:"${advise_memory}"`
	Device time.Duration `placeholder:"TIME" help:"${advise_device}"`
}

func (c *adviceTrace) options(trace io.Reader) (*advice.Options, error) {
	o := &advice.Options{Trace: trace, DeviceRead: c.Device}
	for _, specs := range c.Filter {
		o.Filters = append(o.Filters, strings.Fields(strings.ReplaceAll(specs, ";", " "))...)
	}
	if c.Memory == "" {
		return o, nil
	}
	n, err := bytesize.Parse(c.Memory)
	if err != nil {
		return nil, usagef("--memory: %v", err)
	}
	o.Memory = n
	return o, nil
}

// traceSuffix makes the name of the trace next to a directory.
const traceSuffix = ".trace"

func (c *adviceTrace) file() (string, error) {
	switch {
	case c.Trace != "":
		return c.Trace, nil
	case c.Dir.Dir.remote():
		return "", usagef("%s is an object store: name the trace", c.Dir.Dir)
	}
	return strings.TrimRight(string(c.Dir.Dir), string(os.PathSeparator)) + traceSuffix, nil
}

// advice returns what the lookups of the trace say about the store, which is opened for reading.
func (c *adviceTrace) advice(ctx context.Context, p *program) (r adviceReport, err error) {
	name, err := c.file()
	if err != nil {
		return r, err
	}
	f, err := os.Open(name)
	if err != nil {
		return r, fmt.Errorf("%w; lookuptrace.Tracer writes a trace", err)
	}
	defer func() { _ = f.Close() }() // it was only read
	ask, err := c.options(f)
	if err != nil {
		return r, err
	}
	o := c.Dir.Dir.stored()
	o.ReadOnly, o.MemoryLimit = true, 0
	err = c.with(ctx, p, o, false, func(db *kv.DB) (err error) {
		r = adviceReport{Store: c.Dir.Dir.name(), Trace: keytext.Name(name)}
		r.Report, err = advice.For(ctx, db, ask)
		return err
	})
	if err != nil && !errors.Is(err, context.Canceled) {
		err = fmt.Errorf("%s: %w", name, err)
	}
	return r, err
}

type adviseCommand struct{ adviceTrace }

func (c *adviseCommand) Run(ctx context.Context, p *program) error {
	r, err := c.advice(ctx, p)
	if err != nil {
		return err
	}
	return p.report(&r)
}

type adviceReport struct {
	Store keytext.Name `json:"store"`
	Trace keytext.Name `json:"trace"`
	*advice.Report
}

func (r *adviceReport) WriteText(w io.Writer) error {
	s := &r.Sample
	out := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	var err error
	line := func(format string, args ...any) {
		if err == nil {
			_, err = fmt.Fprintf(out, format, args...)
		}
	}
	line("%s: %d lookups of %d keys and %d scans in %s", r.Store, s.Lookups, s.Keys, s.Scans, r.Trace)
	if s.OneIn > 1 {
		line(", one key in %.0f", s.OneIn)
	}
	line("\n\n%s\nConfidence: %s; %s.\n\n", r.Words, r.Confidence, r.Why)
	line("filter\tfilters\tcache\tblocks\tfound\tabsent [95 %%]\tdevice reads\tns\tper scan\t\n")
	line("now: ")
	setting := func(p *advice.Setting) {
		name := p.Filter
		switch {
		case name == "":
			name = "as files have"
		case p.FilterBudget > 0:
			name, _, _ = strings.Cut(name, ":")
			name += " in " + shortSize(p.FilterBudget)
		}
		if p.RangeFilter != "" {
			name += ", " + p.RangeFilter
		}
		if p.BlockSize > 0 {
			name += ", blocks of " + shortSize(p.BlockSize)
		}
		line("%s\t%s\t%s\t%.3f\t%.3f\t%.4f [%.4f, %.4f]\t%.3f\t%.0f\t%.0f\t\n", name, shortSize(p.FilterBytes),
			shortSize(p.CacheSize), p.Lookups.Blocks, p.Found.Blocks, p.Absent.Blocks, p.Absent.BlocksLow,
			p.Absent.BlocksHigh, p.Lookups.DeviceReads, p.Lookups.Nanos, p.Scans.Nanos)
	}
	setting(&r.Now)
	for i := range r.Front {
		if r.Front[i] == r.Recommended && !r.Keep {
			line("recommended: ")
		}
		setting(&r.Front[i])
	}
	line("\n")
	for _, c := range r.Styles {
		line("Compaction %s: %.1f runs (%.0f at most), %.2f blocks of a key that is there, %.3f of one that is not.\n",
			c.Style, c.Runs, c.MaxRuns, c.FoundBlocks, c.AbsentBlocks)
	}
	for _, m := range r.Worth {
		line("A %s of %s in place of %s: %.0f device reads more in a million lookups (%.0f for a MiB).\n", m.What, m.To,
			m.From, m.Reads, m.ReadsPerMiB)
	}
	line("\nNot known: %s.\nTimes: %s.\n", strings.Join(r.Unknown, ";\n  "), r.Prices)
	if r.Options != "" {
		line("\n%s\nsiftkv apply with these options rewrites %d files of %s.\n", strings.TrimSpace(r.Options),
			r.RewriteFiles, shortSize(r.RewriteBytes))
	}
	if flushed := out.Flush(); err == nil {
		err = flushed
	}
	return err
}

// shortSize shows bytes in three or four digits.
func shortSize(n int64) string {
	for _, u := range []struct {
		bytes int64
		name  string
	}{{1 << 30, "GiB"}, {1 << 20, "MiB"}, {1 << 10, "KiB"}} {
		if n >= u.bytes {
			return fmt.Sprintf("%.3g %s", float64(n)/float64(u.bytes), u.name)
		}
	}
	return fmt.Sprintf("%d bytes", n)
}
