package survey

import (
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"

	"github.com/siftkv/siftkv/internal/batchrepr"
	"github.com/siftkv/siftkv/internal/blob"
	"github.com/siftkv/siftkv/internal/manifest"
	"github.com/siftkv/siftkv/internal/vfs"
	"github.com/siftkv/siftkv/internal/wal"
)

// A Log is what could be read of a write-ahead log, past damage too.
type Log struct {
	Num     uint64 `json:"-"`
	Name    string `json:"name"`
	Bytes   int64  `json:"bytes"`
	Records int    `json:"records"`
	Writes  uint64 `json:"writes"` // keys set or deleted, and ranges deleted
	// FirstSeq and LastSeq are of the records that check out; 0 if there are none.
	FirstSeq uint64 `json:"first_seq"`
	LastSeq  uint64 `json:"last_seq"`
	Closed   bool   `json:"closed"` // its end is there

	// FirstOffset and LastOffset are the offsets of the first and the last record that check out.
	FirstOffset int64 `json:"-"`
	LastOffset  int64 `json:"-"`
	// Runs are the sequence numbers of these records: one run for each stretch without a gap.
	Runs []Run `json:"-"`
	// End is where history ends if it ends in this log. Open takes it that a crash cut it off there, and that records
	// after it were never acknowledged as synced. Otherwise it is past all records.
	End     int64    `json:"-"`
	Skipped int64    `json:"-"` // bytes that no record comes from, and might
	Damage  []Damage `json:"-"`
	Torn    string   `json:"-"` // how it breaks off, if in a way that a crash explains

	Blobs map[uint64]bool `json:"-"` // the numbers of the blob files that it has handles of

	syncedTo   int64    // up to where it proves that it was synced
	valuesLost bool     // it has handles of values that cannot be read, and no crash explains that
	tornValues []Damage // other values that are not whole, which are damage if all records count
	unnamed    int      // more values of both kinds
	broken     bool     // something could not be read since the last record
}

// A SeqRange is a range of sequence numbers, both ends included.
type SeqRange struct{ First, Last uint64 }

// A Run is the sequence numbers of records that follow each other. Broken says that something before them, back to
// the run before or the beginning of the log, could not be read.
type Run struct {
	SeqRange
	Broken bool
}

// A Record is a batch in a log. Its data is valid during the call that got it.
type Record struct {
	Offset int64
	Seq    uint64 // of the first write; the others count up
	Count  uint64 // of writes
	Data   []byte
	Broken bool // something between it and the record before could not be read
}

// readLogs reads every log on disk.
func (s *Store) readLogs(names []string) error {
	nums := manifest.Numbers(names, manifest.FileWAL, 0)
	v := s.newLoggedValues()
	defer v.replay.Close()
	for i, num := range nums {
		if err := s.ctx.Err(); err != nil {
			return err
		}
		s.o.Progress("logs", i, len(nums))
		l, err := v.readLog(num)
		if err != nil {
			return err
		}
		if !s.InTables(l) {
			s.Damage = append(s.Damage, l.Damage...)
			if l.Torn != "" && !s.o.frozen {
				s.note("%s", l.Torn)
			}
		}
		s.Logs = append(s.Logs, *l)
	}
	s.o.Progress("logs", len(nums), len(nums))
	return nil
}

// ReadLog calls visit with every record of a log that checks out, also past damage. It returns an error if visit does,
// if a newer version wrote the log, or if the file system does not let it be read.
func (s *Store) ReadLog(num uint64, visit func(Record) error) (*Log, error) {
	l := &Log{Num: num, Name: manifest.FileName(manifest.FileWAL, num), End: math.MaxInt64}
	var refused error
	fault, err := s.Examine(l.Name, func(f vfs.ReadFile) (err error) {
		if l.Bytes, err = f.Size(); err == nil {
			refused = l.read(wal.NewReader(f, s.path(l.Name), num), visit)
		}
		return err
	})
	if err = cmp.Or(err, refused); err != nil {
		return nil, err
	}
	if fault != nil {
		l.Damage = damageOf(l.Name, fault)
	}
	return l, nil
}

func (l *Log) read(r *wal.Reader, visit func(Record) error) error {
	left, err := Records(r, func(offset int64, data []byte) error {
		return l.record(data, offset, visit)
	}, func(err error) error {
		l.broken = true
		switch {
		case errors.Is(err, wal.ErrNewerFormat):
			return err
		case r.CrashExplains(err):
			l.End = min(l.End, r.BrokenAt())
			l.Torn = fmt.Sprintf("%s breaks off, and does not tell whether what is missing was synced: %v", l.Name, err)
		default:
			l.Damage = append(l.Damage, damageOf(l.Name, err)...)
		}
		return nil
	})
	if left != nil {
		l.Skipped += l.Bytes - r.Offset()
	}
	l.Closed, l.syncedTo, l.Skipped = r.Clean(), r.SyncedTo(), l.Skipped+r.Skipped()
	return err
}

