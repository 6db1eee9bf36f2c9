package siftprometheus_test

import (
	"bytes"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	client "github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"github.com/prometheus/client_golang/prometheus/testutil"
	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	siftprometheus "github.com/siftkv/siftkv/adapters/prometheus"
	"github.com/siftkv/siftkv/kv"
	"github.com/siftkv/siftkv/kv/metrics"
	"github.com/siftkv/siftkv/kv/objects"
	"github.com/siftkv/siftkv/objstore"
)

// openStore opens a store in memory, or in the object store of the options, that has been written to, flushed,
// compacted and read.
func openStore(t *testing.T, o kv.Options) *kv.DB {
	t.Helper()
	o.InMemory = o.Objects == nil
	db, err := kv.Open("", &o)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, db.Close()) })
	for i := range 2000 {
		require.NoError(t, db.Set(key(i), []byte("value"), nil))
	}
	require.NoError(t, db.Compact(t.Context(), nil, nil))
	for i := range 4000 {
		_, err := db.Has(key(i / 2 * 3)) // some are not there
		require.NoError(t, err)
	}
	return db
}

func key(i int) []byte { return fmt.Appendf(nil, "key%06d", i) }

func timed() kv.Options { return kv.Options{LatencyHistograms: true} }

// inObjects are options of a store in an object store that has all metrics.
func inObjects() kv.Options {
	o := timed()
	o.Objects = &objects.Config{Store: objstore.NewMem(), Grace: time.Hour}
	return o
}

// pedantic returns a registry that checks what collectors send against what they describe.
func pedantic(t *testing.T, collectors ...client.Collector) *client.Registry {
	t.Helper()
	r := client.NewPedanticRegistry()
	for _, c := range collectors {
		require.NoError(t, r.Register(c))
	}
	return r
}

// scrape gets the page of a registry over HTTP.
func scrape(t *testing.T, r *client.Registry) []byte {
	t.Helper()
	s := httptest.NewServer(promhttp.HandlerFor(r, promhttp.HandlerOpts{ErrorHandling: promhttp.HTTPErrorOnError}))
	defer s.Close()
	reply, err := http.Get(s.URL)
	require.NoError(t, err)
	defer reply.Body.Close()
	page, err := io.ReadAll(reply.Body)
	require.NoError(t, err)
	require.Equal(t, http.StatusOK, reply.StatusCode, "%s", page)
	return page
}

type families map[string]*dto.MetricFamily

func parse(t *testing.T, page []byte) families {
	t.Helper()
	parser := expfmt.NewTextParser(model.UTF8Validation)
	f, err := parser.TextToMetricFamilies(bytes.NewReader(page))
	require.NoError(t, err)
	return f
}

// one returns the metric of a family that has these labels among its own, as name and value in turns.
func (f families) one(t *testing.T, name string, labels ...string) *dto.Metric {
	t.Helper()
	require.Contains(t, f, name)
	var found []*dto.Metric
	for _, m := range f[name].Metric {
		has := map[string]string{}
		for _, l := range m.Label {
			has[l.GetName()] = l.GetValue()
		}
		all := true
		for i := 0; i < len(labels); i += 2 {
			all = all && has[labels[i]] == labels[i+1]
		}
		if all {
			found = append(found, m)
		}
	}
	require.Len(t, found, 1, "%s %v", name, labels)
	return found[0]
}

func (f families) gauge(t *testing.T, name string, labels ...string) float64 {
	t.Helper()
	require.Equal(t, dto.MetricType_GAUGE, f[name].GetType(), name)
	return f.one(t, name, labels...).GetGauge().GetValue()
}

func (f families) counter(t *testing.T, name string, labels ...string) float64 {
	t.Helper()
	require.Equal(t, dto.MetricType_COUNTER, f[name].GetType(), name)
	return f.one(t, name, labels...).GetCounter().GetValue()
}

