package survey

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"path/filepath"
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
		l, err := ReadLog(s.fs, s.Dir, num, func(Record) error { return nil })
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
// damage. It returns an error if visit does, or if a newer version wrote the log.
func ReadLog(fsys vfs.FS, dir string, num uint64, visit func(Record) error) (l *Log, err error) {
	l = &Log{Num: num, Name: manifest.FileName(manifest.FileWAL, num)}
	path := filepath.Join(dir, l.Name)
	f, err := fsys.Open(path)
	if err == nil {
		if l.Bytes, err = f.Size(); err != nil {
			err = errors.Join(err, f.Close())
		}
	}
	if err != nil {
		l.Damage = damageOf(l.Name, err)
		return l, nil
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	r := wal.NewReader(f, path, num)
	for {
		data, err := r.Next()
		switch {
		case errors.Is(err, io.EOF):
			l.Closed, l.Skipped = r.Clean(), l.Skipped+r.Skipped()
			return l, nil
		case errors.Is(err, wal.ErrNewerFormat):
			return nil, err
		case err == nil:
			if err := l.record(data, r.Offset(), visit); err != nil {
				return nil, err
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
			return l, nil
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
