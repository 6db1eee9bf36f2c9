package keys

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"

	"github.com/klauspost/compress/gzip"

	"github.com/siftkv/siftkv/cmd/kvbench/internal/bench"
)

// lineStats counts what reading a file met.
type lineStats struct {
	lines, empty, duplicates int
}

// gzipMagic opens every gzip member (RFC 1952, section 2.3.1).
var gzipMagic = []byte{0x1f, 0x8b}

// plain returns the text of r: r itself, or unpacked if it holds gzip.
func plain(r io.Reader) (io.Reader, error) {
	buffered := bufio.NewReaderSize(r, 1<<16)
	head, err := buffered.Peek(len(gzipMagic))
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	if !bytes.Equal(head, gzipMagic) {
		return buffered, nil
	}
	return gzip.NewReader(buffered)
}

// readLines collects the distinct lines of r. A line ends with LF or CR LF; the
// last may have no end. Empty lines are skipped. A line above maxLen bytes is
// an error that names its number.
func readLines(r io.Reader, maxLen int, seed uint64) (*set, lineStats, error) {
	var stats lineStats
	seen := newSet(seed)
	// One byte more than the longest line and its CR LF, so that a full buffer
	// without a line end means a line too long.
	lines := bufio.NewReaderSize(r, max(maxLen+3, 1<<16))
	for {
		line, err := lines.ReadSlice('\n')
		if len(line) == 0 && errors.Is(err, io.EOF) {
			seen.seal()
			return seen, stats, nil
		}
		stats.lines++
		tooLong := errors.Is(err, bufio.ErrBufferFull)
		if err != nil && !tooLong && !errors.Is(err, io.EOF) {
			return nil, stats, fmt.Errorf("line %d: %w", stats.lines, err)
		}
		line = bytes.TrimSuffix(bytes.TrimSuffix(line, []byte("\n")), []byte("\r"))
		switch {
		case tooLong || len(line) > maxLen:
			return nil, stats, bench.Usagef("line %d: longer than %d bytes, the limit of a key", stats.lines, maxLen)
		case len(line) == 0:
			stats.empty++
			continue
		}
		added, err := seen.add(line)
		if err != nil {
			return nil, stats, fmt.Errorf("line %d: %w", stats.lines, err)
		}
		if !added {
			stats.duplicates++
		}
	}
}
