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

	faults  []valueFault // of one log, the first maxNamed, each once
	unnamed int          // values of that log after these
	lost    bool         // a value of it cannot be read, and no crash explains that
}

const maxNamed = 100 // damaged values of a log

// A valueFault is an error of a value of a record.
type valueFault struct {
	Damage
	offset int64 // of the record
	last   uint64
	err    *values.ValueError
}

func (s *Store) newLoggedValues() *loggedValues {
	blobs := version.BlobCache{OpenFile: s.fs.Open,
		Path: func(num uint64) string { return s.path(manifest.FileName(manifest.FileBlob, num)) }}
	return &loggedValues{s: s, replay: values.Replay{Store: values.New(values.Config{Blobs: blobs})}}
}

// readLog reads a log, and the values of its records if they may be in no table.
func (v *loggedValues) readLog(num uint64) (*Log, error) {
	v.faults, v.unnamed, v.lost = v.faults[:0], 0, false
	l, err := v.s.ReadLog(num, func(rec Record) error {
		if !v.s.o.Deep || v.s.InTables(&Log{Num: num}) {
			return nil
		}
		v.replay.Fault = func(err *values.ValueError) error { return v.note(num, rec, err) }
		_, err := v.replay.Inline(rec.Data, base.SeqNum(rec.Seq))
		return err
	})
	if err == nil {
		v.classify(l)
	}
	return l, err
}

// note keeps the first maxNamed faults of a log and counts the others. Offsets ascend: if a torn value was synced, the
// first torn one that was kept was too, or lost is set. It returns an error that is not damage.
// A blob file that is missing, or is not the file of a log, is reported with the blob files.
func (v *loggedValues) note(log uint64, rec Record, err *values.ValueError) error {
	if !v.s.IsDamage(err) {
		return err
	}
	v.lost = v.lost || !err.Torn
	d := damageOf(manifest.FileName(manifest.FileWAL, log), err)[0]
	switch {
	case !err.Torn && errors.Is(err, base.ErrCorruption):
	case slices.ContainsFunc(v.faults, func(f valueFault) bool { return f.Damage == d }):
	case len(v.faults) < maxNamed:
		v.faults = append(v.faults, valueFault{d, rec.Offset, rec.Seq + rec.Count - 1, err})
	default:
		v.unnamed++
	}
	return nil
}

// classify decides what the faults of the log's values are. What a crash explains counts as damage only if endHistory
// decides that all records count.
func (v *loggedValues) classify(l *Log) {
	closed := cmp.Or(v.s.Manifest, &Manifest{}).ClosedSeq
	l.valuesLost, l.unnamed = v.lost, v.unnamed
	for _, f := range v.faults {
		switch {
		case f.err.CrashExplains(f.offset, l.syncedTo) && f.last > closed:
			if f.offset < l.End {
				l.End = f.offset
				l.Torn = fmt.Sprintf("a value of %s is not whole, and the log does not tell whether it was synced: %v",
					l.Name, f.err)
			}
			l.tornValues = append(l.tornValues, f.Damage)
			continue
		case !slices.Contains(v.s.Damage, f.Damage):
			v.s.Damage = append(v.s.Damage, f.Damage)
		}
		l.valuesLost = true
	}
}
