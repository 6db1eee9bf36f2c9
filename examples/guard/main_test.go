package main

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"os"
	"regexp"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/internal/scale"
)

func TestMain(m *testing.M) {
	scale.Waiting(8)
	os.Exit(m.Run())
}

// output is what a program writes, for a reader who does not wait for its end.
type output struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.Write(p)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.String()
}

// local are flags of a program that uses no other and nobody's port.
var local = []string{"--listen=127.0.0.1:0", "--users=500", "--redis-timeout=1900ms"}

func TestUsage(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		args   []string
		status int
		says   string
	}{
		{[]string{"--help"}, 0, "--null-ttl"},
		{[]string{"--nonsense"}, 2, "unknown flag"},
		{[]string{"--rate=1"}, 2, "from 0.00001 to 0.5"},
		{[]string{"--rate=0"}, 2, "from 0.00001 to 0.5"},
		{[]string{"--fail=perhaps"}, 2, "open"},
		{[]string{"--users=-1"}, 2, "--users"},
		{[]string{"--capacity=0"}, 2, "at least 1"},
		{[]string{"--db-conns=0"}, 2, "--db-conns"},
		{[]string{"--timeout=2500ms"}, 2, "half of --grace 5s"},
		{[]string{"--redis-timeout=2100ms"}, 2, "--timeout"},
		{[]string{"--null-ttl=0s"}, 2, "at least 1ms"},
		{[]string{"--data=x", "--postgres=y"}, 2, "leave one of them out"},
		{[]string{"--users=1", "--page"}, 2, "at least 2"},
		{[]string{"--redis=a:1"}, 2, "--postgres or --data"},
		{[]string{"--mirror"}, 2, "needs --redis"},
		{[]string{"--visitors=-1"}, 2, "--visitors"},
		{[]string{"--redis-master=m"}, 2, "without --redis"},
		{[]string{"--redis-cluster"}, 2, "without --redis"},
		{[]string{"--users=2", "--data", t.TempDir(), "--redis=127.0.0.1:1"}, 1, "127.0.0.1:1"},
		{[]string{"--users=2", "--postgres=host=/nowhere"}, 1, "/nowhere"},
		{[]string{"--users=2", "--listen=nowhere:port"}, 1, "--listen"},
	} {
		var stdout, stderr output
		status := run(t.Context(), test.args, &stdout, &stderr)
		said := stdout.String() + stderr.String()
		require.Equal(t, test.status, status, "%v: %s", test.args, said)
		require.Contains(t, said, test.says, "%v", test.args)
	}
}

// The program serves until it is asked to end, and leaves nothing behind.
func TestServe(t *testing.T) {
	temporary := t.TempDir()
	t.Setenv("TMPDIR", temporary)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var stdout, stderr output
	status := make(chan int, 1)
	go func() { status <- run(ctx, append([]string{"--page"}, local...), &stdout, &stderr) }()
	serving := regexp.MustCompile(`url=(http://\S+)`)
	await(t, func() bool { return len(status) > 0 || serving.MatchString(stderr.String()) })
	require.Regexp(t, serving, stderr.String())
	base := serving.FindStringSubmatch(stderr.String())[1]
	for path, says := range map[string]string{
		"/": "<html", "/healthz": "", "/metrics": `guard_set_loaded{filter="banned"}`,
		"/users/7": "user7", "/live": "samples",
	} {
		response, err := http.Get(base + path)
		require.NoError(t, err)
		body, err := io.ReadAll(response.Body)
		require.NoError(t, err)
		require.NoError(t, response.Body.Close())
		require.Equal(t, http.StatusOK, response.StatusCode, path)
		require.Contains(t, string(body), says, path)
	}
	cancel()
	require.Zero(t, <-status, stderr.String())
	left, err := os.ReadDir(temporary)
	require.NoError(t, err)
	require.Empty(t, left)
}
