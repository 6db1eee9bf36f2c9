package redisfilter

// Metrics say how a set fares in this process. To read them asks no server.
type Metrics struct {
	Loaded   bool // the set can say no, unless a server is away
	Loading  bool // a generation is being built, by any process
	Full     bool // the generation in use refused a key of this process: its next load has more room
	Capacity int  // keys that the generation in use was made for

	// Both count from the start of the process and never go down.
	Losses      uint64 // times that a generation was found to lack something
	FailedLoads uint64 // loads of this process that did not end well
}

// Metrics returns how the set fares in this process.
func (l *lineage) Metrics() Metrics {
	m := Metrics{Losses: l.losses.Load(), FailedLoads: l.failedLoads.Load()}
	v := l.view.Load()
	if v.usable() != nil {
		return m
	}
	need, full := l.need(v), l.full.Load()
	m.Loaded = need != load && need != keys
	m.Loading = v.cfg.Building != ""
	m.Full = full != nil && *full == v.cfg.Generation
	m.Capacity = v.cfg.Asked.Keys
	return m
}
