package advise

// A Cost is what operations of a kind take, each on average.
type Cost struct {
	Operations int `json:"operations"` // that were counted

	// Blocks are data blocks, from cache and device together. They are an expectation: which
	// absent keys a filter lets pass is chance, and of few popular ones it is luck. In 95 of 100
	// filters it is between Low and High.
	Blocks float64 `json:"blocks"`
	Low    float64 `json:"blocks_low"`
	High   float64 `json:"blocks_high"`

	Probes float64 `json:"probes"`       // of filters
	Reads  float64 `json:"device_reads"` // blocks that the cache does not have
	Bytes  float64 `json:"device_bytes"` // of these, as stored
	Nanos  float64 `json:"ns"`           // by the prices
}

// A Prediction is what a trace would cost under a setting.
type Prediction struct {
	Setting
	FilterBytes int64 `json:"filter_bytes"`
	// Memory is that of filters and cache together, with what indexes take more, or less, for other data blocks.
	Memory     int64   `json:"memory"`
	BitsPerKey float64 `json:"bits_per_key"`
	All        Cost    `json:"all"`    // lookups
	Found      Cost    `json:"found"`  // of keys that are there
	Absent     Cost    `json:"absent"` // and of those that are not
	Scans      Cost    `json:"scans"`
	Known      bool    `json:"known"` // theory knows all of the filters
}

// Prices are what parts of a lookup take, in nanoseconds.
type Prices struct {
	Lookup float64            `json:"lookup"`       // without filters and blocks
	Probe  map[string]float64 `json:"probe"`        // of a filter, by family
	Cached float64            `json:"cached_block"` // a block that the cache has, with its search
	Read   float64            `json:"device_read"`  // a block that it does not have
	From   string             `json:"from"`         // where these are from
}
