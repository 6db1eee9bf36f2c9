package advise

import (
	"maps"
	"strings"
	"time"

	"github.com/siftkv/siftkv/filterpolicy"
)

// UsualPrices are those of a lookup on a machine of today with the files in the system's page
// cache: for callers that cannot measure.
func UsualPrices() Prices {
	return Prices{Lookup: 150, Cached: 350, Read: 4000, Probe: map[string]float64{"none": 0, "": 30}, From: "usual"}
}

// with returns the prices, of which a probe without a name is one of the filter of a store.
func (p Prices) with(filter string) Prices {
	own := p.probeOf(filter)
	p.Probe = maps.Clone(p.Probe)
	if p.Probe == nil {
		p.Probe = map[string]float64{}
	}
	p.Probe[""] = own
	return p
}

// Device returns the prices with another one for a read, such as that of a disk.
func (p Prices) Device(nanos float64) Prices {
	p.Read = nanos
	return p
}

// perByte is what a byte of a block takes that is read: the system's copy, the checksum, and decompression.
const perByte = 0.5

// blocks returns the prices for data blocks of another size.
func (p Prices) blocks(was, size int64) Prices {
	p.Read = max(p.Read/4, p.Read+perByte*float64(size-was))
	return p
}

// Of returns what operations take that were counted under a setting, each on average, in nanoseconds.
func (p *Prices) Of(o *Prediction, c *Cost) float64 {
	if c.Operations == 0 {
		return 0
	}
	return p.Lookup + c.Probes*p.probeOf(o.Filter) + (c.Blocks-c.Reads)*p.Cached + c.Reads*p.Read
}

// usualRange is what a probe of a range filter takes.
const usualRange = 150

// ofScan is Of for scans, without the cost of entries, which is the same under all settings.
func (p *Prices) ofScan(c *Cost) float64 {
	if c.Operations == 0 {
		return 0
	}
	return p.Lookup + c.Probes*usualRange + (c.Blocks-c.Reads)*p.Cached + c.Reads*p.Read
}

// probeOf returns the price of a probe of a filter, or of the store's own if the first spec is empty.
func (p *Prices) probeOf(specs ...string) float64 {
	for _, spec := range specs {
		if spec == "" {
			continue
		}
		family, _, _ := strings.Cut(spec, ":")
		if nanos, ok := p.Probe[family]; ok {
			return nanos
		}
	}
	return p.Probe[""]
}

// Calibration.
const (
	calibrateKeys   = 1 << 18
	calibrateProbes = 1 << 16
)

// MeasureProbes sets what probes of these families take here and now: of a filter of a
// quarter of a million keys for absent ones. Other work on the machine is in it. It takes some
// 50 ms for each.
func (p *Prices) MeasureProbes(specs ...string) {
	if p.Probe == nil {
		p.Probe = map[string]float64{}
	}
	p.Probe["none"] = 0
	for _, spec := range specs {
		policy, err := filterpolicy.Parse(spec)
		if err != nil || p.Probe[policy.Name()] > 0 || policy.Name() == "none" {
			continue
		}
		if nanos, ok := measureProbe(policy); ok {
			p.Probe[policy.Name()] = nanos
		}
	}
}

// measureProbe builds a filter and asks it.
func measureProbe(policy filterpolicy.Policy) (nanos float64, ok bool) {
	b := policy.NewBuilder()
	for i := range uint64(calibrateKeys) {
		b.AddHash(mix(i))
	}
	data, ok := b.Finish(nil)
	if !ok {
		return 0, false
	}
	f, err := filterpolicy.Decode(policy.Name(), data)
	if err != nil {
		return 0, false
	}
	best := time.Duration(1 << 62)
	for range 3 {
		began, passed := time.Now(), 0
		for i := range uint64(calibrateProbes) {
			if f.MayContainHash(mix(i + 1<<40)) {
				passed++
			}
		}
		if took := time.Since(began); passed < calibrateProbes {
			best = min(best, took)
		}
	}
	return float64(best.Nanoseconds()) / calibrateProbes, true
}
