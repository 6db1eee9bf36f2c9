package envelope

import (
	"bytes"
	"fmt"
	"io"
	"math"
)

// A Format is how the sets of one family are stored. Its methods are what a
// set's own methods of encoding consist of, but for the two things in which
// families differ: the payload, in parts, and the function that makes a set of a
// payload.
type Format struct {
	Family  byte
	Version byte   // of the payload; sets of another one are refused
	Made    string // what makes a set that can be written, for people to read

	// MaxPayload is the most bytes that a payload has, where a family knows; 0
	// means any number.
	MaxPayload uint64
}

// Append appends a stored set to dst. A set without parts, as a zero one has
// none, is refused, and dst returned as it is: whoever wrote it would lose keys.
func (f Format) Append(dst []byte, parts [][]byte) ([]byte, error) {
	if parts == nil {
		return dst, f.zero()
	}
	return Append(dst, f.Family, f.Version, parts...), nil
}

// Write writes a stored set to w, without a copy of its parts, and returns the
// number of bytes written. A set without parts is refused.
func (f Format) Write(w io.Writer, parts [][]byte) (n int64, err error) {
	if parts == nil {
		return 0, f.zero()
	}
	return writeTo(w, f.Family, f.Version, parts...)
}

// Unmarshal checks data, which must be one stored set and nothing else, and gives
// a copy of its payload to load, which may keep it. An error that is not one of
// load matches ErrCorrupt.
func (f Format) Unmarshal(data []byte, load func(payload []byte) error) error {
	payload, version, err := open(data, f.Family)
	if err != nil {
		return err
	}
	if err := f.check(version); err != nil {
		return err
	}
	return load(bytes.Clone(payload))
}

// Read reads one stored set from r, up to its end and not beyond, and gives
// its payload to load, which may keep it. n is the number of bytes taken from r,
// with an error too. Memory grows with what is read, not with what a header
// promises. An error that is not one of r or load matches ErrCorrupt.
func (f Format) Read(r io.Reader, load func(payload []byte) error) (n int64, err error) {
	most := f.MaxPayload
	if most == 0 {
		most = math.MaxUint64
	}
	payload, version, n, err := readFrom(r, f.Family, most)
	if err != nil {
		return n, err
	}
	if err := f.check(version); err != nil {
		return n, err
	}
	return n, load(payload)
}

func (f Format) check(version byte) error {
	if version != f.Version {
		return Corruptf("version is %d; this program reads version %d", version, f.Version)
	}
	return nil
}

func (f Format) zero() error {
	return fmt.Errorf("filterpolicy: a zero set cannot be written; make it with %s", f.Made)
}
