// Package gatewaytest starts an S3 server, versitygw, for tests, and counts the requests that reach a
// server.
package gatewaytest

import (
	"bytes"
	"errors"
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
	dir, err := os.Getwd() // a package's, somewhere in the tree
	if err != nil {
		return "", err
	}
	const module = "objstore/s3/internal/versitygw"
	for _, err = os.Stat(filepath.Join(dir, module)); err != nil; _, err = os.Stat(filepath.Join(dir, module)) {
		if dir == filepath.Dir(dir) {
			return "", err
		}
		dir = filepath.Dir(dir)
	}
	build := exec.Command("go", "tool", "-n", "versitygw")
	build.Dir = filepath.Join(dir, module)
	build.Env = append(build.Environ(), "GOWORK=off", "GOFLAGS=")
	var stderr bytes.Buffer
	build.Stderr = &stderr
	path, err := build.Output()
	if err != nil {
		return "", fmt.Errorf("building versitygw: %w\n%s", err, stderr.String())
	}
	return strings.TrimSpace(string(path)), nil
})

// A Gateway is a versitygw that runs.
type Gateway struct {
	Endpoint string

	cmd    *exec.Cmd
	exited chan error
	said   bytes.Buffer
	dir    string // in which it leaves files of its own
}

// Run runs a versitygw over a directory until Stop.
func Run(dir string) (*Gateway, error) {
	path, err := versitygw()
	if err != nil {
		return nil, err
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	address := listener.Addr().String()
	if err := listener.Close(); err != nil {
		return nil, err
	}
	g := &Gateway{Endpoint: "http://" + address, exited: make(chan error, 1)}
	if g.dir, err = os.MkdirTemp("", "siftkv-versitygw-"); err != nil {
		return nil, err
	}
	g.cmd = exec.Command(path, "--port", address, "--quiet", "--keep-alive", "--health", "/health", "posix", dir)
	g.cmd.Env = append(os.Environ(), "ROOT_ACCESS_KEY="+AccessKey, "ROOT_SECRET_KEY="+SecretKey)
	g.cmd.Dir, g.cmd.Stdout, g.cmd.Stderr = g.dir, &g.said, &g.said
	if err := g.cmd.Start(); err != nil {
		return nil, errors.Join(err, os.RemoveAll(g.dir))
	}
	go func() { g.exited <- g.cmd.Wait() }()
	for {
		if reply, err := http.Get(g.Endpoint + "/health"); err == nil {
			return g, reply.Body.Close()
		}
		select {
		case err := <-g.exited:
			return nil, errors.Join(fmt.Errorf("the gateway ended: %w\n%s", err, g.said.String()), os.RemoveAll(g.dir))
		case <-time.After(10 * time.Millisecond):
		}
	}
}

// Stop ends the gateway, and returns what it said. It is called once.
func (g *Gateway) Stop() (said string) {
	_ = g.cmd.Process.Kill()
	<-g.exited //nolint:errcheck // it was killed
	_ = os.RemoveAll(g.dir)
	return g.said.String()
}

// Start runs a versitygw over a directory until the test ends, and returns its endpoint.
func Start(t testing.TB, dir string) (endpoint string) {
	t.Helper()
	g, err := Run(dir)
	require.NoError(t, err)
	t.Cleanup(func() {
		if said := g.Stop(); t.Failed() {
			t.Logf("the gateway said:\n%s", said)
		}
	})
	return g.Endpoint
}

// StartWithBucket starts a server with a bucket, and puts its credentials into the environment for processes that the
// test starts.
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
