package base

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"time"
)

// ExpirySize is the length of an expiry before a value, in bytes.
const ExpirySize = 8

// The value of a KindSetTTL entry:
//
//	expiry  uint64  microseconds since 1970-01-01 UTC; readers no longer see the
//	                value when their clock has reached it
//	value   the rest

// ErrInvalidTTL is matched by errors about a time to live, or an expiry, that no value can have.
var ErrInvalidTTL = errors.New("siftkv: invalid time to live")

// lastExpiry is the last moment that a value can end at.
var lastExpiry = time.UnixMicro(math.MaxInt64)

// ExpiryAt returns a moment in microseconds since 1970; 0 if it is not after that: no clock of a store shows an earlier
// one.
func ExpiryAt(t time.Time) (uint64, error) {
	if t.After(lastExpiry) {
		return 0, fmt.Errorf("%w: %v is too late", ErrInvalidTTL, t)
	}
	if t.Before(time.UnixMicro(0)) {
		return 0, nil
	}
	return uint64(t.UnixMicro()), nil
}

// AppendExpiry appends an expiry to dst; the value follows.
func AppendExpiry(dst []byte, expiry uint64) []byte {
	return binary.LittleEndian.AppendUint64(dst, expiry)
}

// CutExpiry splits the value of a KindSetTTL entry. It reports false for one that is too short to have an expiry. The
// value aliases b.
func CutExpiry(b []byte) (expiry uint64, value []byte, ok bool) {
	if len(b) < ExpirySize {
		return 0, nil, false
	}
	return binary.LittleEndian.Uint64(b), b[ExpirySize:], true
}

var errNoExpiry = errors.New("the value of an entry of kind set-ttl has no expiry")

// Unexpired splits the value of a KindSetTTL entry, and reports whether it can still be seen at now.
func Unexpired(b []byte, now uint64) (value []byte, live bool, err error) {
	expiry, value, ok := CutExpiry(b)
	if !ok {
		return nil, false, errNoExpiry
	}
	return value, now < expiry, nil
}
