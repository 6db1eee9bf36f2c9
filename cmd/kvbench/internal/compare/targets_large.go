package compare

import (
	"cmp"

	"github.com/siftkv/siftkv/cmd/kvbench/internal/engine"
)

// largeTargets are those of SiftKV with values apart, in the order of the report.
var largeTargets = []target{
	{of: engine.SiftKVApartName, phase: "large-load", against: engine.PebbleApartName, atLeast: 1.5},
	{of: engine.SiftKVApartName, phase: "large-load", against: engine.BadgerLogName, atLeast: 1},
	{of: engine.SiftKVApartName, phase: "large-overwrite", against: engine.PebbleApartName, atLeast: 1.5},
	{of: engine.SiftKVApartName, phase: "large-overwrite", against: engine.BadgerLogName, atLeast: 1},
	{of: engine.SiftKVApartName, phase: "large-churn", against: engine.PebbleApartName, atLeast: 1.5},
	{of: engine.SiftKVApartName, phase: "large-churn", against: engine.BadgerLogName, atLeast: 1},
	{of: engine.SiftKVApartName, phase: "large-get", against: "pebble", atLeast: 1 / 0.7, cpu: true},
	{of: engine.SiftKVApartName, phase: "large-get", against: "siftkv", atLeast: 1, cpu: true},
	{of: engine.SiftKVApartName, phase: "large-scan", against: "siftkv", atLeast: 0.9},
	{of: engine.SiftKVApartName, phase: "large-keys", against: "siftkv", atLeast: 10},
}

// A limit is the most that a figure of an engine may be, at a limit of space.
type limit struct {
	figure, engine string
	most           float64
}

// What a store takes beside the space that collection is to keep: a batch under way, of what is
// there, and the logs of memtables.
const (
	batchSpace   = 0.1
	logMemtables = 3
)

// beside returns what that is of the values that are there.
func (r *Result) beside() float64 {
	logs := logMemtables * r.Settings.Store.MemtableBytes / largeMemtable
	return batchSpace + float64(logs)/float64(r.Settings.Large.Data)
}

// limits returns what is written and taken at most, of values that nothing compresses.
func (r *Result) limits() []limit {
	space, beside := cmp.Or(r.Settings.Store.BlobSpace, engine.UsualBlobSpace), r.beside()
	const loaded, tight, wide = 2.1, 3.4, 2.8 // bytes written
	const onceLoaded, onceWide = 1.1, 1.8     // by a log that is the blob file
	all := []limit{
		{"large-written", engine.SiftKVApartName, loaded},
		{"large-written", engine.SiftKVCommitName, onceLoaded},
		{"large-overwritten", engine.SiftKVTightName, tight},
		{"churn-written", engine.SiftKVTightName, tight},
		{"large-overwritten-most", engine.SiftKVApartName, space + beside},
		{"large-overwritten-most", engine.SiftKVTightName, engine.TightBlobSpace + beside},
		{"churn-most", engine.SiftKVApartName, space + beside},
		{"large-overwritten-most", engine.SiftKVCommitName, space + beside},
		{"churn-most", engine.SiftKVCommitName, space + beside},
		{"churn-most", engine.SiftKVTightName, engine.TightBlobSpace + beside},
	}
	if space >= engine.UsualBlobSpace {
		all = append(all, limit{"large-overwritten", engine.SiftKVApartName, wide},
			limit{"churn-written", engine.SiftKVApartName, wide},
			limit{"large-overwritten", engine.SiftKVCommitName, onceWide},
			limit{"churn-written", engine.SiftKVCommitName, onceWide})
	}
	return all
}

// judgeLimits adds the verdicts on what SiftKV with values apart writes and takes, of values of
// 16 KiB or more: smaller ones have more of their bytes in tables.
func (r *Result) judgeLimits() {
	const least = 16 << 10
	if r.Settings.Large.Values != RandomValues || r.Settings.Large.ValueSize < least {
		return
	}
	for _, l := range r.limits() {
		for _, f := range r.Figures {
			for _, e := range f.Engines {
				if f.Name != l.figure || e.Engine != l.engine || len(e.Values) == 0 {
					continue
				}
				r.Verdicts = append(r.Verdicts, Verdict{Title: f.Title, Compression: f.Compression, Against: e.Engine,
					Target: l.most, AtMost: true, Got: Ratio{Engine: e.Engine, Median: e.Median,
						Repetitions: len(e.Values)}, Met: e.Median <= l.most})
			}
		}
	}
}
