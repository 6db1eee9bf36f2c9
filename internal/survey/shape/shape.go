// Package shape sums up what a survey of a store found.
package shape

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/siftkv/siftkv/internal/keytext"
	"github.com/siftkv/siftkv/internal/manifest"
	"github.com/siftkv/siftkv/internal/survey"
)

// A Stats is the shape of a store.
type Stats struct {
	Dir      keytext.Name  `json:"dir"`
	StoreID  keytext.ID    `json:"store_id"`
	Manifest string        `json:"manifest"`
	NextFile uint64        `json:"next_file"`
	LastSeq  uint64        `json:"last_seq"` // the largest sequence number that files show
	Levels   []Level       `json:"levels"`   // those that have files
	Total    Level         `json:"total"`
	Blobs    *BlobSums     `json:"blobs,omitempty"` // nil: there are no blob files
	Logs     []survey.Log  `json:"logs"`            // those with writes in no table yet
	Garbage  []survey.File `json:"garbage"`         // files that the store does not use any more
	Opened   *Opened       `json:"opened"`          // not known: null

	// Damage is what is found without reading every byte; verify reads all.
	Damage []survey.Damage `json:"damage"`
	Notes  []string        `json:"notes"`
}

// An Opened says how a store was last opened for writing.
type Opened struct {
	Release string `json:"release"` // of the module
	Format  int    `json:"format"`  // of the store, as of that release
	// Options are those that were set, as lines of kv.ParseOptions; what only the application makes is in comments.
	Options []string `json:"options"`
}

// openedWith returns what an options file says was set.
func openedWith(o *manifest.StoredOptions) *Opened {
	if o == nil {
		return nil
	}
	opened := &Opened{Release: o.Release, Format: o.Format, Options: []string{}}
	for line := range strings.Lines(o.Text) {
		line = strings.TrimSpace(line)
		if !strings.HasPrefix(line, "#") || strings.HasSuffix(line, ": the application's own") {
			opened.Options = append(opened.Options, line)
		}
	}
	return opened
}

// A Level is the sum of a level's files.
type Level struct {
	Level            int            `json:"level"`
	Files            int            `json:"files"`
	Runs             int            `json:"runs"` // sorted runs: in level 0, every flush is one
	Bytes            int64          `json:"bytes"`
	Entries          uint64         `json:"entries"` // versions and point tombstones
	Deletes          uint64         `json:"deletes"` // of them, tombstones
	RangeDeletes     uint64         `json:"range_deletes"`
	FilterBytes      uint64         `json:"filter_bytes"`
	FilterKeys       uint64         `json:"filter_keys"`
	BitsPerKey       float64        `json:"bits_per_key"`
	Filters          map[string]int `json:"filters"`       // files by filter family
	RangeFilters     map[string]int `json:"range_filters"` // files by family of range filter
	RangeFilterBytes uint64         `json:"range_filter_bytes"`
	RangeFilterKeys  uint64         `json:"range_filter_keys"`
	IndexBytes       uint64         `json:"index_bytes"`
	BlobBytes        uint64         `json:"blob_bytes,omitempty"` // of records in blob files that its files refer to
	SmallestSeq      uint64         `json:"smallest_seq"`
	LargestSeq       uint64         `json:"largest_seq"`

	blobRecords uint64
}

// Of returns the shape of a store.
func Of(s *survey.Store) *Stats {
	st := &Stats{
		Dir: keytext.Name(s.Dir), NextFile: s.NextFile, Levels: []Level{}, Total: Level{Level: -1},
		Logs: []survey.Log{}, Damage: append([]survey.Damage{}, s.Damage...), Notes: append([]string{}, s.Notes...),
		Garbage: append([]survey.File{}, s.Garbage...), Opened: openedWith(s.Options),
	}
	if m := s.Manifest; m != nil {
		st.StoreID, st.Manifest, st.LastSeq = keytext.ID(m.StoreID), m.Name, m.LastSeq
	}
	var levels [manifest.NumLevels]Level
	runs := map[[2]uint64]bool{}
	for i := range s.Tables {
		t := &s.Tables[i]
		if t.Info == nil || t.Level < 0 && s.Manifest != nil {
			continue
		}
		n := max(t.Level, 0)
		run := [2]uint64{uint64(n), t.Run}
		first := n == 0 && t.Run == 0 || !runs[run]
		runs[run] = true
		levels[n].Level = n
		levels[n].add(t, first)
		st.Total.add(t, first)
		st.LastSeq = max(st.LastSeq, uint64(t.Info.LargestSeq))
	}
	st.Blobs = sumBlobs(s, &st.Total, &levels[manifest.NumLevels-1])
	for _, l := range levels {
		if l.Files > 0 {
			st.Levels = append(st.Levels, l)
		}
	}
	for _, l := range s.LiveLogs() {
		st.Logs = append(st.Logs, *l)
		st.LastSeq = max(st.LastSeq, l.LastSeq)
	}
	return st
}

