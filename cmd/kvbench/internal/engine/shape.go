package engine

// A Shape describes the files of a store.
type Shape struct {
	Levels []LevelShape `json:"levels"` // non-empty levels only, youngest first
	// ByRun has each sorted run of those levels in the order in which a lookup asks
	// them, with Runs 1 and no IndexBytes; nothing if the engine does not tell.
	ByRun []LevelShape `json:"by_run,omitempty"`
}

// A LevelShape describes the files of one level.
type LevelShape struct {
	Level       int   `json:"level"`
	Runs        int   `json:"runs"` // sorted runs that a lookup may have to ask: each flush in level 0
	Files       int   `json:"files"`
	Bytes       int64 `json:"bytes"` // on disk
	Entries     int64 `json:"entries"`
	FilterBytes int64 `json:"filter_bytes"` // on disk
	IndexBytes  int64 `json:"index_bytes"`  // on disk
}

// Total returns the sum over levels; its Level is -1.
func (s Shape) Total() LevelShape {
	total := LevelShape{Level: -1}
	for _, l := range s.Levels {
		total.Runs += l.Runs
		total.Files += l.Files
		total.Bytes += l.Bytes
		total.Entries += l.Entries
		total.FilterBytes += l.FilterBytes
		total.IndexBytes += l.IndexBytes
	}
	return total
}

// Settled reports whether everything is in one sorted run below level 0, whose files
// do not overlap: a lookup then considers one file at most.
func (s Shape) Settled() bool {
	return len(s.Levels) == 0 || len(s.Levels) == 1 && s.Levels[0].Level > 0 && s.Levels[0].Runs <= 1
}

// RunsOf returns the runs of a level, or, where the engine does not tell them apart, the
// level as one.
func (s Shape) RunsOf(l LevelShape) []LevelShape {
	var runs []LevelShape
	for _, r := range s.ByRun {
		if r.Level == l.Level {
			runs = append(runs, r)
		}
	}
	if len(runs) == 0 {
		return []LevelShape{l}
	}
	return runs
}

// BitsPerKey returns the filter bits spent on each entry; 0 for an empty store.
func (l LevelShape) BitsPerKey() float64 {
	if l.Entries == 0 {
		return 0
	}
	return 8 * float64(l.FilterBytes) / float64(l.Entries)
}

// runs returns the sorted runs in a level of leveled compaction.
func runs(level, files int) int {
	if level == 0 {
		return files
	}
	return min(1, files)
}
