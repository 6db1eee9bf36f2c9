package keys

import (
	"github.com/siftkv/siftkv/cmd/kvbench/internal/bench"
)

// A Request says which keys a user asked for.
type Request struct {
	// a plain integer: that many generated keys; anything else: the path of a file with keys or of a lookup trace
	Keys    string
	Name    string // of the file, by Name: a file that is another one by now is an error; empty: whatever is there
	KeySize int    // bytes of a generated key; not used for a file
	MaxLen  int    // bytes of the longest line of a file
	Fill    int    // keys of a trace that are there and are not asked for
	Seed    uint64
}

// Open returns the source that the request names. A file whose name is a plain
// integer is reached by a path such as ./1000.
func Open(r Request) (Source, error) {
	if n, ok := Count(r.Keys); ok {
		return NewGenerated(n, r.KeySize, r.Seed)
	}
	if r.Keys == "" {
		return nil, bench.Usagef("no keys: give a count or a file with one key per line")
	}
	if r.Name != "" {
		if err := checkName(r.Keys, r.Name); err != nil {
			return nil, err
		}
	}
	if isTrace(r.Keys) {
		return OpenTrace(r.Keys, r.Fill, r.Seed)
	}
	return OpenFile(r.Keys, r.MaxLen, r.Seed)
}
