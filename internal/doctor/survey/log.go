package survey

import (
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/siftkv/siftkv/internal/base"
	"github.com/siftkv/siftkv/internal/manifest"
	"github.com/siftkv/siftkv/internal/vfs"
	"github.com/siftkv/siftkv/internal/wal"
	"github.com/siftkv/siftkv/kv"
)

// A Log is what could be read of a write-ahead log, behind damage too.
type Log struct {
	Num      uint64
	Name     string
	Bytes    int64
	Records  int
	Writes   uint64 // keys set or deleted, and ranges deleted
	FirstSeq uint64 // of the records that check out; 0 if there are none
	LastSeq  uint64
	// FirstOffset is where the first record that checks out begins.
	FirstOffset int64
	Closed      bool  // its end is there
	Skipped     int64 // bytes that no record comes from, and might
	Damage      []Damage
	Torn        string // how it breaks off, if in a way that a crash explains
}

// A Record is a batch in a log. Its data is valid during the call that got it.
type Record struct {
	Offset int64
	Seq    uint64 // of the first write; the others count up
	Count  uint64 // of writes
	Data   []byte
}

// readLogs reads every log on disk.
func (s *Store) readLogs(names []string) error {
	var nums []uint64
	for _, name := range names {
		if kind, num := manifest.ParseFileName(name); kind == manifest.FileWAL {
			nums = append(nums, num)
		}
	}
	slices.Sort(nums)
	for i, num := range nums {
		if err := s.ctx.Err(); err != nil {
			return err
		}
		s.o.Progress("logs", i, len(nums))
		l, err := s.ReadLog(num, func(Record) error { return nil })
		if err != nil {
			return err
		}
		if s.Manifest == nil || num >= s.Manifest.LogNum {
			s.Damage = append(s.Damage, l.Damage...)
			if l.Torn != "" {
				s.note("%s", l.Torn)
			}
		}
		s.Logs = append(s.Logs, *l)
	}
	s.o.Progress("logs", len(nums), len(nums))
	return nil
}

// ReadLog calls visit with every record of a log that checks out, also behind
// damage. It returns an error if visit does, if a newer version wrote the log, or if
// the file system does not let it be read.
func (s *Store) ReadLog(num uint64, visit func(Record) error) (*Log, error) {
	l := &Log{Num: num, Name: manifest.FileName(manifest.FileWAL, num)}
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

// read reads all of the log.
func (l *Log) read(r *wal.Reader, visit func(Record) error) error {
	for {
		data, err := r.Next()
		switch {
		case errors.Is(err, io.EOF):
			l.Closed, l.Skipped = r.Clean(), l.Skipped+r.Skipped()
			return nil
		case errors.Is(err, wal.ErrNewerFormat):
			return err
		case err == nil:
			if err := l.record(data, r.Offset(), visit); err != nil {
				return err
			}
			continue
		case r.CrashExplains(err):
			l.Torn = fmt.Sprintf("%s breaks off in writes that were not synced: %v", l.Name, err)
		default:
			l.Damage = append(l.Damage, damageOf(l.Name, err)...)
		}
		if !r.Skip() {
			if _, err := r.Next(); !errors.Is(err, io.EOF) {
				l.Skipped += l.Bytes - r.Offset() // the file cannot be read on
			}
			l.Skipped += r.Skipped()
			return nil
		}
	}
}

// record counts a record and hands it on, if it is a batch. If not, the rest of the
// log may be whole all the same.
func (l *Log) record(data []byte, offset int64, visit func(Record) error) error {
	count, fault := countWrites(data)
	if fault != "" {
		l.Damage = append(l.Damage, Damage{File: l.Name, Offset: offset, What: "a record of the log: " + fault})
		l.Skipped += int64(len(data))
		return nil
	}
	rec := Record{Offset: offset, Seq: binary.LittleEndian.Uint64(data), Count: count, Data: data}
	if l.Records++; l.Records == 1 {
		l.FirstSeq, l.FirstOffset = rec.Seq, offset
	}
	l.Writes += rec.Count
	l.LastSeq = max(l.LastSeq, rec.Seq+rec.Count-1)
	return visit(rec)
}

// countWrites returns the number of writes of a batch, or what is wrong with it.
func countWrites(data []byte) (n uint64, fault string) {
	err := kv.DecodeRecord(data, func(base.InternalKey, []byte) error { n++; return nil })
	switch {
	case err != nil:
		return n, err.Error()
	case n == 0:
		return n, "a batch without writes"
	}
	return n, ""
}
