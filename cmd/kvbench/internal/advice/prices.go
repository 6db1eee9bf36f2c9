package advice

import (
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/siftkv/siftkv/internal/advise"
	"github.com/siftkv/siftkv/kv"
)

// Lookups that are timed for the prices.
const (
	timedKeys = 2000
	leastKeys = 50
)

// prices measures what lookups take on this machine: of keys that are there, for the first time
// and again, and of keys that are not there. The page cache of the system is as it is. Probes
// are measured by themselves.
func (s *store) prices(a *asked, filters []string) (advise.Prices, error) {
	p := advise.UsualPrices()
	p.MeasureProbes(filters...)
	if own, _, _ := strings.Cut(s.shape.Filter, ":"); p.Probe[own] > 0 {
		p.Probe[""] = p.Probe[own]
	}
	var found, absent [][]byte
	for i := range a.trace.Keys {
		k := &a.trace.Keys[i]
		switch {
		case len(k.Path) == 0 || k.Path[len(k.Path)-1].Present != k.Found:
		case k.Found && len(found) < timedKeys:
			found = append(found, k.Bytes)
		case !k.Found && len(absent) < timedKeys:
			absent = append(absent, k.Bytes)
		}
	}
	if len(found) < leastKeys {
		p.From = "usual ones: too few keys of the trace are in files to measure"
		return p, nil
	}
	db, err := s.open(timedKeys * 64 << 10)
	if err != nil {
		return p, err
	}
	first := times(db, found)
	again := times(db, found)
	times(db, absent)
	probes := 0.0
	for i := range a.trace.Keys {
		probes += float64(len(a.trace.Keys[i].Path))
	}
	probes *= p.Probe[""] / float64(max(1, len(a.trace.Keys)))
	if len(absent) >= leastKeys {
		p.Lookup = max(20, times(db, absent)-probes)
	} else {
		p.Lookup = max(20, again/3)
	}
	p.Cached = max(50, again-p.Lookup-probes)
	p.Read = max(p.Cached, first-again+p.Cached)
	p.From = "measured on this machine; reads come from its page cache as far as that has them"
	return p, errors.Join(err, db.Close())
}

// times returns the median of lookups, in nanoseconds, without what the clock takes.
func times(db *kv.DB, keys [][]byte) float64 {
	if len(keys) == 0 {
		return 0
	}
	all := make([]float64, len(keys))
	var value []byte
	for i, key := range keys {
		began := time.Now()
		value, _ = db.AppendGet(value[:0], key) // an error has no time
		all[i] = float64(time.Since(began).Nanoseconds())
	}
	clock := make([]float64, 1001)
	for i := range clock {
		began := time.Now()
		clock[i] = float64(time.Since(began).Nanoseconds())
	}
	slices.Sort(all)
	slices.Sort(clock)
	return max(1, all[len(all)/2]-clock[len(clock)/2])
}
