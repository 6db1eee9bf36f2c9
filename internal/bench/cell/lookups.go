package cell

import (
	"context"
	"encoding/base64"
	"fmt"

	"github.com/HdrHistogram/hdrhistogram-go"

	"github.com/siftkv/siftkv/internal/bench/engine"
	"github.com/siftkv/siftkv/internal/bench/keys"
	"github.com/siftkv/siftkv/internal/bench/measure"
)

// Passes of a cell. Query seeds are split by pass, and draws within it by repetition and
// worker, so that no loop repeats the order of another.
const (
	warmupPass = 0x7761726d
	timedPass  = 0x74696d65
	singlePass = 0x73696e67
)

// singleShare is how many lookups are timed one by one for each timed as one loop.
const singleShare = 4

// draw makes the lookups of a kind for the n-th loop of a pass, which the workers share:
// a stream for each. Of the uniform workload and of a trace, they are the same lookups
// however many workers there are.
func (x *run) draw(pass uint64, kind engine.Kind, n, size int) []*measure.Stream {
	workers := int(x.settings.Threads)
	streams := make([]*measure.Stream, workers)
	seed := keys.Mix(x.settings.Seed ^ pass)
	theta, _ := x.settings.theta() // it was checked
	for w := range streams {
		from, to := w*size/workers, (w+1)*size/workers
		switch {
		case x.settings.Workload == Replay:
			streams[w] = measure.NewReplayStream(x.source.(*keys.Trace), x.values, kind, size, w, workers)
		case theta == 0:
			streams[w] = measure.NewStream(x.source, x.values, kind, seed, n*size+from, to-from)
		default: // The popular keys are the same in all passes, the draws are not.
			z := keys.NewZipf(measure.Domain(x.source, kind), theta)
			streams[w] = measure.NewSkewedStream(x.source, x.values, kind, z, x.settings.Seed,
				seed+uint64(n)+uint64(w)<<32, to-from)
		}
	}
	return streams
}

// measure warms the store up, or makes it cold, and looks keys up.
func (x *run) measure(ctx context.Context, r *Result) error {
	if err := x.reopen(); err != nil {
		return err
	}
	reps, total := int(x.settings.Reps), 0
	for _, kind := range engine.Kinds {
		n, single := x.loop(kind)
		total += (n + single) * reps
	}
	phase := x.phase("look up", total, "lookups")
	if x.settings.State == Warm {
		for _, kind := range engine.Kinds {
			n, _ := x.loop(kind)
			streams := x.draw(warmupPass, kind, 0, n)
			if err := measure.Together(ctx, len(streams), func(ctx context.Context, w int) error {
				_, err := measure.Throughput(ctx, x.readers[kind][w], streams[w])
				return err
			}); err != nil {
				return err
			}
		}
	}
	var all []*passes
	for _, kind := range engine.Kinds {
		n, single := x.loop(kind)
		p := newPasses(kind)
		all = append(all, p)
		for rep := range reps {
			if n == 0 {
				break // of a trace
			}
			if err := x.repeat(ctx, r, p, rep, n, single); err != nil {
				return err
			}
			phase.Add(n + single)
		}
	}
	phase.Done()
	if x.settings.Pace != NoPace {
		if err := x.pace(ctx, r, all); err != nil {
			return err
		}
	}
	for _, p := range all {
		if err := x.summarise(r, p); err != nil {
			return err
		}
	}
	r.Usage = engine.UnknownUsage()
	if m, ok := x.store.(engine.Meter); ok {
		r.Usage = m.Usage()
	}
	return nil
}

// passes are what the lookups of one kind gave.
type passes struct {
	kind      engine.Kind
	reps      []measure.Repetition
	histogram *hdrhistogram.Histogram
	service   *hdrhistogram.Histogram // of a paced replay
	seen      map[string]int          // how often each key was asked for, of a skewed workload
}

