package objstore

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// Bounds of keys, in bytes. A segment of 80 is a file name of at most 240 bytes, however it must be escaped.
const (
	MaxKey     = 1024
	MaxSegment = 80
)

// CheckKey returns an error that matches [ErrInvalidKey] unless key can be the key of an object. All stores use
// it, so that what one takes, all take. A key is valid UTF-8 of 1 to [MaxKey] bytes: segments of at most
// [MaxSegment] bytes with slashes between them. No segment is empty or ends with a dot (so there is no "."
// nor ".."). There are no control characters, no non-characters (U+xxFFFE and U+xxFFFF; XML cannot carry
// them) and no backslashes. These are the rules that S3, GCS, Azure and file systems have in common.
//
// Keys that differ in any byte are different keys. One key should not be a directory of another, as a is of a/b:
// stores that keep objects in files refuse the second of them.
func CheckKey(key string) error {
	if key == "" || len(key) > MaxKey {
		return fmt.Errorf("%w: it has %d bytes, not 1 to %d", ErrInvalidKey, len(key), MaxKey)
	}
	if !utf8.ValidString(key) {
		return fmt.Errorf("%w: it is not UTF-8", ErrInvalidKey)
	}
	for segment := range strings.SplitSeq(key, "/") {
		switch {
		case segment == "":
			return fmt.Errorf("%w: it has an empty segment", ErrInvalidKey)
		case strings.HasSuffix(segment, "."):
			return fmt.Errorf("%w: a segment ends with a dot", ErrInvalidKey)
		case len(segment) > MaxSegment:
			return fmt.Errorf("%w: a segment has %d bytes, more than %d", ErrInvalidKey, len(segment), MaxSegment)
		}
	}
	if i := strings.IndexFunc(key, isForbidden); i >= 0 {
		return fmt.Errorf("%w: there is a forbidden character at byte %d", ErrInvalidKey, i)
	}
	return nil
}

func isForbidden(r rune) bool {
	return r < ' ' || 0x7f <= r && r <= 0x9f || r == '\\' || r&0xfffe == 0xfffe
}
