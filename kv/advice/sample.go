package advice

import (
	"math"
	"time"

	"github.com/siftkv/siftkv/filterpolicy"
	"github.com/siftkv/siftkv/internal/advise"
	"github.com/siftkv/siftkv/internal/lookupsample"
)

// traceOfSample returns what a sample has, whose keys it shares. Its lookups are taken to have come in even
// intervals.
func traceOfSample(s *lookupsample.Sample) *advise.Trace {
	span := time.Since(s.Since)
	t := &advise.Trace{OneIn: int(math.Round(s.OneIn)), Span: span, Dropped: s.Dropped}
	keys := make([]advise.Key, 0, len(s.Keys))
	for _, key := range s.Keys {
		keys = append(keys, advise.Key{Bytes: key, Hash: filterpolicy.Hash(key)})
	}
	lookups := make([]advise.Lookup, 0, len(s.Lookups))
	moment := func(i, n int) time.Duration { return span / time.Duration(n) * time.Duration(i) }
	for i, l := range s.Lookups {
		lookups = append(lookups, advise.Lookup{Key: l.Key, Found: l.Found, At: moment(i, len(s.Lookups))})
	}
	t.SetLookups(keys, lookups)
	for i, o := range s.Scans {
		t.Scans = append(t.Scans, advise.Scan{At: moment(i, len(s.Scans)),
			Entries: int(min(o.Entries, math.MaxInt32)), Start: o.Start, End: o.End, Backward: o.Backward,
			Ended: o.Ended})
	}
	return t
}
