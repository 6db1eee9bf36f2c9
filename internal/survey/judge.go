package survey

import "slices"

// judge decides whether the manifest can be trusted. A truncated one may lack edits; the files show it.
func (s *Store) judge() {
	m := s.Manifest
	if m == nil || m.Broken {
		return
	}
	m.Trusted = true
	live := s.LiveLogs()
	if !m.Closed && m.ClosedSeq == 0 { // the note of a close is the last edit, and synced; the end of the file is not
		s.judgeEnd(live)
	}
	switch {
	case len(live) > 0 && live[0].Num != m.LogNum:
		s.logMissing(m.LogNum, ", although "+live[0].Name+", which came later, is there")
		m.Trusted = m.Trusted && (m.Closed || m.ClosedSeq > 0)
	case len(live) == 0 && m.Edits > 1 && m.LogNum != m.Num && m.LogNum > 0:
		// A store makes its log right after its manifest, before there is any other edit;
		// only a store that a checkpoint or a repair made has none.
		s.logMissing(m.LogNum, "")
	}
	if m.ClosedSeq > 0 {
		s.judgeClose(live)
		return
	}
	for _, l := range live {
		// A close by an older version did not note the last write. An empty log is one that was just created.
		if m.Closed && m.LastSeq > 0 && !l.Closed && l.Bytes > 0 && len(l.Damage) == 0 {
			s.damaged(l.Name, l.Bytes, "the log has lost its end, although the store was closed cleanly")
		}
	}
}

// judgeClose compares the writes in tables and logs with what a clean close noted. Tables have all writes up to the
// manifest's LastSeq, and logs those that follow.
//
// A store that failed and went on may have skipped numbers, with nothing lost. Then it has a new log, or an ingest
// without files in the middle of one. So a gap counts only between logs, and where something cannot be read.
func (s *Store) judgeClose(live []*Log) {
	m := s.Manifest
	next, broken := m.LastSeq+1, len(s.MissingLogs) > 0
	for _, l := range live {
		for _, r := range l.Runs {
			if r.First > next && (broken || r.Broken) {
				s.missing(next, r.First-1)
			}
			next, broken = max(next, r.Last+1), false
		}
		broken = true
	}
	if next <= m.ClosedSeq {
		s.missing(next, m.ClosedSeq)
	}
}

// missing notes writes that no file has, although the store was closed cleanly with them.
func (s *Store) missing(from, to uint64) {
	m := s.Manifest
	m.Missing = append(m.Missing, SeqRange{from, to})
	s.damaged(append(s.SuspectLogs(), m.Name)[0], -1, "the store was closed cleanly with writes up to number %d, and "+
		"those from %d to %d are missing: a log was cut off, damaged or removed", m.ClosedSeq, from, to)
}

// judgeEnd decides on a manifest that was not closed: a crash, or damage that looks like one, may
// have cut off its last edits. The lost edits leave traces:
//
//   - A compaction removes its inputs: tables that the manifest lists are gone.
//   - A flush removes its log, as judge finds. Its writes are only in a table that the manifest
//     does not list, with writes after all others.
//   - A table that came after the manifest, with only known writes, was made from others. If no log
//     has writes, and it shares no keys with listed tables, those others were listed once.
//   - A blob file that came with such a table has values that are newer than all else.
//   - A compaction that moved all values of a blob file removes that. A table that came after the
//     manifest, and is not listed, then shares keys with those that refer to the file. If there is
//     none, the file is lost, and the manifest whole.
//
// Other unlisted tables were being written when the store crashed, or were no longer used. A flush
// may then have writes that its log lost for want of a sync: this proves nothing, unless all logs
// are whole. Nor do the tables of an unfinished ingest. An ingest in the last edit looks like an
// unfinished one, as the last write of a log looks like a torn one.
func (s *Store) judgeEnd(live []*Log) {
	m := s.Manifest
	known, whole, writes := m.LastSeq, true, false
	for _, l := range live {
		known, whole, writes = max(known, l.LastSeq), whole && l.Closed, writes || l.Writes > 0
	}
	for i := range s.Tables {
		t := &s.Tables[i]
		switch {
		case !t.Present:
			s.damaged(m.Name, -1, "the manifest has lost its end: it lists %s, which is not there any more", t.Name)
			m.Trusted = false
		case t.Level >= 0 || t.Info == nil || m.Dead[t.Num] || t.Holds != "" || s.Unfinished(t):
		case whole && uint64(t.Info.LargestSeq) > known,
			!writes && t.Num > m.Num && uint64(t.Info.SmallestSeq) <= known && !s.overlapsLive(t, 0):
			s.damaged(m.Name, -1, "the manifest has lost its end: it does not list %s, whose writes are in no "+
				"other file", t.Name)
			m.Trusted = false
		}
	}
	s.judgeEndByBlobs(known, whole)
}

// judgeEndByBlobs is judgeEnd for blob files. Known is the last write of tables and logs; whole says that no log lacks
// its end. How new the values of a file are only a deep survey knows.
func (s *Store) judgeEndByBlobs(known uint64, whole bool) {
	m := s.Manifest
	for i := range s.Blobs {
		b := &s.Blobs[i]
		switch {
		case !b.Present && s.movedOn(b.Num):
			s.damaged(m.Name, -1, "the manifest has lost its end: it lists %s, which is not there any more, and does "+
				"not list tables that were made of those with values in it", b.Name)
			m.Trusted = false
		case b.Listing == nil && !m.DeadBlobs[b.Num] && whole && b.LargestSeq > known:
			s.damaged(m.Name, -1, "the manifest has lost its end: it does not list %s, whose values are in no other "+
				"file", b.Name)
			m.Trusted = false
		}
	}
}

// movedOn reports whether there is a table that came after the manifest, which does not list it, and that may have been
// made of tables which refer to a blob file.
func (s *Store) movedOn(blob uint64) bool {
	return slices.ContainsFunc(s.Tables, func(t Table) bool {
		return t.Level < 0 && t.Info != nil && t.Num > s.Manifest.Num && !s.Manifest.Dead[t.Num] && t.Holds == "" &&
			!s.Unfinished(&t) && s.overlapsLive(&t, blob)
	})
}
