package s3

import (
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// The contract's suite, and a store of package kv, run on the server that the environment names, with its credentials,
// and leave nothing in its bucket.
func TestTheEnvironmentNamesTheServer(t *testing.T) {
	if os.Getenv("S3_ENDPOINT") != "" {
		t.Skip("the environment names the server of this run")
	}
	v := startGateway(t, gatewayDir(t))
	v.bucket = "elsewhere"
	v.makeBucket(t)
	suites := exec.Command(os.Args[0], "-test.run=^(TestContract|TestAStoreInABucket)$", "-test.v")
	suites.Env = append(os.Environ(), "S3_ENDPOINT="+v.endpoint, "S3_BUCKET="+v.bucket,
		"AWS_ACCESS_KEY_ID="+accessKey, "AWS_SECRET_ACCESS_KEY="+secretKey)
	said, err := suites.CombinedOutput()
	require.NoError(t, err, "%s", said)
	require.Equal(t, 2, strings.Count(string(said), "\n--- PASS"), "%s", said)
	for o, err := range v.open(t, func(c *Config) { c.Prefix = "" }).List(t.Context(), "", "") {
		t.Errorf("the suites have left %v (%v)", o, err)
	}
	suites = exec.Command(os.Args[0], "-test.run=^TestAStoreInABucket$")
	suites.Env = append(os.Environ(), "S3_ENDPOINT="+v.endpoint, "S3_BUCKET="+v.bucket, "AWS_ACCESS_KEY_ID=nobody",
		"AWS_SECRET_ACCESS_KEY="+secretKey)
	said, err = suites.CombinedOutput()
	require.Error(t, err, "the server was not asked: %s", said)
}
