package compare

import (
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/cmd/kvbench/internal/engine"
	"github.com/siftkv/siftkv/internal/scale"
)

// largeWorkloads lists those of large values.
func largeWorkloads() []string {
	return slices.DeleteFunc(Workloads(), func(name string) bool { return !IsLarge(name) })
}

// figure returns the medians of a figure by engine.
func (r *Result) figure(t *testing.T, name string) map[string]float64 {
	t.Helper()
	at := slices.IndexFunc(r.Figures, func(f Figure) bool { return f.Name == name })
	require.GreaterOrEqual(t, at, 0, name)
	medians := map[string]float64{}
	for _, e := range r.Figures[at].Engines {
		medians[e.Engine] = e.Median
	}
	return medians
}

// TestLargeValues holds what engines write of values that nothing compresses against what there is to write: what
// lies apart is written to a log and a file by a load, or to a log that is the file.
func TestLargeValues(t *testing.T) {
	t.Parallel()
	scale.OneGoroutine(t, "a count of bytes")
	c := tiny(t, "")
	c.Engines = LargeEngines()
	c.Workloads = largeWorkloads()
	r, err := Run(t.Context(), c)
	require.NoError(t, err)
	require.Empty(t, r.Loads)
	n := c.Large.keys(c.KeySize)
	for _, p := range r.Phases {
		for _, e := range p.Engines {
			if p.Name == "large-keys" && !engine.ScansKeys(e.Engine) {
				require.Empty(t, e.Samples)
				continue
			}
			require.Len(t, e.Samples, 1, "%s on %s", p.Name, e.Engine)
			s := e.Samples[0]
			switch p.Name {
			case "large-load":
				require.InDelta(t, n, s.Operations, 20)
			case "large-overwrite":
				require.InDelta(t, overwrites*n, s.Operations, 3*20)
			case "large-churn":
				require.GreaterOrEqual(t, s.Operations, int64(replaceChunk))
			}
			if strings.HasPrefix(p.Unit, "key") {
				require.EqualValues(t, s.Operations*int64(c.KeySize+c.Large.ValueSize), s.Data)
				require.GreaterOrEqual(t, s.PeakDisk, s.OnDisk, "%s on %s", p.Name, e.Engine)
				// A page of a mapped file that was dirty before counts to what came before.
				require.Greater(t, s.Written+2*int64(os.Getpagesize()), s.Data, "%s on %s", p.Name, e.Engine)
				require.Positive(t, s.CPUSeconds)
			}
		}
	}
	written := r.figure(t, "large-written")
	require.InDelta(t, 1.05, written[engine.BadgerLogName], 0.06)
	for _, name := range []string{engine.SiftKVApartName, engine.SiftKVTightName} {
		require.InDelta(t, 2.1, written[name], 0.11, name)
	}
	require.InDelta(t, 1.1, written[engine.SiftKVCommitName], 0.11)
	for name, atMost := range map[string]string{"large-space": "large-space",
		"large-overwritten-space": "large-overwritten-most", "churn-space": "churn-most"} {
		most := r.figure(t, atMost)
		for e, space := range r.figure(t, name) {
			require.GreaterOrEqual(t, space, 0.99, "%s of %s", name, e)
			require.GreaterOrEqual(t, most[e], space, "%s of %s", name, e)
		}
	}
}

// TestLargeValuesOfHalfAreCompressed, and those at random are not.
func TestLargeValuesOfHalfAreCompressed(t *testing.T) {
	t.Parallel()
	scale.OneGoroutine(t, "a count of bytes")
	written := map[string]float64{}
	for _, values := range LargeValues {
		c := tiny(t, "")
		c.Engines, c.Workloads = []string{"siftkv"}, []string{"large-load"}
		c.Large.Values = values
		r, err := Run(t.Context(), c)
		require.NoError(t, err)
		written[values] = r.figure(t, "large-written")["siftkv"]
	}
	// Not by space: whether a log that is not needed is there yet is a matter of chance. It takes values as they come.
	require.Greater(t, written[RandomValues], 2.0)
	require.Less(t, written[HalfValues], 0.85*written[RandomValues])
}

// TestReplaceDrawsAtRandom has some records twice and leaves others as they were, and has others the next time.
func TestReplaceDrawsAtRandom(t *testing.T) {
	w := &worker{}
	const n = 1000
	_, err := w.do(t.Context(), task{Do: "start", Start: &startTask{Engine: "siftkv", Dir: []byte(t.TempDir()), Keys: n,
		KeySize: 16, ValueSize: 100, Random: true, Watch: true}})
	require.NoError(t, err)
	_, err = w.do(t.Context(), opening(engine.Settings{Compression: "none", MemtableBytes: 1 << 20, BlockBytes: 4096,
		CacheBytes: 1 << 20, Compactions: 1, BatchKeys: 10}))
	require.NoError(t, err)
	_, err = w.do(t.Context(), task{Do: "load"})
	require.NoError(t, err)
	var before []uint32
	for round := 1; round <= 2; round++ {
		s, err := w.do(t.Context(), task{Do: "job", Job: &job{Kind: "replace", Lookups: n}})
		require.NoError(t, err)
		require.EqualValues(t, n, s.Operations)
		total, never := 0, 0
		for _, v := range w.versions {
			total += int(v)
			if v == 0 {
				never++
			}
		}
		require.Equal(t, round*n, total)
		require.InDelta(t, map[int]float64{1: 368, 2: 135}[round], never, 60)
		require.NotEqual(t, before, w.versions)
		before = slices.Clone(w.versions)
		for _, kind := range []string{"scan", "scan-keys", "replaced"} {
			_, err = w.do(t.Context(), task{Do: "job", Job: &job{Kind: kind, Pass: uint64(round)}})
			require.NoError(t, err, kind)
		}
	}
	_, err = w.do(t.Context(), task{Do: "calm"})
	require.NoError(t, err)
	require.Positive(t, w.peakDisk)
	_, err = w.do(t.Context(), task{Do: "mark"})
	require.NoError(t, err)
	require.Zero(t, w.peakDisk)
	require.NoError(t, w.close())
}
