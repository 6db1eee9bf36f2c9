package redisfilter

import "sync/atomic"

// Metrics say how a set fares in this process. To read them asks no server. Numbers count from the start of
// the process and never go down.
type Metrics struct {
	Loaded   bool // the set can say no, unless a server is away
	Loading  bool // a generation is being built, by any process
	Full     bool // the generation in use refused a key of this process: its next load has more room
	Capacity int  // keys that the generation in use was made for

	Lookups uint64 // keys that were asked for
	Absent  uint64 // those of them that are certainly not there
	Unsure  uint64 // those of them that got "maybe" with an error

	Adds    uint64 // keys that were to be added
	Failed  uint64 // those of them whose call failed
	Refused uint64 // those of them that matched ErrFull or ErrTooManyCopies

	Losses      uint64 // times that a generation was found to lack something
	Loads       uint64 // loads of this process that ended well, those after a failover among them
	FailedLoads uint64 // loads of this process that did not
}

// tallies count what Metrics tell.
type tallies struct {
	lookups, absent, unsure    atomic.Uint64
	adds, failed, refused      atomic.Uint64
	losses, loads, failedLoads atomic.Uint64

	full atomic.Pointer[string] // the generation that refused a key last
}

// asked counts the answers of one lookup.
func (t *tallies) asked(maybe []bool, err error) {
	absent := 0
	for _, m := range maybe {
		if !m {
			absent++
		}
	}
	t.lookups.Add(uint64(len(maybe)))
	t.absent.Add(uint64(absent))
	if err != nil {
		t.unsure.Add(uint64(len(maybe) - absent))
	}
}

// added counts the n keys of one add.
func (t *tallies) added(n int, a *addition, err error) {
	t.adds.Add(uint64(n))
	if err != nil {
		t.failed.Add(uint64(n))
		return
	}
	t.refused.Add(uint64(len(a.refused.Full) + len(a.refused.TooManyCopies)))
	if a.fullIn != "" {
		t.full.Store(&a.fullIn)
	}
}

// loaded counts a load.
func (t *tallies) loaded(err error) {
	if err != nil {
		t.failedLoads.Add(1)
		return
	}
	t.loads.Add(1)
}

func (l *lineage) metrics() Metrics {
	t := &l.tallies
	m := Metrics{
		Lookups: t.lookups.Load(), Absent: t.absent.Load(), Unsure: t.unsure.Load(),
		Adds: t.adds.Load(), Failed: t.failed.Load(), Refused: t.refused.Load(),
		Losses: t.losses.Load(), Loads: t.loads.Load(), FailedLoads: t.failedLoads.Load(),
	}
	v := l.view.Load()
	if v.usable() != nil {
		return m
	}
	need, full := l.need(v), t.full.Load()
	m.Loaded = need != load && need != keys
	m.Loading = v.cfg.Building != ""
	m.Full = full != nil && *full == v.cfg.Generation
	m.Capacity = v.cfg.Asked.Keys
	return m
}

// Metrics returns how the set fares in this process.
func (s *Set) Metrics() Metrics { return s.metrics() }

// Metrics returns how the set fares in this process.
func (k *Cuckoo) Metrics() Metrics { return k.metrics() }
