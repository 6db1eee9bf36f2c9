package metrics_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/kv/metrics"
)

// Programs show metrics as JSON, and hundreds of buckets would hide the rest.
func TestBucketsAreNotInJSON(t *testing.T) {
	text, err := json.Marshal(metrics.Histogram{OneIn: 16, Buckets: []metrics.Bucket{{Count: 1}}})
	require.NoError(t, err)
	require.JSONEq(t, `{"Count": 0, "Sum": 0, "OneIn": 16}`, string(text))
}
