package storecmd

import (
	"cmp"
	_ "embed"
	"fmt"
	"html/template"
	"io"
	"slices"
	"strings"

	"github.com/siftkv/siftkv/internal/blob"
	"github.com/siftkv/siftkv/internal/keyformat"
	"github.com/siftkv/siftkv/internal/survey"
	"github.com/siftkv/siftkv/kv/explain"
)

//go:embed stats.html
var statsHTML string

var statsTemplate = template.Must(template.New("stats").Funcs(template.FuncMap{
	"size":    func(n any) string { return shortSize(toInt(n)) },
	"percent": func(f float64) string { return fmt.Sprintf("%.3g %%", 100*f) },
	"count":   count,
}).Parse(statsHTML))

// count is a number of things, in one word or two.
func count(n int, thing string) string {
	if n != 1 {
		thing += "s"
	}
	return fmt.Sprintf("%d %s", n, thing)
}

func toInt(n any) int64 {
	switch n := n.(type) {
	case uint64:
		return int64(n)
	case int64:
		return n
	}
	return 0
}

// A storePage is a store as a picture: what the template shows.
type storePage struct {
	*statsReport
	Headline []string // sentences
	Rows     []levelRow
	Key      string          // of the lookup; empty: there is none
	Lookup   *explain.Lookup // nil: there is none
	Steps    []lookupStep
	format   keyformat.Format
	Unasked  bool              // there are filters that are damaged, or that only their program can ask
	passed   map[string]string // files that the lookup came to, with what happened there
	maxBlob  int64
}

// A levelRow is a level, with its runs from the newest.
type levelRow struct {
	Level int
	Bytes int64
	Runs  []runRow
}

// A runRow is a sorted run, whose files have no key in common.
type runRow struct {
	Width float64 // in percent of the largest run
	Bytes int64
	Files []fileBox
}

type fileBox struct {
	*fileStats
	Share float64 // of the run, in percent
	Class string  // read, asked or none of the lookup; bare without a filter, unasked, thin
	Range string  // of keys
	Title string
}

// A lookupStep is a place that a lookup came to.
type lookupStep struct{ Where, Verdict, Class string }

func (r *statsReport) writePage(w io.Writer, format keyformat.Format, lookup *explain.Lookup) error {
	p := &storePage{statsReport: r, Lookup: lookup, format: format, passed: map[string]string{}}
	p.lookUp()
	p.draw()
	p.sum()
	for _, b := range r.BlobFiles {
		p.maxBlob = max(p.maxBlob, b.Bytes)
	}
	return statsTemplate.Execute(w, p)
}

func (p *storePage) lookUp() {
	if p.Lookup == nil {
		return
	}
	p.Key = p.format.String(p.Lookup.Key)
	for _, s := range p.Lookup.Steps {
		step := lookupStep{Where: s.Source, Verdict: "ruled out by " + string(s.Verdict), Class: "asked"}
		switch s.Verdict {
		case explain.ReadAbsent:
			step.Verdict = "read, and has nothing of the key"
		case explain.ReadPresent, explain.ReadOperand:
			step.Verdict = "read, and has a version of the key"
		case explain.RuledOutAsEmpty:
			step.Verdict = "empty"
		}
		if s.Level >= 0 {
			step.Where = fmt.Sprintf("L%d %s", s.Level, s.Source)
		}
		if blocks := s.Probe.BlocksFromCache + s.Probe.BlocksFromDisk; blocks > 0 {
			step.Verdict += ", " + count(blocks, "block")
			step.Class = "read"
		}
		p.passed[s.Source] = step.Class
		p.Steps = append(p.Steps, step)
	}
}

// draw puts the files into runs, and the runs into levels.
func (p *storePage) draw() {
	runs := map[[2]uint64][]*fileStats{}
	for i := range p.Files {
		f := &p.Files[i]
		run := [2]uint64{uint64(f.Level), f.Run}
		if f.Level == 0 && f.Run == 0 { // a flush is a run of its own
			run[1] = ^uint64(i)
		}
		runs[run] = append(runs[run], f)
	}
	largest := int64(1)
	for _, files := range runs {
		largest = max(largest, bytesOf(files))
	}
	byAge := func(a, b []*fileStats) int {
		return cmp.Or(cmp.Compare(b[0].LargestSeq, a[0].LargestSeq), strings.Compare(b[0].Name, a[0].Name))
	}
	for _, l := range p.Levels {
		row := levelRow{Level: l.Level, Bytes: l.Bytes}
		var all [][]*fileStats
		for run, files := range runs {
			if int(run[0]) == l.Level {
				slices.SortFunc(files, func(a, b *fileStats) int {
					return strings.Compare(string(a.Smallest), string(b.Smallest))
				})
				all = append(all, files)
			}
		}
		slices.SortFunc(all, byAge)
		for _, files := range all {
			row.Runs = append(row.Runs, p.run(files, largest))
		}
		p.Rows = append(p.Rows, row)
	}
}

