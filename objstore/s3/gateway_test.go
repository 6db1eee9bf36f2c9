package s3

import (
	"bytes"
	"context"
	"crypto/rand"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/objstore"
)

// The credentials of the servers that the tests start.
const (
	accessKey = "ACCESSKEYOFTESTS"
	secretKey = "secret-key-of-the-tests-0123456789"
)

// versitygw returns the path of the server's program, which is built when it is first needed: a minute or two.
var versitygw = sync.OnceValues(func() (string, error) {
	build := exec.Command("go", "tool", "-n", "versitygw")
	build.Dir = "internal/versitygw"
	var stderr bytes.Buffer
	build.Stderr = &stderr
	path, err := build.Output()
	if err != nil {
		return "", fmt.Errorf("building versitygw: %w\n%s", err, stderr.String())
	}
	return strings.TrimSpace(string(path)), nil
})

// A server is one that the tests may use.
type server struct {
	endpoint string
	bucket   string
	own      bool // it has the tests' credentials, and not those of the environment
}

// startGateway runs a versitygw over a directory until the test ends.
func startGateway(t testing.TB, dir string) server {
	path, err := versitygw()
	require.NoError(t, err)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	address := listener.Addr().String()
	require.NoError(t, listener.Close())

	gateway := exec.Command(path, "--port", address, "--quiet", "--keep-alive", "--health", "/health", "posix", dir)
	gateway.Env = append(os.Environ(), "ROOT_ACCESS_KEY="+accessKey, "ROOT_SECRET_KEY="+secretKey)
	gateway.Dir = t.TempDir()
	var said bytes.Buffer
	gateway.Stdout, gateway.Stderr = &said, &said
	require.NoError(t, gateway.Start())
	exited := make(chan error, 1)
	go func() { exited <- gateway.Wait() }()
	t.Cleanup(func() {
		_ = gateway.Process.Kill()
		<-exited
		if t.Failed() {
			t.Logf("the gateway said:\n%s", said.String())
		}
	})
	for {
		if reply, err := http.Get("http://" + address + "/health"); err == nil {
			_ = reply.Body.Close()
			return server{endpoint: "http://" + address, bucket: "tests", own: true}
		}
		select {
		case err := <-exited:
			exited <- err
			t.Fatalf("the gateway ended: %v", err)
		case <-time.After(10 * time.Millisecond):
		}
	}
}

// newServer returns the server of S3_ENDPOINT and S3_BUCKET, with the credentials of the environment, or starts one.
func newServer(t testing.TB) server {
	if endpoint := os.Getenv("S3_ENDPOINT"); endpoint != "" {
		return server{endpoint: endpoint, bucket: os.Getenv("S3_BUCKET")}
	}
	v := startGateway(t, gatewayDir(t))
	v.makeBucket(t)
	return v
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