// What a scrape shows is what the store says.
func TestScrape(t *testing.T) {
	db := openStore(t, timed())
	f := parse(t, scrape(t, pedantic(t, siftprometheus.NewCollector(db, nil))))
	m := db.Metrics()
	require.EqualValues(t, 1, f.gauge(t, "siftkv_open"))
	require.EqualValues(t, 1, f.gauge(t, "siftkv_writable"))
	require.EqualValues(t, 4000, f.counter(t, "siftkv_gets_total"))
	require.EqualValues(t, 2000, f.counter(t, "siftkv_writes_total"))
	require.EqualValues(t, m.WriteBytes, f.counter(t, "siftkv_written_bytes_total"))
	require.EqualValues(t, m.WALSyncs, f.counter(t, "siftkv_wal_syncs_total"))
	require.EqualValues(t, m.FlushBytes, f.counter(t, "siftkv_flushed_bytes_total"))
	require.EqualValues(t, m.CacheBytes, f.gauge(t, "siftkv_cache_bytes"))
	require.EqualValues(t, m.CompactionDebt, f.gauge(t, "siftkv_compaction_debt_bytes"))
	require.InDelta(t, m.StallTime.Seconds(), f.counter(t, "siftkv_stall_seconds_total"), 0)
	require.Len(t, f["siftkv_level_bytes"].Metric, kv.NumLevels)
	hits := 0.0
	for n, l := range m.Levels {
		level := strconv.Itoa(n)
		for name, want := range map[string]uint64{
			"siftkv_filter_checks_total":          l.Lookup.FilterChecks(),
			"siftkv_filter_negatives_total":       l.Lookup.FilterNegatives,
			"siftkv_filter_true_positives_total":  l.Lookup.FilterTruePositives,
			"siftkv_filter_false_positives_total": l.Lookup.FilterFalsePositives,
			"siftkv_filter_remembered_total":      l.Lookup.FilterRemembered,
		} {
			require.EqualValues(t, want, f.counter(t, name, "level", level), "%s of level %d", name, n)
		}
		require.EqualValues(t, l.Lookup.BlocksFromCache,
			f.counter(t, "siftkv_lookup_blocks_total", "level", level, "source", "cache"))
		require.EqualValues(t, l.Lookup.BlocksFromDisk,
			f.counter(t, "siftkv_lookup_blocks_total", "level", level, "source", "disk"))
		require.EqualValues(t, l.Files, f.gauge(t, "siftkv_level_files", "level", level))
		require.EqualValues(t, l.Bytes, f.gauge(t, "siftkv_level_bytes", "level", level))
		hits += f.counter(t, "siftkv_lookup_hits_total", "level", level)
	}
	require.Positive(t, hits)
	require.Less(t, hits, 4000.0)
}

// A scrape of a store with separated values has the figures of its blob files.
func TestScrapeOfBlobFiles(t *testing.T) {
	db, err := kv.Open(t.TempDir(), &kv.Options{SeparateFrom: 100})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, db.Close()) })
	for range 2 {
		for i := range 50 {
			require.NoError(t, db.Set(key(i), bytes.Repeat([]byte{byte(i)}, 2000), kv.NoSync))
		}
		require.NoError(t, db.Compact(t.Context(), nil, nil))
		require.NoError(t, db.Set(key(1000), make([]byte, 2000), kv.NoSync))
	}
	require.NoError(t, db.Flush(t.Context()))
	_, err = db.Get(key(7))
	require.NoError(t, err)
	f := parse(t, scrape(t, pedantic(t, siftprometheus.NewCollector(db, nil))))
	m := db.Metrics()
	b := m.Blobs
	require.Positive(t, b.Files)
	for name, want := range map[string]any{
		"files": b.Files, "bytes": b.Bytes, "records": b.Records, "live_records": b.LiveRecords,
		"live_bytes": b.LiveBytes, "garbage_bytes": b.Garbage, "hidden_bytes": b.HiddenBytes,
	} {
		require.EqualValues(t, want, f.gauge(t, "siftkv_blob_"+name), name)
	}
	for name, want := range map[string]uint64{
		"written_bytes": b.Written, "committed_bytes": b.Committed, "relocated_bytes": b.Relocated,
		"read_bytes":  b.Read,
		"collections": b.GCs, "reads": b.Reads, "cache_hits": b.CacheHits,
	} {
		require.EqualValues(t, want, f.counter(t, "siftkv_blob_"+name+"_total"), name)
	}
	require.Positive(t, b.Read)
	require.Positive(t, b.HiddenBytes)
	for n, l := range m.Levels {
		require.EqualValues(t, l.BlobBytes, f.gauge(t, "siftkv_level_blob_bytes", "level", strconv.Itoa(n)))
	}
}

