package s3

import (
	"context"
	"crypto/rand"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/internal/gatewaytest"
	"github.com/siftkv/siftkv/objstore"
)

// The credentials of the servers that the tests start.
const (
	accessKey = gatewaytest.AccessKey
	secretKey = gatewaytest.SecretKey
)

// A server is one that the tests may use.
type server struct {
	endpoint string
	bucket   string
	own      bool // it has the tests' credentials, and not those of the environment
}

// startGateway runs a versitygw over a directory until the test ends.
func startGateway(t testing.TB, dir string) server {
	return server{endpoint: gatewaytest.Start(t, dir), bucket: "tests", own: true}
}

// shared is the gateway of tests that need none of their own.
var shared struct {
	sync.Mutex
	*gatewaytest.Gateway
	dir string
}

// startShared starts it when it is first needed.
func startShared(t testing.TB) server {
	shared.Lock()
	defer shared.Unlock()
	v := server{bucket: "tests", own: true}
	if shared.Gateway != nil {
		v.endpoint = shared.Endpoint
		return v
	}
	dir, err := os.MkdirTemp("", "siftkv-s3-") //nolint:usetesting // it outlives the test
	require.NoError(t, err)
	shared.dir = dir
	shared.Gateway, err = gatewaytest.Run(dir)
	require.NoError(t, err)
	v.endpoint = shared.Endpoint
	v.makeBucket(t)
	return v
}

// stopShared ends it, if it runs.
func stopShared() {
	if shared.Gateway != nil {
		shared.Stop()
		_ = os.RemoveAll(shared.dir)
	}
}

// newServer returns the server of S3_ENDPOINT and S3_BUCKET, with the credentials of the environment, or the gateway
// that the tests share.
func newServer(t testing.TB) server {
	if endpoint := os.Getenv("S3_ENDPOINT"); endpoint != "" {
		v := server{endpoint: endpoint, bucket: os.Getenv("S3_BUCKET")}
		require.NotEmpty(t, v.bucket, "S3_ENDPOINT is set, and S3_BUCKET is not")
		return v
	}
	return startShared(t)
}

// gatewayDir returns an empty directory for a gateway's objects.
func gatewayDir(t testing.TB) string {
	dir := filepath.Join(t.TempDir(), "objects")
	require.NoError(t, os.Mkdir(dir, 0o755))
	return dir
}

func (v server) makeBucket(t testing.TB) {
	_, err := v.client(t).CreateBucket(t.Context(), &s3.CreateBucketInput{Bucket: &v.bucket})
	require.NoError(t, err)
}

// config returns what opens a part of the server that nothing else uses. Tries follow each other fast.
func (v server) config() Config {
	c := Config{Endpoint: v.endpoint, PathStyle: true}
	c.Bucket, c.Prefix = v.bucket, "test-"+rand.Text()
	c.Pause = time.Millisecond
	if v.own {
		c.Credentials = credentials.NewStaticCredentialsProvider(accessKey, secretKey, "")
	}
	return c
}

// open opens an empty store, changed by some options.
func (v server) open(t testing.TB, change ...func(*Config)) *store {
	c := v.config()
	for _, f := range change {
		f(&c)
	}
	s, err := Open(t.Context(), c)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	if !v.own && c.Prefix != "" {
		t.Cleanup(func() { clearBucket(t, c.Prefix) })
	}
	return s.(*store)
}

// clearBucket deletes what is left of a store in a bucket that outlives the tests.
func clearBucket(t testing.TB, prefix string) {
	ctx := context.WithoutCancel(t.Context())
	v := newServer(t)
	c := v.config()
	c.Prefix = prefix
	s, err := Open(ctx, c)
	require.NoError(t, err)
	defer s.Close()
	for o, err := range s.List(ctx, "", "") {
		require.NoError(t, err)
		require.NoError(t, s.Delete(ctx, o.Key))
	}
}

// client returns the SDK's own client.
func (v server) client(t testing.TB) *s3.Client {
	c := v.config()
	c.Prefix = ""
	s, err := Open(t.Context(), c)
	require.NoError(t, err)
	return s.(*store).client
}

// by returns a store whose prefix is another's, by way of another server or proxy.
func (s *store) by(t testing.TB, v server, change ...func(*Config)) *store {
	return v.open(t, append([]func(*Config){func(c *Config) { c.Prefix = s.Prefix }}, change...)...)
}

// content returns an object's, which must be there.
func content(t testing.TB, s objstore.Store, key string) string {
	body, err := objstore.ReadAll(context.WithoutCancel(t.Context()), s, key, 0)
	require.NoError(t, err)
	return string(body)
}
