package advice

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/siftkv/siftkv/internal/advise"
	"github.com/siftkv/siftkv/kv"
	"github.com/siftkv/siftkv/kv/explain"
	"github.com/siftkv/siftkv/kv/metrics"
)

// Measured is what the lookups of a trace read, each on average.
type Measured struct {
	All    advise.Cost `json:"all"`
	Found  advise.Cost `json:"found"`
	Absent advise.Cost `json:"absent"`
	Scans  advise.Cost `json:"scans"`

	// Left is how many lookups were left out: of keys that have the other answer now.
	Left int `json:"left_out"`
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
	counted := time.Duration(0)
	if warm < len(a.trace.Lookups) {
		counted = a.trace.Lookups[warm].At
	}
	next, began := 0, metrics.Scans{}
	scans := func(until time.Duration) error { // those that came before a moment
		for ; next < len(a.trace.Scans) && a.trace.Scans[next].At < until; next++ {
			if a.trace.Scans[next].At >= counted {
				m.Scans.Operations++
			}
			if err := walkScan(db, &a.trace.Scans[next]); err != nil {
				return err
			}
			tick(1)
		}
		return ctx.Err()
	}
	for i, l := range a.trace.Lookups {
		if err := scans(l.At); err != nil {
			return m, err
		}
		if i == warm {
			began = scanned(db)
		}
		if err := a.lookUp(db, &m, l.Key, i >= warm); err != nil {
			return m, err
		}
		tick(1)
	}
	if err := scans(math.MaxInt64); err != nil {
		return m, err
	}
	read := scanned(db).Sub(began)
	m.Scans.Reads, m.Scans.Bytes = float64(read.BlocksFromDisk), float64(read.BytesFromDisk)
	m.Scans.Blocks = float64(read.BlocksFromDisk + read.BlocksFromCache)
	m.Scans.Probes = float64(read.RangeFilterChecks())
	for _, c := range []*advise.Cost{&m.All, &m.Found, &m.Absent, &m.Scans} {
		n := float64(max(1, c.Operations))
		c.Blocks, c.Probes, c.Reads, c.Bytes = c.Blocks/n, c.Probes/n, c.Reads/n, c.Bytes/n
		c.Low, c.High = c.Blocks, c.Blocks
	}
	return m, nil
}

// lookUp looks a key up, and counts that if it is to be counted.
func (a *asked) lookUp(db *kv.DB, m *Measured, key int32, counted bool) error {
	k := &a.trace.Keys[key]
	e, err := db.Explain(k.Bytes)
	if err != nil {
		return fmt.Errorf("advise: look up %q: %w", k.Bytes, err)
	}
	switch {
	case e.Found == k.Found:
	case k.Changed: // a store of then would be needed
		m.Left++
		return nil
	default:
		return fmt.Errorf("advise: %q is in one of the stores and not in the other", k.Bytes)
	}
	if counted {
		add(&m.All, e)
		add(m.of(e.Found), e)
	}
	return nil
}

// walkScan goes through as many entries as a scan of the trace did.
func walkScan(db *kv.DB, s *advise.Scan) error {
	lo, hi := s.Bounds()
	it, err := db.NewIter(&kv.IterOptions{LowerBound: lo, UpperBound: hi})
	if err != nil {
		return fmt.Errorf("advise: %w", err)
	}
	first, step := it.First, it.Next
	if s.Backward {
		first, step = it.Last, it.Prev
	}
	left := s.Entries
	for ok := first(); ok && (left > 1 || s.Ended); ok = step() {
		left--
	}
	return errors.Join(it.Error(), it.Close())
}

// scanned sums up what scans have done so far.
func scanned(db *kv.DB) (sum metrics.Scans) {
	m := db.Metrics()
	for i := range m.Levels {
		sum = sum.Add(m.Levels[i].Scan)
	}
	return sum
}

func (m *Measured) of(found bool) *advise.Cost {
	if found {
		return &m.Found
	}
	return &m.Absent
}

// add adds what a lookup did.
func add(c *advise.Cost, e *explain.Lookup) {
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
