package metrics_test

import (
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/kv/metrics"
)

// Every counter and time of a Store has its difference, and every figure of the moment stays: by
// its type, so that none is left out.
func TestDifferenceOfStores(t *testing.T) {
	var m, prev metrics.Store
	each := func(m *metrics.Store, f func(name string, v reflect.Value)) {
		v := reflect.ValueOf(m).Elem()
		for i := range v.NumField() {
			f(v.Type().Field(i).Name, v.Field(i))
		}
	}
	value := func(n int64) func(string, reflect.Value) {
		return func(name string, v reflect.Value) {
			switch v.Interface().(type) {
			case uint64:
				v.SetUint(uint64(n + int64(len(name))))
			case int, int64, time.Duration:
				v.SetInt(n + int64(len(name)))
			}
		}
	}
	each(&m, value(1000))
	each(&prev, value(300))
	m.Levels[3].Lookup.Hits, prev.Levels[3].Lookup.Hits = 12, 5
	m.Levels[3].Files, prev.Levels[3].Files = 12, 5
	m.Latency.Flush, prev.Latency.Flush = metrics.Histogram{Count: 2, Sum: 3}, metrics.Histogram{Count: 1, Sum: 1}
	counted := 0
	each(m.Sub(&prev), func(name string, v reflect.Value) {
		switch v.Interface().(type) {
		case uint64:
			require.EqualValues(t, 700, v.Uint(), name)
			counted++
		case time.Duration:
			require.EqualValues(t, 700, v.Int(), name)
			require.True(t, strings.HasSuffix(name, "Time"))
			counted++
		case int, int64:
			require.EqualValues(t, 1000+len(name), v.Int(), name)
		}
	})
	require.Greater(t, counted, 30)
	d := m.Sub(&prev)
	require.EqualValues(t, 7, d.Levels[3].Lookup.Hits)
	require.Equal(t, 12, d.Levels[3].Files)
	require.EqualValues(t, 2, d.Latency.Flush.Sum)
	require.EqualValues(t, 12, m.Levels[3].Lookup.Hits, "m stays as it was")
}
