package frompebble

import (
	"bufio"
	"bytes"
	"fmt"
	"os"
	"strings"

	"github.com/cockroachdb/pebble/v2"

	"github.com/siftkv/siftkv/cmd/siftimport/internal/source"
)

// mergerOf returns a merger of the name that a file of options has, so that Pebble opens the store: its own, or, in the
// place of a program's, one that refuses operands. A store that has none is read as any other.
func mergerOf(options string) (*pebble.Merger, error) {
	text, err := os.ReadFile(options)
	if err != nil {
		return nil, err
	}
	name := pebble.DefaultMerger.Name
	for lines := bufio.NewScanner(bytes.NewReader(text)); lines.Scan(); {
		if value, ok := strings.CutPrefix(strings.TrimSpace(lines.Text()), "merger="); ok {
			name = value
		}
	}
	if name == pebble.DefaultMerger.Name {
		return pebble.DefaultMerger, nil
	}
	return &pebble.Merger{Name: name, Merge: func(key, _ []byte) (pebble.ValueMerger, error) {
		return nil, fmt.Errorf("%w: %.64q has operands of the program's own merger %q: write them as values first",
			source.ErrUnsupported, key, name)
	}}, nil
}

// A logger keeps Pebble quiet. Its errors come back from calls.
type logger struct{}

func (*logger) Infof(string, ...any) {}

func (*logger) Errorf(string, ...any) {}

// Fatalf implements pebble.Logger: it must not return.
func (*logger) Fatalf(format string, args ...any) { panic(fmt.Sprintf(format, args...)) }
