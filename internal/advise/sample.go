package advise

import (
	"fmt"
	"time"
)

// A Sample says what the predictions rest on.
type Sample struct {
	Lookups  int           `json:"lookups"`
	Counted  int           `json:"counted"` // after those that only fill the cache
	Found    int           `json:"found"`   // of all
	Keys     int           `json:"keys"`    // distinct
	Scans    int           `json:"scans"`
	OneIn    int           `json:"one_in"`
	Blocks   float64       `json:"block_share"` // part of all blocks that is replayed
	Span     time.Duration `json:"span_ns"`
	Changed  int           `json:"changed"` // lookups with another answer than the store has now
	Pathless int           `json:"pathless"`
}

func (m *Model) sample() Sample {
	t := m.trace
	s := Sample{Lookups: len(t.Lookups), Counted: len(t.Lookups) - m.warm, Scans: len(t.Scans), OneIn: m.oneIn,
		Blocks: m.share, Span: t.Span, Changed: t.Changed}
	for i := range t.Keys {
		n := m.stats[i].all
		if n == 0 {
			continue
		}
		if s.Keys++; t.Keys[i].Both && t.Keys[i].Found {
			s.Keys-- // counted with the other answer
		}
		if t.Keys[i].Found {
			s.Found += n
		}
		if t.Keys[i].Pathless {
			s.Pathless += n
		}
	}
	return s
}

// Limits that a note mentions.
const (
	manyChanged = 0.02
	fewLookups  = 10_000
)

// unknown says what the model cannot know of this store and this trace.
func (m *Model) unknown() []string {
	all := []string{
		"which absent keys a filter that is not built yet lets pass: rates are those of theory, and of few " +
			"popular keys they are luck",
		"what lookups of tomorrow ask for: they are taken to be as those of the trace",
	}
	add := func(unknown bool, format string, args ...any) {
		if unknown {
			all = append(all, fmt.Sprintf(format, args...))
		}
	}
	t, s := m.trace, m.sample()
	add(s.Pathless > 0, "where keys are: the trace has hashes in place of %d %% of them, which are taken to be "+
		"spread evenly over runs and blocks; neighbours that are asked for together would read less",
		100*s.Pathless/max(1, s.Lookups))
	add(m.oneIn > 1, "lookups of the others, as one key in %d was recorded: they are taken to be as popular, "+
		"and anywhere; neighbours that are asked for together would read less", m.oneIn)
	add(float64(s.Changed) > manyChanged*float64(s.Lookups), "the store as it was: %d of %d lookups had another "+
		"answer than it gives now", s.Changed, s.Lookups)
	add(t.Dropped > 0, "%d lookups that the trace lacks", t.Dropped)
	add(t.Cut > 0, "%d lookups and scans at the end of the trace, which were left out", t.Cut)
	add(s.Lookups < fewLookups, "much: %d lookups are few, and most of what they read, they read for the first "+
		"time", s.Lookups)
	add(m.store.BlobFiles > 0, "separated values: a lookup or a scan reads each of those that it finds from a "+
		"blob file besides, under all settings alike, and the block cache may have them as well")
	add(len(t.Scans) == 0, "scans: the trace has none")
	for i := range m.store.Files {
		if _, ok := m.store.Files[i].filterNow(); !ok {
			all = append(all, fmt.Sprintf("filters of family %q: they count as none", m.store.Files[i].Filter))
			break
		}
	}
	return append(all, "writes: they are in no trace, so styles of compaction are compared by what they read alone")
}