// Of a store in an object store a scrape has its requests by kind and outcome, its cache and its garbage.
func TestScrapeOfAStoreInAnObjectStore(t *testing.T) {
	db := openStore(t, inObjects())
	require.NoError(t, db.Set(key(0), nil, kv.Sync))
	r := pedantic(t, siftprometheus.NewCollector(db, nil))
	f, m := parse(t, scrape(t, r)), db.Metrics().Objects
	calls := int64(0)
	for kind, count := range m.Requests {
		label := objstore.Kind(kind).String()
		for _, outcome := range []string{"ok", "failed", "unknown"} {
			calls += int64(f.counter(t, "siftkv_object_calls_total", "kind", label, "outcome", outcome))
		}
		require.EqualValues(t, count.Requests, f.counter(t, "siftkv_object_requests_total", "kind", label))
		require.EqualValues(t, count.Bytes, f.counter(t, "siftkv_object_bytes_total", "kind", label))
	}
	require.Equal(t, m.Requests.Total().Calls, calls)
	require.Positive(t, m.Requests[objstore.PutIfAbsent].Bytes)
	require.Positive(t, m.Epoch)
	require.Positive(t, m.EntriesSinceList)
	require.EqualValues(t, m.Epoch, f.gauge(t, "siftkv_object_writer_epoch"))
	require.EqualValues(t, m.EntriesSinceList, f.gauge(t, "siftkv_object_entries_since_list"))
	require.EqualValues(t, m.GarbageFiles, f.gauge(t, "siftkv_garbage_files"))
	require.NotContains(t, parse(t, scrape(t, pedantic(t, siftprometheus.NewCollector(openStore(t, timed()), nil)))),
		"siftkv_object_calls_total")
}

// The counts of a histogram are those of the store's own at each bound, which is exact.
func TestHistograms(t *testing.T) {
	db := openStore(t, timed())
	f := parse(t, scrape(t, pedantic(t, siftprometheus.NewCollector(db, nil))))
	l := db.Metrics().Latency
	for name, want := range map[string]metrics.Histogram{
		"siftkv_get_duration_seconds":        l.Get,
		"siftkv_commit_duration_seconds":     l.Commit,
		"siftkv_wal_sync_duration_seconds":   l.Sync,
		"siftkv_flush_duration_seconds":      l.Flush,
		"siftkv_write_wait_duration_seconds": l.Stall,
	} {
		require.Equal(t, dto.MetricType_HISTOGRAM, f[name].GetType(), name)
		h := f.one(t, name).GetHistogram()
		require.Equal(t, want.Count, h.GetSampleCount(), name)
		require.InDelta(t, want.Sum.Seconds(), h.GetSampleSum(), 1e-12)
		require.Greater(t, len(h.Bucket), 20)
		for _, b := range h.Bucket {
			within := uint64(0)
			for _, w := range want.Buckets {
				if w.Lower.Seconds() < b.GetUpperBound() {
					require.LessOrEqual(t, w.Upper.Seconds(), b.GetUpperBound(), "a bound within a bucket")
					within += w.Count
				}
			}
			require.Equal(t, within, b.GetCumulativeCount(), "%s, le %v", name, b.GetUpperBound())
		}
	}
	require.Greater(t, l.Get.Count, uint64(200))
	require.Positive(t, l.Sync.Count)

	untimed := parse(t, scrape(t, pedantic(t, siftprometheus.NewCollector(openStore(t, kv.Options{}), nil))))
	require.NotContains(t, untimed, "siftkv_get_duration_seconds")
	require.Contains(t, untimed, "siftkv_gets_total")
}

