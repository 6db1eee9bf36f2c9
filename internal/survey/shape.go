package survey

import (
	"cmp"
	"context"
	"errors"
	"io"
	"maps"
	"slices"

	"github.com/siftkv/siftkv/internal/keytext"
	"github.com/siftkv/siftkv/internal/manifest"
	"github.com/siftkv/siftkv/internal/vfs"
)

// A Stats is the shape of a store.
type Stats struct {
	Dir      keytext.Name `json:"dir"`
	StoreID  keytext.ID   `json:"store_id"`
	Manifest string       `json:"manifest"`
	NextFile uint64       `json:"next_file"`
	LastSeq  uint64       `json:"last_seq"` // the largest sequence number, as far as files show
	Levels   []Level      `json:"levels"`   // those that have files
	Total    Level        `json:"total"`
	Logs     []WAL        `json:"logs"`
	Garbage  []File       `json:"garbage"` // files that the store does not use any more

	// Damage is what a look at the files shows; verify looks at every byte.
	Damage []Damage `json:"damage"`
	Notes  []string `json:"notes"`
}

// A Level is the sum of a level's files.
type Level struct {
	Level        int            `json:"level"`
	Files        int            `json:"files"`
	Runs         int            `json:"runs"` // sorted runs: in level 0, every file is one
	Bytes        int64          `json:"bytes"`
	Entries      uint64         `json:"entries"` // versions and point tombstones
	Deletes      uint64         `json:"deletes"` // of them, tombstones
	RangeDeletes uint64         `json:"range_deletes"`
	FilterBytes  uint64         `json:"filter_bytes"`
	FilterKeys   uint64         `json:"filter_keys"`
	BitsPerKey   float64        `json:"bits_per_key"`
	Filters      map[string]int `json:"filters"` // files by filter family
	IndexBytes   uint64         `json:"index_bytes"`
	SmallestSeq  uint64         `json:"smallest_seq"`
	LargestSeq   uint64         `json:"largest_seq"`
}

// A WAL is a write-ahead log whose writes are in no table yet.
type WAL struct {
	Name     string `json:"name"`
	Bytes    int64  `json:"bytes"`
	Records  int    `json:"records"`
	Writes   uint64 `json:"writes"`
	FirstSeq uint64 `json:"first_seq"`
	LastSeq  uint64 `json:"last_seq"`
	Closed   bool   `json:"closed"`
}

// Shape looks at the store in dir, as a reader, and returns its shape.
func Shape(ctx context.Context, dir string) (st *Stats, err error) {
	lock, err := Lock(vfs.OS, dir, vfs.Shared)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, lock.Close()) }()
	s, err := Take(ctx, dir, Options{})
	if err != nil {
		return nil, err
	}
	return s.Stats(), nil
}

// Stats returns the store's shape.
func (s *Store) Stats() *Stats {
	st := &Stats{Dir: keytext.Name(s.Dir), NextFile: s.NextFile, Total: Level{Level: -1},
		Damage: append([]Damage{}, s.Damage...), Notes: append([]string{}, s.Notes...),
		Garbage: append([]File{}, s.Garbage...),
		Levels:  []Level{}, Logs: []WAL{}}
	logNum := uint64(0)
	if m := s.Manifest; m != nil {
		st.StoreID, st.Manifest, st.LastSeq, logNum = keytext.ID(m.StoreID), m.Name, m.LastSeq, m.LogNum
	}
	levels := map[int]*Level{}
	runs := map[[2]uint64]bool{}
	for i := range s.Tables {
		t := &s.Tables[i]
		if t.Info == nil || t.Level < 0 && s.Manifest != nil {
			continue
		}
		n := max(t.Level, 0)
		if levels[n] == nil {
			levels[n] = &Level{Level: n}
		}
		levels[n].add(t)
		st.Total.add(t)
		if run := [2]uint64{uint64(n), t.Run}; n == 0 || !runs[run] {
			runs[run] = true
			levels[n].Runs++
			st.Total.Runs++
		}
		st.LastSeq = max(st.LastSeq, uint64(t.Info.LargestSeq))
	}
	for n := range manifest.NumLevels {
		if l := levels[n]; l != nil {
			st.Levels = append(st.Levels, *l)
		}
	}
	for _, l := range s.Logs {
		if l.Num >= logNum {
			st.Logs = append(st.Logs, WAL{Name: l.Name, Bytes: l.Bytes, Records: l.Records, Writes: l.Writes,
				FirstSeq: l.FirstSeq, LastSeq: l.LastSeq, Closed: l.Closed})
			st.LastSeq = max(st.LastSeq, l.LastSeq)
		}
	}
	return st
}

func (l *Level) add(t *Table) {
	if l.Files == 0 {
		l.Filters = map[string]int{}
		l.SmallestSeq = uint64(t.Info.SmallestSeq)
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
	l.IndexBytes += t.Info.IndexBytes
	l.SmallestSeq, l.LargestSeq = min(l.SmallestSeq, uint64(t.Info.SmallestSeq)),
		max(l.LargestSeq, uint64(t.Info.LargestSeq))
}

// WriteText writes the shape for people.
func (s *Stats) WriteText(w io.Writer) error {
	p := printer{w: w}
	p.printf("%s: store %016x, %s, last sequence number %d, next file %d\n\n", s.Dir, s.StoreID,
		cmp.Or(s.Manifest, "no manifest"), s.LastSeq, s.NextFile)
	p.printf("%-6s%7s%6s%14s%12s%10s%8s%12s%8s%11s  %-18s%s\n", "level", "files", "runs", "bytes", "entries",
		"deletes", "ranges", "filter B", "bits/k", "index B", "sequence numbers", "filters")
	row := func(name string, l *Level) {
		p.printf("%-6s%7d%6d%14d%12d%10d%8d%12d%8.2f%11d  %8d–%-8d ", name, l.Files, l.Runs, l.Bytes, l.Entries,
			l.Deletes, l.RangeDeletes, l.FilterBytes, l.BitsPerKey, l.IndexBytes, l.SmallestSeq, l.LargestSeq)
		for _, f := range slices.Sorted(maps.Keys(l.Filters)) {
			p.printf(" %s×%d", f, l.Filters[f])
		}
		p.printf("\n")
	}
	for i := range s.Levels {
		row("L"+string(rune('0'+s.Levels[i].Level)), &s.Levels[i])
	}
	row("all", &s.Total)
	p.printf("\n")
	for _, l := range s.Logs {
		p.printf("log %s: %d bytes, %d records, %d writes", l.Name, l.Bytes, l.Records, l.Writes)
		if l.Writes > 0 {
			p.printf(", sequence numbers %d–%d", l.FirstSeq, l.LastSeq)
		}
		p.printf("\n")
	}
	for _, g := range s.Garbage {
		p.printf("not used any more: %s, %d bytes\n", g.Name, g.Bytes)
	}
	for _, d := range s.Damage {
		p.printf("damage: %s\n", d)
	}
	for _, n := range s.Notes {
		p.printf("note: %s\n", n)
	}
	return p.err
}
