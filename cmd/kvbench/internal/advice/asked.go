package advice

import (
	"context"
	"slices"

	"github.com/siftkv/siftkv/cmd/kvbench/internal/keys"
	"github.com/siftkv/siftkv/internal/advise"
)

// asked is what a trace asked for.
type asked struct {
	trace  *advise.Trace // whose scans all have bounds that are known, or none
	hashes bool          // in place of keys
	vague  int           // scans that are left out: their bounds are not known
}

// readAsked reads a trace, up to so many lookups and scans.
func readAsked(ctx context.Context, path string, most int) (*asked, error) {
	r, f, err := keys.OpenRecords(path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }() // it was only read
	t, err := advise.ReadTrace(ctx, r, most)
	if err != nil {
		return nil, err
	}
	n := len(t.Scans)
	t.Scans = slices.DeleteFunc(t.Scans, func(s advise.Scan) bool { return s.Hashed || s.Shortened })
	return &asked{trace: t, hashes: !r.Header().Keys, vague: n - len(t.Scans)}, nil
}

// locate finds the path of each key in a store.
func (a *asked) locate(ctx context.Context, s *store, tick func(int)) error {
	for i := range a.trace.Keys {
		if i%256 == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
		if k := &a.trace.Keys[i]; !k.Pathless {
			if err := s.path(k); err != nil {
				return err
			}
		}
		tick(1)
	}
	for i := range a.trace.Scans {
		if i%64 == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
		if err := s.parts(&a.trace.Scans[i]); err != nil {
			return err
		}
		tick(1)
	}
	s.noteSizes()
	a.trace.CountChanged()
	return nil
}
