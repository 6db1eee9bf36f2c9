package compare

// A Figure is something that a phase shows in addition to its operations per second.
type Figure struct {
	Phase, Name, Title, Unit string

	value func(s Sample, dataBytes float64) float64
}

// Figures lists what is taken of which phase.
var Figures = []Figure{
	{"load", "written", "bytes written by the load", "bytes of data",
		func(s Sample, data float64) float64 { return float64(s.Written) / data }},
	{"load", "space", "bytes on disk when settled", "bytes of data",
		func(s Sample, data float64) float64 { return float64(s.OnDisk) / data }},
	{"load", "load-cpu", "processor time of the load", "µs per key",
		func(s Sample, _ float64) float64 { return 1e6 * s.CPUSeconds / float64(s.Operations) }},
	{"load", "load-peak", "memory at most during the load", "MiB",
		func(s Sample, _ float64) float64 { return mebi(s.Peak - s.Base) }},
	{"existing", "allocs-existing", "allocations of a get, existing", "",
		func(s Sample, _ float64) float64 { return s.Allocs }},
	{"existing-small", "allocs-small", "allocations of a get, cache a tenth", "",
		func(s Sample, _ float64) float64 { return s.Allocs }},
	{"absent", "allocs-absent", "allocations of a get, absent", "",
		func(s Sample, _ float64) float64 { return s.Allocs }},
	{"memory", "rss", "memory after lookups", "MiB",
		func(s Sample, _ float64) float64 { return mebi(s.Resident - s.Base) }},
	{"memory", "rss-anon", "of it not backed by files", "MiB",
		func(s Sample, _ float64) float64 { return mebi(s.Anon) }},
	{"open", "open", "time to open", "ms", func(s Sample, _ float64) float64 { return 1e3 * s.Seconds }},
	{"heavy", "p50", "median get during heavy writes", "µs",
		func(s Sample, _ float64) float64 { return float64(s.P50) / 1e3 }},
	{"heavy", "p99.9", "p99.9 of gets during heavy writes", "µs",
		func(s Sample, _ float64) float64 { return float64(s.P999) / 1e3 }},
	{"heavy", "stall", "longest batch of 100 meanwhile", "ms",
		func(s Sample, _ float64) float64 { return float64(s.LongestBatch) / 1e6 }},
	{"heavy", "heavy-batches", "batches written meanwhile", "",
		func(s Sample, _ float64) float64 { return float64(s.Batches) }},
	{"large-load", "large-written", "bytes written by the load, large values", "bytes of data", overwritten},
	{"large-load", "large-space", "bytes on disk, large values", "bytes of data", taken},
	{"large-overwrite", "large-overwritten", "bytes written by overwrites, large values", "bytes of data",
		overwritten},
	{"large-overwrite", "large-overwritten-space", "bytes on disk after overwrites, large values", "bytes of data",
		taken},
	{"large-overwrite", "large-overwritten-most", "bytes on disk at most meanwhile, large values", "bytes of data",
		atMost},
	{"large-overwrite", "large-peak", "memory at most, load and overwrites of large values", "MiB",
		func(s Sample, _ float64) float64 { return mebi(s.Peak - s.Base) }},
	{"large-churn", "churn-written", "bytes written by constant overwrites", "bytes of data", overwritten},
	{"large-churn", "churn-space", "bytes on disk after constant overwrites", "bytes of data", taken},
	{"large-churn", "churn-most", "bytes on disk at most during constant overwrites", "bytes of data", atMost},
	{"overwrite", "overwritten", "bytes written by overwrites, values of 1 KiB", "bytes of data", overwritten},
	{"overwrite", "overwritten-space", "bytes on disk after overwrites, values of 1 KiB", "bytes of data", taken},
	{"limit", "limit-peak", "memory at most under a limit", "MiB",
		func(s Sample, _ float64) float64 { return mebi(s.Peak - s.Base) }},
	{"limit", "limit", "the limit, a quarter of the data", "MiB",
		func(s Sample, _ float64) float64 { return mebi(s.Data) }},
}

// own is a quotient of what a phase with a store of its own has done.
func own(part func(s Sample) (a, b int64)) func(Sample, float64) float64 {
	return func(s Sample, _ float64) float64 {
		a, b := part(s)
		return float64(a) / float64(b)
	}
}

// overwritten, taken and atMost are what overwrites cost: of the bytes that were overwritten, and
// of those that are there, in the end and at any moment.
var (
	overwritten = own(func(s Sample) (int64, int64) { return s.Written, s.Data })
	taken       = own(func(s Sample) (int64, int64) { return s.OnDisk, s.Live })
	atMost      = own(func(s Sample) (int64, int64) { return s.PeakDisk, s.Live })
)

func mebi(bytes int64) float64 { return float64(max(0, bytes)) / (1 << 20) }