// repeat times one loop and then single lookups.
func (x *run) repeat(ctx context.Context, r *Result, p *passes, rep, n, single int) error {
	timed, one := x.draw(timedPass, p.kind, rep, n), x.draw(singlePass, p.kind, rep, single)
	p.see(timed, x.settings.Workload != Uniform)
	if err := x.chill(r); err != nil {
		return err
	}
	repetition, err := measure.VisitAll(ctx, x.readers[p.kind], timed)
	if err != nil {
		return err
	}
	p.reps = append(p.reps, repetition)
	if single == 0 {
		return nil
	}
	if err := x.chill(r); err != nil {
		return err
	}
	histograms := make([]*hdrhistogram.Histogram, len(one))
	err = measure.Together(ctx, len(one), func(ctx context.Context, w int) error {
		histograms[w] = measure.NewHistogram()
		return measure.Latency(ctx, x.readers[p.kind][w], one[w], histograms[w])
	})
	for _, h := range histograms {
		p.histogram.Merge(h)
	}
	return err
}

// chill makes the store cold if the cell says so: closed, out of the page cache, and
// opened anew.
func (x *run) chill(r *Result) error {
	if x.settings.State != Cold {
		return nil
	}
	if err := x.close(); err != nil {
		return err
	}
	state, err := measure.DropCaches(x.lab.store.dir)
	if err != nil {
		return err
	}
	state.Left = max(state.Left, r.PageCache.Left)
	r.PageCache = state
	return x.reopen()
}

// see notes the keys of a loop whose number of distinct ones cannot be calculated.
func (p *passes) see(streams []*measure.Stream, skewed bool) {
	if !skewed {
		return
	}
	if p.seen == nil {
		p.seen = map[string]int{}
	}
	for _, s := range streams {
		for i := range s.Len() {
			p.seen[string(s.Key(i))]++
		}
	}
}

// distinct returns the part of all timed lookups that tell something new: as many
// lookups of keys of their own would say as much of a rate. A key gets the same answer
// each time, so that of skewed lookups a few keys decide: n lookups, c of each key, are
// worth n²/Σc² (L. Kish, "Survey Sampling", 1965, section 8.2).
func (x *run) distinct(kind engine.Kind, p *passes) float64 {
	n, _ := x.loop(kind)
	asked := float64(n) * float64(x.settings.Reps)
	if p.seen != nil {
		squares := 0.0
		for _, c := range p.seen {
			squares += float64(c) * float64(c)
		}
		return asked / squares
	}
	return min(1, float64(measure.Domain(x.source, kind))/asked)
}

// summarise fills the phase of a kind.
func (x *run) summarise(r *Result, p *passes) error {
	out := r.Phase(p.kind)
	if len(p.reps) == 0 {
		out.skip()
		return nil
	}
	if r.Pace != nil {
		service := measure.LatencyOf(p.service)
		out.Service = &service
	}
	distinct := x.distinct(p.kind, p)
	if p.kind == engine.Absent {
		x.absentDistinct = distinct
	}
	return p.summarise(out, distinct)
}

// spectrumPoints are the percentiles of a spectrum.
var spectrumPoints = []float64{
	0, 1, 5, 10, 20, 30, 40, 50, 60, 70, 75, 80, 85, 90, 92.5, 95, 97.5, 98, 99, 99.5, 99.75, 99.9, 99.95, 99.99,
	99.995, 99.999, 100,
}

// summarise fills a phase.
func (p *passes) summarise(out *Phase, distinct float64) error {
	out.Phase = measure.Summarise(p.reps, p.histogram, distinct)
	for _, at := range spectrumPoints {
		ns := p.histogram.ValueAtPercentile(at)
		if at == 0 {
			ns = p.histogram.Min()
		}
		out.Spectrum = append(out.Spectrum, Quantile{at, ns})
	}
	packed, err := p.histogram.Encode(hdrhistogram.V2CompressedEncodingCookieBase)
	if err != nil {
		return fmt.Errorf("encode the histogram: %w", err)
	}
	out.HDR = string(packed) // it is base64 already
	if _, err := base64.StdEncoding.DecodeString(out.HDR); err != nil {
		return fmt.Errorf("encode the histogram: %w", err)
	}
	return nil
}
