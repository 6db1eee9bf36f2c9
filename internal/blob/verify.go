package blob

import (
	"bytes"
	"errors"
	"fmt"

	"github.com/siftkv/siftkv/internal/base"
	"github.com/siftkv/siftkv/internal/vfs"
)

// maxFaults bounds how many faults Verify reports.
const maxFaults = 16

// Verify reads the whole file, and checks header, footer, every key, every value, the order of the keys, and that the
// footer counts what is there. It calls visit, if it is not nil, with each record that has a right key, and its handle
// in a file of number num. Slices are valid for one call. An error of visit or of reading ends the pass and is returned
// alone. Otherwise it returns all faults, joined, up to a bound; each matches base.ErrCorruption, and names the key if
// that is known.
func (r *Reader) Verify(num uint64, visit func(h Handle, rec Record) error) error {
	v := verifier{r: r, num: num, visit: visit}
	said, err := r.info()
	if errors.Is(err, base.ErrCorruption) && r.again != nil { // the bytes may have been damaged on their way
		again := vfs.AgainFile{Rereader: r.again}
		said, err = (&Reader{file: again, name: r.name, hint: r.hint, id: r.id, size: r.size}).info()
	}
	switch {
	case err == nil && said.ID != r.id:
		v.faults = append(v.faults, r.corrupt(0, fmt.Errorf("this is another file: its id is %#x, want %#x", said.ID,
			r.id)))
	case err == nil:
		v.byKey = !said.ByCommit
	case errors.Is(err, base.ErrCorruption):
		v.faults = append(v.faults, err)
	default:
		return err
	}
	s, err := NewScanner(r)
	if err == nil {
		err = v.records(s)
	}
	if err != nil {
		return err
	}
	if found := v.found; len(v.faults) == 0 {
		said.Num, said.ID, said.ByCommit, found.Size = 0, 0, false, said.Size
		if said != found {
			v.faults = append(v.faults, r.corrupt(r.size-footerSize, fmt.Errorf(
				"the footer says %d records, %d bytes of keys and %d of values; found %d, %d and %d", said.Records,
				said.KeyBytes, said.ValueBytes, found.Records, found.KeyBytes, found.ValueBytes)))
		}
	}
	return errors.Join(v.faults...)
}

type verifier struct {
	r      *Reader
	num    uint64
	visit  func(h Handle, rec Record) error
	faults []error
	found  Info
	last   []byte
	byKey  bool // the file says that keys do not descend
}

// fault notes damage. It returns another error as it is, and one that ends the pass when there are enough faults.
func (v *verifier) fault(err error) error {
	if !errors.Is(err, base.ErrCorruption) {
		return err
	}
	if v.faults = append(v.faults, err); len(v.faults) == maxFaults {
		return errEnough
	}
	return nil
}

// records goes through all records. It returns what ended that early, if it is no damage.
func (v *verifier) records(s *Scanner) error {
	for {
		on := s.Next()
		if err := s.Err(); err != nil {
			if err := v.fault(err); err != nil {
				return endOf(err)
			}
			if on = s.Skip(); !on && s.Err() != nil {
				return v.fault(s.Err())
			}
		}
		if !on {
			return nil
		}
		if err := v.one(s); err != nil {
			return endOf(err)
		}
	}
}

var errEnough = errors.New("enough faults")

// endOf is nil for what ends the pass when there are enough faults.
func endOf(err error) error {
	if errors.Is(err, errEnough) {
		return nil
	}
	return err
}

// one checks the record that s is on.
func (v *verifier) one(s *Scanner) error {
	rec := s.Record()
	if v.byKey && v.found.Records > 0 && bytes.Compare(rec.Key, v.last) < 0 {
		if err := v.fault(v.r.corrupt(s.at, fmt.Errorf("key %q stands after %q", rec.Key, v.last))); err != nil {
			return err
		}
	}
	v.last = append(v.last[:0], rec.Key...)
	v.found.Records++
	v.found.KeyBytes += uint64(len(rec.Key))
	v.found.ValueBytes += uint64(rec.Size)
	if v.visit != nil {
		if err := v.visit(s.Handle(v.num), rec); err != nil {
			return err
		}
	}
	if err := s.Check(); err != nil {
		return v.fault(err)
	}
	return nil
}
