// Package advice says which filters, cache size and filter budget suit a store, by its own lookups and scans:
//
//	r, err := advice.For(ctx, db, nil)
//	fmt.Println(r.Words)
//
// A program that does not import it does not link the model of costs.
package advice

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/siftkv/siftkv/filterpolicy"
	"github.com/siftkv/siftkv/internal/advise"
	"github.com/siftkv/siftkv/internal/base"
	"github.com/siftkv/siftkv/internal/lookuptrace"
	"github.com/siftkv/siftkv/internal/storeview"
	"github.com/siftkv/siftkv/kv"
)

// Errors of For.
var (
	// ErrNoSample means that the store keeps no sample of its lookups: see kv.Options.LookupSample.
	ErrNoSample = errors.New("siftkv: the store keeps no sample of its lookups: set Options.LookupSample")
	// ErrSmallSample is matched by the error about a sample or trace that is too small. The error
	// has the number of its lookups and scans, and the number that advice needs.
	ErrSmallSample = errors.New("siftkv: too few lookups for advice")
)

const (
	minOperations = 1000      // lookups and scans that advice needs, together
	maxOperations = 2_000_000 // lookups that it takes from a trace, and as many scans
)

// Options are the input of For. The zero value of each field means its default.
type Options struct {
	// Trace is one that a lookuptrace.Tracer wrote, of this store or another with the same keys. If it has hashes in
	// place of keys, the model assumes where they lead, and the confidence is less. For takes up to two million
	// lookups of it, and as many scans, with some hundred bytes of memory for each distinct key. Nil: the sample of
	// kv.Options.LookupSample.
	Trace io.Reader
	// Filters are specs of the filters to try. Nil: blocked and ribbon filters of few bits to many, some others, and
	// the store's own.
	Filters []string
	// Memory is what filters and cache may take together, in bytes. 0: as much as now.
	Memory int64
	// DeviceRead is how long a read of a block takes that the cache does not have. 0: For measures it, with files in
	// the page cache as they are; 10 ms in an object store.
	DeviceRead time.Duration
}

// check returns an error about the first wrong option.
func (o *Options) check() error {
	if o.Memory < 0 || o.DeviceRead < 0 {
		return fmt.Errorf("%w: advice.Options: Memory or DeviceRead is negative", base.ErrInvalidOptions)
	}
	for _, spec := range o.Filters {
		if _, err := filterpolicy.Parse(spec); err != nil {
			return fmt.Errorf("%w: advice.Options.Filters: %w", base.ErrInvalidOptions, err)
		}
	}
	return nil
}

// For predicts what lookups and scans would cost under other filters, cache sizes and filter budgets, and recommends
// a setting. It uses the store's own sample or a trace. It locates the keys in the present state of the store, with
// the filters and indexes that are in memory. Nil options are the defaults. It opens files that are not open, and
// reads some 64 blocks to time them. It reads a key's blocks only if several files may have the key, or may have its
// tombstone. It changes nothing, and takes some seconds of one processor; reads and writes go on meanwhile.
//
// Without a sample the error is ErrNoSample, and with too small a one it matches ErrSmallSample. An error about the
// trace names it "the trace"; one about damage matches kv.ErrCorruption. If ctx ends, it matches ctx.Err().
//
// To carry a recommendation out, open the store with it: for example with kv.Options.String of what kv.ParseOptions
// returns for Report.Options. Files get the new filters as compactions rewrite them, or by kv.DB.CompactFilters.
func For(ctx context.Context, db *kv.DB, o *Options) (*Report, error) {
	if o == nil {
		o = &Options{}
	}
	if err := o.check(); err != nil {
		return nil, err
	}
	var t *advise.Trace
	if o.Trace != nil {
		r, err := lookuptrace.NewReader(o.Trace, "the trace")
		if err != nil {
			return nil, err
		}
		if t, err = advise.ReadTrace(ctx, r, maxOperations); err != nil {
			return nil, err
		}
	}
	store, err := storeview.Of(db)
	if err != nil {
		return nil, err
	}
	defer store.Release()
	if t != nil {
		return report(ctx, store, o, t, float64(t.OneIn))
	}
	if store.Sampler == nil {
		return nil, ErrNoSample
	}
	s := store.Sampler.Take()
	return report(ctx, store, o, traceOfSample(&s), s.OneIn)
}

// report asks the model. One key in oneIn is in the trace, which has that number rounded.
func report(ctx context.Context, store *storeview.View, o *Options, t *advise.Trace, oneIn float64) (*Report, error) {
	if n := len(t.Lookups) + len(t.Scans); n < minOperations {
		return nil, fmt.Errorf("%w: there are %d lookups and %d scans, and %d are wanted", ErrSmallSample,
			len(t.Lookups), len(t.Scans), minOperations)
	}
	l, err := newLocator(store)
	if err != nil {
		return nil, err
	}
	if err := l.locate(ctx, t); err != nil {
		return nil, err
	}
	prices, err := l.prices(o)
	if err != nil {
		return nil, err
	}
	found, err := advise.New(&l.shape, t, prices).Advise(ctx, advise.Config{Filters: o.Filters, Memory: o.Memory})
	if err != nil {
		return nil, err
	}
	r := newReport(found, t, oneIn)
	r.Unknown = append(r.Unknown, l.unknown()...)
	return r, l.countRewrites(r)
}
