// Package gatewaytest starts an S3 server, versitygw, for the tests of this module, and counts the requests that reach a
// server.
package gatewaytest

import (
	"bytes"
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

	"github.com/stretchr/testify/require"
)

// The credentials of the servers that Start starts.
const (
	AccessKey = "ACCESSKEYOFTESTS"
	SecretKey = "secret-key-of-the-tests-0123456789"
)

// versitygw returns the path of the server's program, which is built when it is first needed: a minute or two.
var versitygw = sync.OnceValues(func() (string, error) {
	module, err := exec.Command("go", "env", "GOMOD").Output()
	if err != nil {
		return "", err
	}
	build := exec.Command("go", "tool", "-n", "versitygw")
	build.Dir = filepath.Join(filepath.Dir(strings.TrimSpace(string(module))), "internal", "versitygw")
	var stderr bytes.Buffer
	build.Stderr = &stderr
	path, err := build.Output()
	if err != nil {
		return "", fmt.Errorf("building versitygw: %w\n%s", err, stderr.String())
	}
	return strings.TrimSpace(string(path)), nil
})

// Start runs a versitygw over a directory until the test ends, and returns its endpoint.
func Start(t testing.TB, dir string) (endpoint string) {
	t.Helper()
	path, err := versitygw()
	require.NoError(t, err)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	address := listener.Addr().String()
	require.NoError(t, listener.Close())

	gateway := exec.Command(path, "--port", address, "--quiet", "--keep-alive", "--health", "/health", "posix", dir)
	gateway.Env = append(os.Environ(), "ROOT_ACCESS_KEY="+AccessKey, "ROOT_SECRET_KEY="+SecretKey)
	gateway.Dir = t.TempDir()
	var said bytes.Buffer
	gateway.Stdout, gateway.Stderr = &said, &said
	require.NoError(t, gateway.Start())
	exited := make(chan error, 1)
	go func() { exited <- gateway.Wait() }()
	t.Cleanup(func() {
		_ = gateway.Process.Kill()
		_ = <-exited // of the signal
		if t.Failed() {
			t.Logf("the gateway said:\n%s", said.String())
		}
	})
	for {
		if reply, err := http.Get("http://" + address + "/health"); err == nil {
			_ = reply.Body.Close()
			return "http://" + address
		}
		select {
		case err := <-exited:
			exited <- err
			t.Fatalf("the gateway ended: %v", err)
		case <-time.After(10 * time.Millisecond):
		}
	}
}

// StartWithBucket starts a server with a bucket, whose credentials are then those of the environment, for
// the processes that the test starts.
func StartWithBucket(t *testing.T, bucket string) (endpoint string) {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "objects")
	require.NoError(t, os.MkdirAll(filepath.Join(dir, bucket), 0o755)) // to the server a bucket is a directory
	for name, value := range map[string]string{
		"AWS_ACCESS_KEY_ID": AccessKey, "AWS_SECRET_ACCESS_KEY": SecretKey, "AWS_REGION": "us-east-1",
		"AWS_EC2_METADATA_DISABLED": "true",
	} {
		t.Setenv(name, value)
	}
	return Start(t, dir)
}
