package siftprometheus_test

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	client "github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"

	siftprometheus "github.com/siftkv/siftkv/adapters/prometheus"
)

// promtool returns Prometheus' own checker. Without it a test is skipped, or fails with
// SIFTKV_PROMTOOL=required.
func promtool(t *testing.T) string {
	t.Helper()
	const missing = "there is no promtool: apt-get install prometheus"
	path, err := exec.LookPath("promtool")
	if err != nil {
		require.NotEqual(t, "required", os.Getenv("SIFTKV_PROMTOOL"), missing)
		t.Skip(missing)
	}
	return path
}

func TestPromtoolLikesTheMetrics(t *testing.T) {
	c := exec.Command(promtool(t), "check", "metrics")
	c.Stdin = bytes.NewReader(scrape(t, pedantic(t,
		siftprometheus.NewCollector(openStore(t, inObjects()), client.Labels{"store": "a"}))))
	printed, err := c.CombinedOutput()
	require.NoError(t, err, "%s", printed)
	require.Empty(t, strings.TrimSpace(string(printed)))
}

// Prometheus parses every query of the dashboard.
func TestPromtoolLikesTheQueries(t *testing.T) {
	tool := promtool(t)
	rules := []byte("groups:\n- name: dashboard\n  rules:\n")
	for i, q := range queries(t) {
		q = strings.NewReplacer("$__rate_interval", "5m", "$store", "a").Replace(q)
		rules = fmt.Appendf(rules, "  - record: query%d\n    expr: |\n      %s\n", i, q)
	}
	path := filepath.Join(t.TempDir(), "rules.yml")
	require.NoError(t, os.WriteFile(path, rules, 0o600))
	printed, err := exec.Command(tool, "check", "rules", path).CombinedOutput()
	require.NoError(t, err, "%s\n%s", printed, rules)
}