func bytesOf(files []*fileStats) (n int64) {
	for _, f := range files {
		n += f.Bytes
	}
	return n
}

func (p *storePage) run(files []*fileStats, largest int64) runRow {
	bytes := max(bytesOf(files), 1)
	row := runRow{Width: 100 * float64(bytes) / float64(largest), Bytes: bytes}
	for _, f := range files {
		box := fileBox{fileStats: f, Share: 100 * float64(f.Bytes) / float64(bytes), Class: p.passed[f.Name],
			Range: p.format.String(f.Smallest) + " to " + p.format.String(f.Largest)}
		filter := "no filter"
		switch {
		case f.Passes != nil:
			filter = fmt.Sprintf("%s, lets %.3g %% pass", f.Filter, 100**f.Passes)
		case f.FilterBytes > 0:
			filter = f.Filter + ", which cannot be asked"
			box.Class += " unasked"
			p.Unasked = true
		default:
			box.Class += " bare"
		}
		if box.Share*row.Width < 50 { // of 10,000: there is no room for an edge
			box.Class += " thin"
		}
		box.Title = fmt.Sprintf("%s: %s, %d entries, %s; keys %s", f.Name, shortSize(f.Bytes), f.Entries, filter,
			box.Range)
		row.Files = append(row.Files, box)
	}
	return row
}

// sum says what the picture means.
func (p *storePage) sum() {
	say := func(format string, args ...any) { p.Headline = append(p.Headline, fmt.Sprintf(format, args...)) }
	reads, runs := 0.0, 0
	for _, l := range p.Rows {
		for _, r := range l.Runs {
			runs++
			for _, f := range r.Files {
				passes := 1.0
				if f.Passes != nil {
					passes = *f.Passes
				}
				reads += passes * f.Share / 100
			}
		}
	}
	switch {
	case runs == 0 && len(p.Damage) > 0:
		say("No sorted file can be read.")
	case runs == 0:
		say("The store has no sorted files.")
	default:
		say("%s of %s, in %s. Filters have %.1f bits per key.", count(p.Total.Files, "sorted file"),
			shortSize(p.Total.Bytes), count(runs, "run"), p.Total.BitsPerKey)
		say("A lookup of a key that no file has reads %.3g blocks on average.", reads)
	}
	if b := p.Blobs; b != nil {
		say("Blob files take %s, of which %.0f %% are garbage.", shortSize(b.Bytes),
			100*float64(b.Garbage)/float64(max(b.Bytes, 1)))
	}
	if p.Lookup != nil {
		found := map[bool]string{true: "found", false: "not found"}[p.Lookup.Found]
		say("The lookup of %s passes %s: %s.", p.Key, count(len(p.Steps), "place"), found)
	}
}

type blobStats struct {
	Name        string `json:"name"`
	Bytes       int64  `json:"bytes"`
	Records     uint64 `json:"records"`
	LiveRecords uint64 `json:"live_records"` // that sorted files refer to
	LiveBytes   uint64 `json:"live_bytes"`
}

func blobsOf(s *survey.Store) (all []blobStats) {
	records, bytes := map[uint64]uint64{}, map[uint64]uint64{}
	for i := range s.Tables {
		t := &s.Tables[i]
		if t.Info == nil || t.Level < 0 && s.Manifest != nil {
			continue
		}
		for _, r := range t.Info.Blobs {
			records[r.Num] += r.Records
			bytes[r.Num] += r.Bytes
		}
	}
	for i := range s.Blobs {
		if b := &s.Blobs[i]; b.Listing != nil {
			all = append(all, blobStats{b.Name, b.Size, b.Listing.Records, records[b.Num], bytes[b.Num]})
		}
	}
	return all
}

// BlobWidth is the width of a blob file's bar, and LiveShare the part of it that is live, in percent.
func (p *storePage) BlobWidth(b blobStats) float64 {
	return 100 * float64(b.Bytes) / float64(max(p.maxBlob, 1))
}

func (*storePage) LiveShare(b blobStats) float64 {
	records := max(b.Bytes-blob.MinSize, 1) // without header and footer
	return min(100*float64(b.LiveBytes)/float64(records), 100)
}
