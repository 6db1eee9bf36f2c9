package cell

import (
	"context"

	"github.com/HdrHistogram/hdrhistogram-go"

	"github.com/siftkv/siftkv/cmd/kvbench/internal/engine"
	"github.com/siftkv/siftkv/cmd/kvbench/internal/keys"
	"github.com/siftkv/siftkv/cmd/kvbench/internal/measure"
)

// Orders are seeds of the passes of a cell. Query seeds are split by pass, and draws within it
// by repetition and worker, so that no loop repeats the order of another.
type orders struct{ warmup, timed, single uint64 }

var (
	oneByOne = orders{0x7761726d, 0x74696d65, 0x73696e67}
	inTurns  = orders{0x7761726d, 0x74687275, 0x6c617465}
)

// singleShare is how many lookups are timed in one loop for each that is timed by itself.
const singleShare = 4

// SingleLookups returns how many lookups are timed one by one beside n in one loop.
func SingleLookups(n int) int { return min(n, max(1, n/singleShare)) }

// loop returns how many lookups of a kind are timed as one loop, and how many more one
// by one. Of a trace there may be fewer than the settings say, or none.
func (x *run) loop(kind engine.Kind) (n, single int) {
	n = int(x.settings.Lookups)
	if t, ok := x.source.(*keys.Trace); ok && x.settings.Workload == Replay {
		n = min(n, len(t.Asked(kind == engine.Existing)))
	}
	return n, SingleLookups(n)
}

// streams are the lookups of a kind, one stream for each worker.
type streams []*measure.Stream

// ask draws the lookups of a kind for the n-th loop of a pass, which the workers share. Of
// the uniform workload and of a trace, they are the same lookups however many workers there
// are.
func (x *run) ask(pass uint64, kind engine.Kind, n int) streams {
	size, single := x.loop(kind)
	if pass == x.orders.single {
		size = single
	}
	workers := int(x.settings.Threads)
	all := make(streams, workers)
	seed := keys.Mix(x.settings.Seed ^ pass)
	theta, _ := x.settings.theta() // it was checked
	for w := range all {
		from, to := w*size/workers, (w+1)*size/workers
		switch {
		case x.settings.Workload == Replay:
			all[w] = measure.NewReplayStream(x.source.(*keys.Trace), x.values, kind, size, w, workers)
		case theta == 0:
			all[w] = measure.NewStream(x.source, x.values, kind, seed, n*size+from, to-from)
		default: // The popular keys are the same in all passes, the draws are not.
			z := keys.NewZipf(measure.Domain(x.source, kind), theta)
			all[w] = measure.NewSkewedStream(x.source, x.values, kind, z, x.settings.Seed,
				seed+uint64(n)+uint64(w)<<32, to-from)
		}
	}
	return all
}

// askBoth draws lookups of both kinds, and returns how many they are.
func (x *run) askBoth(pass uint64, n int) (map[engine.Kind]streams, int) {
	both, total := map[engine.Kind]streams{}, 0
	for _, kind := range engine.Kinds {
		both[kind] = x.ask(pass, kind, n)
		for _, s := range both[kind] {
			total += s.Len()
		}
	}
	return both, total
}

// alone warms the store up, or makes it cold, and looks keys up: all of one kind, then all
// of the other.
func (x *run) alone(ctx context.Context) error {
	if err := x.reopen(); err != nil {
		return err
	}
	total := 0
	for _, kind := range engine.Kinds {
		n, single := x.loop(kind)
		total += (n + single) * int(x.settings.Reps)
	}
	phase := x.phase("look up", total, "lookups")
	for _, kind := range engine.Kinds {
		if x.settings.State != Warm {
			break
		}
		if err := x.throughput(ctx, kind, x.ask(x.orders.warmup, kind, 0)); err != nil {
			return err
		}
	}
	for _, kind := range engine.Kinds {
		n, single := x.loop(kind)
		if n == 0 {
			continue // of a trace
		}
		for rep := range int(x.settings.Reps) {
			timed, one := x.ask(x.orders.timed, kind, rep), x.ask(x.orders.single, kind, rep)
			if err := x.repeat(ctx, kind, timed, one); err != nil {
				return err
			}
			phase.Add(n + single)
		}
	}
	phase.Done()
	return nil
}

