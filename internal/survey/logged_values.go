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

	faults  []valueFault // of one log
	unnamed int          // values after these that are not whole
}

// maxNamed bounds how many values of a log that are not whole are named.
const maxNamed = 100

// A valueFault is an error of a value of a record.
type valueFault struct {
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
	v.faults, v.unnamed = v.faults[:0], 0
	l, err := v.s.ReadLog(num, func(rec Record) error {
		if !v.s.o.Deep || v.s.InTables(&Log{Num: num}) {
			return nil
		}
		v.replay.Fault = func(err *values.ValueError) error { return v.note(rec, err) }
		_, err := v.replay.Inline(rec.Data, base.SeqNum(rec.Seq))
		return err
	})
	if err == nil {
		v.classify(l)
	}
	return l, err
}

// note keeps a fault of a record, or the number of values that are not whole if there are many: one that was kept has
// ended the log before the others, or is damage. A file that is missing is one fault. It returns what is no damage.
func (v *loggedValues) note(rec Record, err *values.ValueError) error {
	switch {
	case !v.s.IsDamage(err):
		return err
	case err.Torn && len(v.faults) >= maxNamed:
		v.unnamed++
	case err.Torn || !slices.ContainsFunc(v.faults, func(f valueFault) bool { return f.err.Error() == err.Error() }):
		v.faults = append(v.faults, valueFault{rec.Offset, rec.Seq + rec.Count - 1, err})
	}
	return nil
}

// classify decides what the faults of the log's values are. A blob file that is missing, or is no file of a log, is
// reported with the blob files.
func (v *loggedValues) classify(l *Log) {
	closed := cmp.Or(v.s.Manifest, &Manifest{}).ClosedSeq
	for _, f := range v.faults {
		d := damageOf(l.Name, f.err)[0]
		switch {
		case f.err.CrashExplains(f.offset, l.syncedTo) && f.last > closed:
			if f.offset < l.End {
				l.End, l.tornValue = f.offset, d
				l.Torn = fmt.Sprintf("a value of %s is not whole, and the log does not tell whether it was synced: %v",
					l.Name, f.err)
			}
			continue
		case f.err.Torn || !errors.Is(f.err, base.ErrCorruption):
			if !slices.Contains(v.s.Damage, d) {
				v.s.Damage = append(v.s.Damage, d)
			}
		}
		l.valuesLost = true
	}
	if v.unnamed > 0 && l.valuesLost {
		v.s.note("%s has handles of %d more values that are not whole", l.Name, v.unnamed)
	}
}
