package advice

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/internal/scale"
	"github.com/siftkv/siftkv/kv"
	"github.com/siftkv/siftkv/kv/lookuptrace"
)

func TestAdviceFromTheSample(t *testing.T) {
	t.Parallel()
	scale.OneGoroutine(t, "a replay in one goroutine")
	for i, partition := range []int{0, 64, 0} {
		from := -1
		if i == 2 {
			from = 50
		}
		db, dir := adviceStore(t, &kv.Options{LookupSample: 1 << 20, CacheSize: 256 << 10, IndexPartition: partition,
			SeparateFrom: from})
		_, err := For(t.Context(), db, nil)
		require.ErrorIs(t, err, ErrSmallSample)
		require.ErrorContains(t, err, "there are 0 lookups and 0 scans, and 1000 are wanted")
		lookups, scans := ask(t, db)
		before := db.Metrics()
		a, err := For(t.Context(), db, nil)
		require.NoError(t, err)
		require.Equal(t, before.Gets, db.Metrics().Gets, "advice is no lookup")
		requireAdvice(t, a)
		require.Equal(t, from > 0, strings.Contains(fmt.Sprint(a.Unknown), "separated values"))
		if from > 0 {
			require.Equal(t, before.Blobs, db.Metrics().Blobs, "nothing is read of blob files")
			require.Positive(t, before.Blobs.Files)
		}
		require.Equal(t, []int{lookups, scans}, []int{a.Sample.Lookups, a.Sample.Scans})
		require.EqualValues(t, 1, a.Sample.OneIn)
		require.Zero(t, a.Sample.Changed)
		require.Positive(t, a.Now.FilterBytes)
		require.EqualValues(t, 256<<10, a.Now.CacheSize)
		if partition > 0 {
			require.Contains(t, fmt.Sprint(a.Unknown), "partitioned indexes")
		} else {
			require.NotContains(t, fmt.Sprint(a.Unknown), "partitioned indexes")
		}
		o, err := kv.ParseOptions(a.Options)
		require.NoError(t, err)
		stale := kv.FilterCompaction{Files: a.RewriteFiles, Bytes: a.RewriteBytes}
		require.NoError(t, db.Close())
		_, err = For(t.Context(), db, nil)
		require.ErrorIs(t, err, kv.ErrClosed)
		if a.Keep || o.Filter == nil {
			continue
		}
		o.MemtableSize, o.TargetFileSize, o.BaseLevelSize = 256<<10, 64<<10, 128<<10
		db, err = kv.Open(dir, o)
		require.NoError(t, err)
		got, err := db.StaleFilters()
		require.NoError(t, err)
		require.Equal(t, stale, got, "what it said would be rewritten")
		require.NoError(t, db.Close())
	}
}

// requireAdvice checks what holds of all advice.
func requireAdvice(t *testing.T, a *Report) {
	t.Helper()
	require.NotEmpty(t, a.Words)
	require.Contains(t, []string{"high", "medium", "low"}, a.Confidence)
	require.NotEmpty(t, a.Why)
	require.NotEmpty(t, a.Unknown)
	require.NotEmpty(t, a.Prices)
	require.NotEmpty(t, a.Caches)
	require.NotEmpty(t, a.Worth)
	require.Len(t, a.Styles, len(styles))
	require.Equal(t, a.Keep, a.Options == "")
	require.Equal(t, a.Keep, a.Recommended == a.Now)
	require.True(t, a.Gain >= 0 && a.Gain <= 1)
	for i, p := range a.Front {
		require.GreaterOrEqual(t, p.Memory, p.FilterBytes+p.CacheSize) // and the memory of false positives
		require.True(t, i == 0 || p.Memory > a.Front[i-1].Memory)
	}
	require.Positive(t, a.Now.Lookups.Operations)
	require.Positive(t, a.Now.Lookups.Nanos)
	require.LessOrEqual(t, a.Now.Lookups.DeviceReads, a.Now.Lookups.Blocks+1e-9)
}

func TestAdviceFromATrace(t *testing.T) {
	scale.OneGoroutine(t, "a replay in one goroutine")
	t.Parallel()
	for _, keys := range []bool{true, false} {
		db, dir := adviceStore(t, &kv.Options{})
		var out bytes.Buffer
		tracer, err := lookuptrace.New(&out, &lookuptrace.Options{Keys: keys})
		require.NoError(t, err)
		db.TraceLookups(tracer)
		lookups, scans := ask(t, db)
		require.NoError(t, tracer.Close())
		_, err = For(t.Context(), db, nil)
		require.ErrorIs(t, err, ErrNoSample)
		require.NoError(t, db.Close())

		db, err = kv.Open(dir, &kv.Options{ReadOnly: true})
		require.NoError(t, err)
		a, err := For(t.Context(), db, &Options{Trace: bytes.NewReader(out.Bytes())})
		require.NoError(t, err)
		requireAdvice(t, a)
		require.Equal(t, []int{lookups, scans}, []int{a.Sample.Lookups, a.Sample.Scans})
		require.Positive(t, a.Sample.Span)

		cut := out.Len() - 10
		_, err = For(t.Context(), db, &Options{Trace: bytes.NewReader(out.Bytes()[:cut])})
		require.NoError(t, err, "a trace without an end is taken as far as it goes")
		damaged := bytes.Clone(out.Bytes())
		damaged[out.Len()/2] ^= 1
		_, err = For(t.Context(), db, &Options{Trace: bytes.NewReader(damaged)})
		require.ErrorIs(t, err, kv.ErrCorruption)
		_, err = For(t.Context(), db, &Options{Trace: bytes.NewReader(nil)})
		require.ErrorContains(t, err, "not a lookup trace")
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		_, err = For(ctx, db, &Options{Trace: bytes.NewReader(out.Bytes())})
		require.ErrorIs(t, err, context.Canceled)
		require.NoError(t, db.Close())
	}
}
