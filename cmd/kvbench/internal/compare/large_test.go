package compare

import (
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/cmd/kvbench/internal/engine"
	"github.com/siftkv/siftkv/cmd/kvbench/internal/measure"
	"github.com/siftkv/siftkv/cmd/kvbench/internal/tidy"
	"github.com/siftkv/siftkv/internal/scale"
)

// largeWorkloads lists those of large values.
func largeWorkloads() []string {
	return slices.DeleteFunc(Workloads(), func(name string) bool { return !IsLarge(name) })
}

// medians returns the medians of a figure by engine.
func medians(t *testing.T, r *tidy.Result, name string) map[string]float64 {
	t.Helper()
	at := slices.IndexFunc(Figures, func(f Figure) bool { return f.Name == name })
	require.GreaterOrEqual(t, at, 0, name)
	found := map[string]float64{}
	for _, engine := range r.Each("engine") {
		if all := r.Values(Cell(Figures[at].Phase, "snappy", engine), name); len(all) > 0 {
			found[engine] = measure.Median(all)
		}
	}
	require.NotEmpty(t, found, name)
	return found
}

// TestLargeStoresNeedRoom holds the room that a run asks for against the data of its stores.
func TestLargeStoresNeedRoom(t *testing.T) {
	t.Parallel()
	c := tiny(t, "")
	c.Large.Data = 1 << 40
	x := &run{config: c, phases: phases}
	require.InEpsilon(t, 2.6*(1<<40), x.ownSpace(), 0.01)
	require.Positive(t, x.commonSpace())
	c.Large.Values = HalfValues
	require.InEpsilon(t, 1.9*(1<<40), x.ownSpace(), 0.01, "Snappy is the first compression")
	x.phases = slices.DeleteFunc(slices.Clone(phases), func(p Phase) bool { return !IsLarge(p.Name) })
	require.Positive(t, x.ownSpace())
	require.Zero(t, x.commonSpace(), "no phase has these stores")
	x.phases = slices.DeleteFunc(slices.Clone(phases), func(p Phase) bool { return IsLarge(p.Name) })
	require.Less(t, x.ownSpace(), int64(1<<30))
}

// TestLargeValues holds what engines write of values that nothing compresses against what there is to write: what
// is separated is written to a log and a file by a load, or to a log that is the file.
func TestLargeValues(t *testing.T) {
	t.Parallel()
	scale.OneGoroutine(t, "a count of bytes")
	c := tiny(t, "")
	c.Engines = LargeEngines()
	c.Workloads = largeWorkloads()
	r, err := Run(t.Context(), c)
	require.NoError(t, err)
	require.Empty(t, r.Cells("engine", "compression"), "no load")
	n := c.Large.keys(c.KeySize)
	for _, p := range phases {
		for _, e := range c.Engines {
			if !IsLarge(p.Name) {
				continue
			}
			sample := func(field string) float64 {
				all := r.Values(Cell(p.Name, "snappy", e), field)
				require.Len(t, all, 1, "%s of %s on %s", field, p.Name, e)
				return all[0]
			}
			if p.Name == "large-keys" && !engine.ScansKeys(e) {
				require.Empty(t, r.Values(Cell(p.Name, "snappy", e), "operations"))
				continue
			}
			switch operations := sample("operations"); p.Name {
			case "large-load":
				require.InDelta(t, n, operations, 20)
			case "large-overwrite":
				require.InDelta(t, 3*n, operations, 3*20)
			case "large-churn":
				require.GreaterOrEqual(t, operations, float64(replaceChunk))
			}
			if strings.HasPrefix(p.Unit, "key") {
				data := sample("data_bytes")
				require.InDelta(t, sample("operations")*float64(c.KeySize+c.Large.ValueSize), data, 0)
				require.GreaterOrEqual(t, sample("peak_disk_bytes"), sample("on_disk_bytes"), "%s on %s", p.Name, e)
				// A page of a mapped file that was dirty before counts to what came before.
				require.Greater(t, sample("written_bytes")+float64(2*os.Getpagesize()), data, "%s on %s", p.Name, e)
				require.Positive(t, sample(PerCPU))
			}
		}
	}
	written := medians(t, r, "large-written")
	require.InDelta(t, 1.05, written[engine.BadgerLogName], 0.06)
	for _, name := range []string{engine.SiftKVSeparatedName, engine.SiftKVTightName} {
		require.InDelta(t, 2.1, written[name], 0.11, name)
	}
	require.InDelta(t, 1.1, written[engine.SiftKVCommitName], 0.11)
	for name, atMost := range map[string]string{"large-space": "large-space",
		"large-overwritten-space": "large-overwritten-most", "churn-space": "churn-most"} {
		most := medians(t, r, atMost)
		for e, space := range medians(t, r, name) {
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
		written[values] = medians(t, r, "large-written")["siftkv"]
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
