package main

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/cmd/kvbench/internal/tidy"
	"github.com/siftkv/siftkv/internal/cli/clitest"
	"github.com/siftkv/siftkv/internal/gatewaytest"
	"github.com/siftkv/siftkv/objstore"
	"github.com/siftkv/siftkv/objstore/s3"
)

// What the client counts is what reaches the server, kind by kind, and nothing is left of it there.
func TestCountsAgreeWithTheServer(t *testing.T) {
	t.Setenv(withS3, "1")
	endpoint, requests := gatewaytest.Count(t, gatewaytest.StartWithBucket(t, "tests"))
	url := "s3://tests/some/prefix?endpoint=" + endpoint
	r := (&clitest.Process{Args: []string{"objects", "--s3", url, "--keys", "1500", "--lookups", "50", "--reps", "2",
		"--filter", "none blocked:10", "--cache", "0", "--memory", "0", "--young", "2", "--target-file", "32KiB",
		"--delay", "1ms", "--json", "-", "-q"}}).Run(t)
	require.Zero(t, r.Status, r.Stderr)
	require.NotContains(t, r.Stdout, "endpoint=", "the URL is shown without its parameters")
	var result tidy.Result
	require.NoError(t, json.Unmarshal([]byte(r.Stdout), &result))
	require.Contains(t, result.About, "(s3://tests/some/prefix)")
	require.Len(t, result.Cells("filter", "shape", "cache"), 4)
	sent := func(metric string) int64 {
		return int64(result.Values(tidy.Of("operation", "the whole run"), metric)[0])
	}
	require.Equal(t, requests[objstore.Get].Load(), sent("gets"))
	require.Equal(t, requests[objstore.Put].Load()+requests[objstore.PutIfAbsent].Load(), sent("puts"))
	require.Equal(t, requests[objstore.List].Load(), sent("lists"))
	require.Equal(t, requests[objstore.Delete].Load(), sent("deletes"))
	require.Greater(t, sent("gets"), int64(200))
	require.Positive(t, sent("deletes"))

	bucket, err := s3.OpenURL(t.Context(), url)
	require.NoError(t, err)
	for o, err := range bucket.List(t.Context(), "", "") {
		require.NoError(t, err)
		require.Failf(t, "an object is left", "%s", o.Key)
	}
	require.NoError(t, bucket.Close())
}

func TestSecretsOfURLsAreNotShown(t *testing.T) {
	t.Setenv(withS3, "1")
	for _, args := range [][]string{{"objects", "--s3", "s3://u:HUSH@bucket?x=HUSH", "--keys", "1000"},
		{"objects", "--s3", "gs://bucket?HUSH"}, {"objects", "--s3", "s3://b?HUSH", "--in-memory"}, {"s3://b?HUSH"}} {
		r := (&clitest.Process{Args: args}).Run(t)
		require.NotZero(t, r.Status)
		require.NotEmpty(t, r.Stderr)
		require.NotContains(t, r.Stdout+r.Stderr, "HUSH")
	}
	r := (&clitest.Process{Args: []string{"completion", "bash"}}).Run(t)
	require.Zero(t, r.Status, r.Stderr)
	require.Contains(t, r.Stdout, "--s3")
}
