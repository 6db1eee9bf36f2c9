package survey

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"github.com/siftkv/siftkv/internal/base"
	"github.com/siftkv/siftkv/internal/manifest"
	"github.com/siftkv/siftkv/internal/values"
	"github.com/siftkv/siftkv/internal/version"
)

// Open ends a log before a record of which a value is not whole, if a crash explains that. A deep survey reads the
// values as Open does, and decides the same. A value that was synced and is not whole is damage.

// loggedValues reads the values that logs have handles of.
type loggedValues struct {
	s      *Store
	replay values.Replay
	faults []valueFault // of one log
}

// maxFaults bounds how many faults are kept: those after them are not read. Open ends a log at the first.
const maxFaults = 16

// A valueFault is an error of a value of a record.
type valueFault struct {
	offset int64 // of the record
	last   uint64
	err    error
}

func (s *Store) newLoggedValues() *loggedValues {
	blobs := version.BlobCache{OpenFile: s.fs.Open,
		Path: func(num uint64) string { return s.path(manifest.FileName(manifest.FileBlob, num)) }}
	return &loggedValues{s: s, replay: values.Replay{Store: values.New(values.Config{Blobs: blobs})}}
}

// readLog reads a log, and the values of its records if they may be in no table.
func (v *loggedValues) readLog(num uint64) (*Log, error) {
	v.faults = v.faults[:0]
	l, err := v.s.ReadLog(num, func(rec Record) error {
		if !v.s.o.Deep || len(v.faults) == maxFaults || v.s.InTables(&Log{Num: num}) {
			return nil
		}
		_, err := v.replay.Inline(rec.Data, base.SeqNum(rec.Seq))
		if err == nil {
			return nil
		}
		if !v.s.IsDamage(err) {
			return err
		}
		v.faults = append(v.faults, valueFault{rec.Offset, rec.Seq + rec.Count - 1, err})
		return nil
	})
	if err == nil {
		v.classify(l)
	}
	return l, err
}

// classify decides what the faults of the log's values are. A blob file that is missing, or is no file of a log, is
// reported with the blob files.
func (v *loggedValues) classify(l *Log) {
	closed := cmp.Or(v.s.Manifest, &Manifest{}).ClosedSeq
	for _, f := range v.faults {
		ve, _ := errors.AsType[*values.ValueError](f.err)
		switch {
		case ve != nil && ve.CrashExplains(f.offset, l.syncedTo) && f.last > closed:
			if f.offset < l.End {
				l.End, l.tornValue = f.offset, damageOf(l.Name, f.err)[0]
				l.Torn = fmt.Sprintf("a value of %s is not whole, and the log does not tell whether it was synced: %v",
					l.Name, f.err)
			}
			continue
		case ve == nil || ve.Torn || !errors.Is(f.err, base.ErrCorruption):
			for _, d := range damageOf(l.Name, f.err) {
				if !slices.Contains(v.s.Damage, d) {
					v.s.Damage = append(v.s.Damage, d)
				}
			}
		}
		l.valuesLost = true
	}
}