// throughput looks keys up back to back, untimed.
func (x *run) throughput(ctx context.Context, kind engine.Kind, all streams) error {
	return measure.Together(ctx, len(all), func(ctx context.Context, w int) error {
		_, err := measure.Throughput(ctx, x.readers[kind][w], all[w])
		return err
	})
}

func (x *run) repeat(ctx context.Context, kind engine.Kind, timed, single streams) error {
	p := x.passes[kind]
	if x.settings.Workload != Uniform {
		p.see(timed)
	}
	if err := x.dropCaches(); err != nil {
		return err
	}
	rep, err := measure.VisitAll(ctx, x.readers[kind], timed)
	if err != nil {
		return err
	}
	p.reps = append(p.reps, rep)
	if err := x.dropCaches(); err != nil {
		return err
	}
	histograms := make([]*hdrhistogram.Histogram, len(single))
	err = measure.Together(ctx, len(single), func(ctx context.Context, w int) error {
		histograms[w] = measure.NewHistogram()
		return measure.Latency(ctx, x.readers[kind][w], single[w], histograms[w])
	})
	for _, h := range histograms {
		p.histogram.Merge(h)
	}
	return err
}

// dropCaches makes the store cold if the cell says so: closed, out of the page cache, and
// opened anew.
func (x *run) dropCaches() error {
	if x.settings.State != Cold {
		return nil
	}
	if err := x.close(); err != nil {
		return err
	}
	state, err := measure.DropCaches(x.built.dir)
	if err != nil {
		return err
	}
	state.Left = max(state.Left, x.pageCache.Left)
	x.pageCache = state
	return x.reopen()
}

type passes struct {
	reps      []measure.Repetition
	histogram *hdrhistogram.Histogram
	seen      map[string]int // how often each key was asked for, of a skewed workload
}

func newPasses() *passes {
	return &passes{histogram: measure.NewHistogram(), seen: map[string]int{}}
}

// see notes the keys of a loop whose number of distinct ones cannot be calculated.
func (p *passes) see(all streams) {
	for _, s := range all {
		for i := range s.Len() {
			p.seen[string(s.Key(i))]++
		}
	}
}

// distinct returns the part of all timed lookups that tell something new: as many
// lookups of keys of their own would say as much of a rate. A key gets the same answer
// each time, so that of skewed lookups a few keys decide: n lookups, c of each key, are
// worth n²/Σc² (L. Kish, "Survey Sampling", 1965, section 8.2).
func (x *run) distinct(kind engine.Kind) float64 {
	n, _ := x.loop(kind)
	asked := float64(n) * float64(x.settings.Reps)
	squares := 0.0
	for _, c := range x.passes[kind].seen {
		squares += float64(c) * float64(c)
	}
	if squares > 0 {
		return asked / squares
	}
	return min(1, float64(measure.Domain(x.source, kind))/asked)
}

var spectrumPoints = []float64{
	0, 1, 5, 10, 20, 30, 40, 50, 60, 70, 75, 80, 85, 90, 92.5, 95, 97.5, 98, 99, 99.5, 99.75, 99.9, 99.95, 99.99,
	99.995, 99.999, 100,
}

func (p *passes) summarise(out *Phase, distinct float64) {
	if len(p.reps) == 0 { // a trace without lookups of the kind
		out.Repetitions, out.Spectrum = []measure.Repetition{}, []Quantile{}
		return
	}
	out.Phase = measure.Summarise(p.reps, p.histogram, distinct)
	for _, at := range spectrumPoints {
		ns := p.histogram.ValueAtPercentile(at)
		if at == 0 {
			ns = p.histogram.Min()
		}
		out.Spectrum = append(out.Spectrum, Quantile{at, ns})
	}
}
