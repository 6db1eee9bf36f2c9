package frompebble

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/cockroachdb/pebble/v2/record"

	"github.com/siftkv/siftkv/cmd/siftimport/internal/source"
)

// Pebble takes what it cannot read in its manifest, or in a log whose end was not synced, for the end that a crash has
// cut, and leaves out what follows: one byte costs all writes of a log without a word. So both are read here first, and
// have to end as those of a store that was closed.

// checkRecords returns an error unless the manifest and all logs can be read to their ends.
func (s *store) checkRecords(manifest string) error {
	logs, err := filepath.Glob(filepath.Join(filepath.Dir(manifest), "*.log"))
	if err != nil {
		return err
	}
	if err := s.checkFile(manifest, 0); err != nil {
		return err
	}
	for _, log := range logs {
		number := uint64(0)
		if _, err := fmt.Sscanf(filepath.Base(log), "%d", &number); err != nil {
			continue // it is no log of Pebble's
		}
		if err := s.checkFile(log, number); err != nil {
			return err
		}
	}
	return nil
}

func (s *store) checkFile(path string, number uint64) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }()
	r := numbered(record.NewReader, f, number)
	for {
		var one io.Reader
		if one, err = r.Next(); err == nil {
			_, err = io.Copy(io.Discard, one)
		}
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return fmt.Errorf("%s was not closed, or %w: %w: Pebble brings the former in order when it opens the "+
				"store to write", filepath.Join(s.dir, filepath.Base(path)), source.ErrDamaged, err)
		}
	}
}

// numbered calls a function with a number of a type that has no name here.
func numbered[N ~uint64](f func(io.Reader, N) *record.Reader, r io.Reader, n uint64) *record.Reader {
	return f(r, N(n))
}