// endHistory decides which writes count. If a crash explains the end of the logs, all writes before it count. If not,
// something else was lost, and every record may be the last of its kind: then all count.
func (s *Store) endHistory() {
	live := s.LiveLogs()
	live = slices.DeleteFunc(live, neverUsedIn(live))
	cut := slices.IndexFunc(live, func(l *Log) bool { return !l.Closed || l.End < math.MaxInt64 })
	damaged := len(s.MissingLogs) > 0 || s.Manifest != nil && len(s.Manifest.Missing) > 0
	for i, l := range live {
		damaged = damaged || len(l.Damage) > 0 || l.valuesLost
		if cut >= 0 && i > cut && l.Records > 0 && l.syncedTo > 0 {
			damaged = true
			if c := live[cut]; len(c.tornValues) > 0 {
				s.note("%s has values that are not whole, although %s, which came later, was synced", c.Name, l.Name)
			} else {
				s.damaged(c.Name, c.Bytes, "the log has lost its end although %s, which came later, was synced", l.Name)
			}
		}
	}
	for i, l := range live {
		switch {
		case damaged:
			l.End = math.MaxInt64
			s.Damage = append(s.Damage, l.tornValues...)
			if l.unnamed > 0 {
				s.note("%s has handles of %d more values that are damaged", l.Name, l.unnamed)
			}
		case cut >= 0 && i > cut:
			l.End = 0
			if l.Records > 0 {
				s.note("%s counts for nothing: it does not prove that it was synced, and %s, which came before, "+
					"has lost its end",
					l.Name, live[cut].Name)
			}
		}
	}
}

// neverUsedIn returns a function that reports whether a live log was made in advance, abandoned,
// and not removed: it is empty, and the next log with bytes begins with the next write.
func neverUsedIn(live []*Log) func(*Log) bool {
	unused := map[*Log]bool{}
	last := uint64(0)
	for i, l := range live {
		last = max(last, l.LastSeq)
		next := slices.IndexFunc(live[i:], func(l *Log) bool { return l.Bytes > 0 })
		unused[l] = l.Bytes == 0 && next > 0 && last > 0 && live[i+next].FirstSeq == last+1
	}
	return func(l *Log) bool { return unused[l] }
}

// SuspectLogs returns the names of the logs that may have lost writes: those that are missing, damaged, or without
// their end.
func (s *Store) SuspectLogs() []string {
	names := slices.Clone(s.MissingLogs)
	for _, l := range s.LiveLogs() {
		if len(l.Damage) > 0 || !l.Closed {
			names = append(names, l.Name)
		}
	}
	return names
}

// LiveLogs returns the logs that may have writes in no table.
func (s *Store) LiveLogs() (live []*Log) {
	for i := range s.Logs {
		if !s.InTables(&s.Logs[i]) {
			live = append(live, &s.Logs[i])
		}
	}
	return live
}

// record counts a record and hands it on, if it is a batch. If not, the rest of the log may be whole all the same.
func (l *Log) record(data []byte, offset int64, visit func(Record) error) error {
	count, fault := l.countWrites(data)
	if fault != "" {
		l.Damage = append(l.Damage, Damage{File: l.Name, Offset: offset, What: "a record of the log: " + fault})
		l.Skipped, l.broken = l.Skipped+int64(len(data)), true
		return nil
	}
	rec := Record{Offset: offset, Seq: binary.LittleEndian.Uint64(data), Count: count, Data: data,
		Broken: l.broken}
	if l.Records++; l.Records == 1 {
		l.FirstSeq, l.FirstOffset = rec.Seq, offset
	}
	l.Writes += rec.Count
	l.LastSeq, l.LastOffset = max(l.LastSeq, rec.Seq+rec.Count-1), offset
	l.addRun(Run{SeqRange{rec.Seq, rec.Seq + rec.Count - 1}, l.broken})
	l.broken = false
	return visit(rec)
}

// addRun adds the sequence numbers of the next record.
func (l *Log) addRun(r Run) {
	if n := len(l.Runs); n > 0 && l.Runs[n-1].Last+1 == r.First {
		l.Runs[n-1].Last = r.Last
		return
	}
	l.Runs = append(l.Runs, r)
}

// countWrites returns the number of writes of a batch, or what is wrong with it, and notes the blob files
// that it refers to.
func (l *Log) countWrites(data []byte) (n uint64, fault string) {
	for e, err := range batchrepr.All(data) {
		if err != nil {
			return n, err.Error()
		}
		if kind := e.Key.Kind(); kind.Separated() {
			h, _, _ := blob.HandleOf(kind, e.Value) // the record would be malformed otherwise
			if l.Blobs == nil {
				l.Blobs = map[uint64]bool{}
			}
			l.Blobs[h.File] = true
		}
		n++
	}
	if n == 0 {
		return n, "a batch without writes"
	}
	return n, ""
}

// Records calls visit with every record of a log that checks out, past damage too, and
// fault with what is wrong in between. An error of either ends the walk, io.EOF as the
// end of the log does. left is an error that keeps the rest from being read.
func Records(r *wal.Reader, visit func(offset int64, record []byte) error, fault func(error) error) (left, err error) {
	for {
		record, broken := r.Next()
		switch {
		case errors.Is(broken, io.EOF):
			return nil, nil
		case broken == nil:
			err = visit(r.Offset(), record)
		default:
			err = fault(broken)
		}
		if errors.Is(err, io.EOF) {
			return nil, nil
		}
		if err != nil {
			return nil, err
		}
		if broken != nil && !r.Skip() {
			if _, left := r.Next(); !errors.Is(left, io.EOF) {
				return left, nil
			}
			return nil, nil
		}
	}
}
