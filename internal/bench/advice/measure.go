package advice

import (
	"context"
	"errors"
	"fmt"

	"github.com/siftkv/siftkv/internal/advise"
	"github.com/siftkv/siftkv/kv"
)

// Measured is what the lookups of a trace read, each on average.
type Measured struct {
	All    advise.Cost `json:"all"`
	Found  advise.Cost `json:"found"`
	Absent advise.Cost `json:"absent"`
}

// measure looks up what a trace asked for in the store in dir, which is only read, and counts
// from the lookup on with which the model begins to count. The cache is empty at first.
func (a *asked) measure(ctx context.Context, dir string, o *kv.Options, cache int64, warm int,
	tick func(int)) (m Measured, err error) {
	db, err := openReadOnly(dir, o, cache)
	if err != nil {
		return m, err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	for i, l := range a.trace.Lookups {
		if i%256 == 0 && ctx.Err() != nil {
			return m, ctx.Err()
		}
		e, err := db.Explain(a.keys[l.Key])
		if err != nil {
			return m, fmt.Errorf("advise: look up %q: %w", a.keys[l.Key], err)
		}
		if e.Found != a.trace.Keys[l.Key].Found {
			return m, fmt.Errorf("advise: %q is in one of the stores and not in the other", a.keys[l.Key])
		}
		if tick(1); i < warm {
			continue
		}
		for _, c := range []*advise.Cost{&m.All, m.of(e.Found)} {
			add(c, e)
		}
	}
	for _, c := range []*advise.Cost{&m.All, &m.Found, &m.Absent} {
		n := float64(max(1, c.Operations))
		c.Blocks, c.Probes, c.Reads, c.Bytes = c.Blocks/n, c.Probes/n, c.Reads/n, c.Bytes/n
		c.Low, c.High = c.Blocks, c.Blocks
	}
	return m, nil
}

func (m *Measured) of(found bool) *advise.Cost {
	if found {
		return &m.Found
	}
	return &m.Absent
}

// add adds what a lookup did.
func add(c *advise.Cost, e *kv.Explanation) {
	c.Operations++
	for i := range e.Steps {
		p := &e.Steps[i].Probe
		c.Blocks += float64(p.BlocksFromCache + p.BlocksFromDisk)
		c.Reads += float64(p.BlocksFromDisk)
		c.Bytes += float64(p.BytesFromDisk)
		if p.Filter != 0 {
			c.Probes++
		}
	}
}