// Stores of a program differ in a label; without one, the registry refuses the second.
func TestSeveralStores(t *testing.T) {
	a, b := openStore(t, timed()), openStore(t, kv.Options{})
	_, err := b.Has(key(1))
	require.NoError(t, err)
	labels := client.Labels{"store": "a"}
	ca := siftprometheus.NewCollector(a, labels)
	labels["store"] = "b"
	r := pedantic(t, ca, siftprometheus.NewCollector(b, labels))
	f := parse(t, scrape(t, r))
	require.EqualValues(t, 4000, f.counter(t, "siftkv_gets_total", "store", "a"))
	require.EqualValues(t, 4001, f.counter(t, "siftkv_gets_total", "store", "b"))
	require.Error(t, r.Register(siftprometheus.NewCollector(b, labels)))
	require.True(t, r.Unregister(ca))
	f = parse(t, scrape(t, r))
	require.Len(t, f["siftkv_gets_total"].Metric, 1)
}

// A store may be closed while it is scraped. What it has counted stays, and what is of the moment
// is left out.
func TestAStoreIsClosedWhileItIsScraped(t *testing.T) {
	for range 5 {
		db := openStore(t, timed())
		r := pedantic(t, siftprometheus.NewCollector(db, nil))
		var scraping sync.WaitGroup
		var first sync.WaitGroup
		first.Add(2)
		for range 2 {
			scraping.Go(func() {
				began := sync.OnceFunc(first.Done)
				defer began()
				for closed := false; !closed; {
					gathered, err := r.Gather()
					if !assert.NoError(t, err) {
						return
					}
					for _, f := range gathered {
						closed = closed || f.GetName() == "siftkv_open" && f.Metric[0].GetGauge().GetValue() == 0
					}
					began()
				}
			})
		}
		first.Wait()
		require.NoError(t, db.Close())
		scraping.Wait()
		f := parse(t, scrape(t, r))
		require.EqualValues(t, 0, f.gauge(t, "siftkv_open"))
		require.EqualValues(t, 4000, f.counter(t, "siftkv_gets_total"))
		require.Contains(t, f, "siftkv_get_duration_seconds")
		for name, family := range f {
			ofTheMoment := name != "siftkv_open" && family.GetType() == dto.MetricType_GAUGE
			require.False(t, ofTheMoment, name)
		}
	}
}

// All that may be collected is described, once each, and named as Prometheus would have it.
func TestNamesAreConventional(t *testing.T) {
	c := siftprometheus.NewCollector(openStore(t, inObjects()), client.Labels{"store": "a"})
	problems, err := testutil.GatherAndLint(pedantic(t, c))
	require.NoError(t, err)
	require.Empty(t, problems)
	descriptions := make(chan *client.Desc, 1000)
	c.Describe(descriptions)
	close(descriptions)
	described := map[string]bool{}
	for d := range descriptions {
		described[d.String()] = true
	}
	collected := map[string]bool{}
	metrics := make(chan client.Metric, 1000)
	c.Collect(metrics)
	close(metrics)
	for m := range metrics {
		collected[m.Desc().String()] = true
	}
	require.Equal(t, slices.Sorted(maps.Keys(described)), slices.Sorted(maps.Keys(collected)))
	require.Greater(t, len(collected), 70)
}

// Labels that metrics have of their own are refused when the collector is registered, and nothing panics.
func TestLabelsThatAreTaken(t *testing.T) {
	db, err := kv.Open("", &kv.Options{InMemory: true})
	require.NoError(t, err)
	defer db.Close()
	for name, refused := range map[string]bool{"level": true, "source": true, "kind": true,
		"outcome": true, "store": false} {
		err := client.NewRegistry().Register(siftprometheus.NewCollector(db, client.Labels{name: "x"}))
		require.Equal(t, refused, err != nil, "%s: %v", name, err)
	}
}