// add takes in a table, which may be the first of a run.
func (l *Level) add(t *survey.Table, first bool) {
	if l.Files == 0 {
		l.Filters, l.RangeFilters = map[string]int{}, map[string]int{}
		l.SmallestSeq = uint64(t.Info.SmallestSeq)
	}
	if first {
		l.Runs++
	}
	l.Files++
	l.Bytes += t.Size
	l.Entries += t.Info.Entries
	l.Deletes += t.Info.Deletes
	l.RangeDeletes += t.Info.RangeDeletes
	l.FilterBytes += t.Info.FilterBytes
	l.FilterKeys += t.Info.FilterKeys
	if l.FilterKeys > 0 {
		l.BitsPerKey = float64(8*l.FilterBytes) / float64(l.FilterKeys)
	}
	l.Filters[cmp.Or(t.Info.FilterFamily, "none")]++
	l.RangeFilters[cmp.Or(t.Info.RangeFilterFamily, "none")]++
	l.RangeFilterBytes += t.Info.RangeFilterBytes
	l.RangeFilterKeys += t.Info.RangeFilterKeys
	l.IndexBytes += t.Info.IndexBytes
	for _, r := range t.Info.Blobs {
		l.BlobBytes += r.Bytes
		l.blobRecords += r.Records
	}
	l.SmallestSeq = min(l.SmallestSeq, uint64(t.Info.SmallestSeq))
	l.LargestSeq = max(l.LargestSeq, uint64(t.Info.LargestSeq))
}

func (l *Level) writeRangeFilters(b *strings.Builder) {
	if l.RangeFilterKeys == 0 {
		return
	}
	fmt.Fprintf(b, "; for ranges")
	for _, f := range slices.Sorted(maps.Keys(l.RangeFilters)) {
		fmt.Fprintf(b, " %s×%d", keytext.Line(f), l.RangeFilters[f])
	}
	fmt.Fprintf(b, " (%.2f bits/k)", float64(8*l.RangeFilterBytes)/float64(l.RangeFilterKeys))
}

// WriteText writes the shape for people.
func (s *Stats) WriteText(w io.Writer) error {
	var b strings.Builder
	fmt.Fprintf(&b, "%s: store %016x, %s, last sequence number %d, next file %d\n\n", s.Dir, s.StoreID,
		cmp.Or(s.Manifest, "no manifest"), s.LastSeq, s.NextFile)
	fmt.Fprintf(&b, "%-6s%7s%6s%14s%12s%10s%8s%12s%8s%11s  %-18s%s\n", "level", "files", "runs", "bytes", "entries",
		"deletes", "ranges", "filter B", "bits/k", "index B", "sequence numbers", "filters")
	row := func(name string, l *Level) {
		fmt.Fprintf(&b, "%-6s%7d%6d%14d%12d%10d%8d%12d%8.2f%11d  %8d–%-8d ", name, l.Files, l.Runs,
			l.Bytes, l.Entries,
			l.Deletes, l.RangeDeletes, l.FilterBytes, l.BitsPerKey, l.IndexBytes, l.SmallestSeq, l.LargestSeq)
		for _, f := range slices.Sorted(maps.Keys(l.Filters)) {
			fmt.Fprintf(&b, " %s×%d", keytext.Line(f), l.Filters[f])
		}
		l.writeRangeFilters(&b)
		fmt.Fprintf(&b, "\n")
	}
	for i := range s.Levels {
		row("L"+string(rune('0'+s.Levels[i].Level)), &s.Levels[i])
	}
	row("all", &s.Total)
	fmt.Fprintf(&b, "\n")
	s.Blobs.write(&b)
	s.writeOpened(&b)
	for _, l := range s.Logs {
		fmt.Fprintf(&b, "log %s: %d bytes, %d records, %d writes", l.Name, l.Bytes, l.Records, l.Writes)
		if l.Writes > 0 {
			fmt.Fprintf(&b, ", sequence numbers %d–%d", l.FirstSeq, l.LastSeq)
		}
		fmt.Fprintf(&b, "\n")
	}
	for _, g := range s.Garbage {
		fmt.Fprintf(&b, "not used any more: %s, %d bytes\n", g.Name, g.Bytes)
	}
	for _, d := range s.Damage {
		fmt.Fprintf(&b, "damage: %s\n", keytext.Escaped(d.String()))
	}
	for _, n := range s.Notes {
		fmt.Fprintf(&b, "note: %s\n", keytext.Escaped(n))
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// writeOpened writes how the store was last opened.
func (s *Stats) writeOpened(b *strings.Builder) {
	if s.Opened == nil {
		return
	}
	fmt.Fprintf(b, "last opened for writing by release %s, format %d, ", keytext.Line(s.Opened.Release),
		s.Opened.Format)
	if len(s.Opened.Options) == 0 {
		fmt.Fprintf(b, "with all defaults\n")
		return
	}
	fmt.Fprintf(b, "with\n")
	for _, line := range s.Opened.Options {
		fmt.Fprintf(b, "  %s\n", keytext.Line(line))
	}
}
