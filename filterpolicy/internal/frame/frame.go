// Package frame describes and guards what is stored: a filter's cells by a footer, for a file, and
// an application's set by an envelope, for wherever it is kept.
package frame

import (
	"fmt"
	"hash/crc32"

	"github.com/siftkv/siftkv/internal/base"
)

// A Family is the letter by which stored bytes name their family.
type Family byte

// The letters of the families are on disk and never change.
const (
	Bloom     Family = 'b'
	Blocked   Family = 'l'
	Cuckoo    Family = 'c'
	Ribbon    Family = 'r'
	GCS       Family = 'g'
	Quotient  Family = 'q'
	Xor       Family = 'x'
	Fuse      Family = 'f'
	CutKeys   Family = 'k' // of ranges
	Counting  Family = 'n' // of sets only, as the next two
	Scalable  Family = 's'
	Immutable Family = 'i'
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// ErrCorrupt is matched by every error about bytes that are not a filter or a set of the family
// that was asked for. It matches base.ErrCorruption in turn.
var ErrCorrupt = fmt.Errorf("filterpolicy: not a valid filter: %w", base.ErrCorruption)

// Corruptf returns an error that matches ErrCorrupt and says what is wrong.
func Corruptf(format string, args ...any) error {
	return fmt.Errorf("%w: %s", ErrCorrupt, fmt.Sprintf(format, args...))
}
