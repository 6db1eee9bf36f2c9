package clitest

import (
	"encoding/json"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

var (
	fieldName = regexp.MustCompile(`^[a-z][a-z0-9_]*$`)
	idText    = regexp.MustCompile(`^([0-9a-f]{16})?$`)
)

// RequireJSON asserts that an output is one JSON object or several, with fields named in
// one way, and ids and hashes as strings. No integer may be beyond 2^53, where readers
// that compute in floating point would round it. It returns the objects.
func RequireJSON(t *testing.T, output string) []map[string]any {
	t.Helper()
	d := json.NewDecoder(strings.NewReader(output))
	d.UseNumber()
	var all []map[string]any
	for d.More() {
		var v map[string]any
		require.NoError(t, d.Decode(&v), "%.1000s", output)
		requireJSON(t, "", v)
		all = append(all, v)
	}
	require.NotEmpty(t, all)
	return all
}

// RequireJSONArray asserts that an output is one JSON array of objects as RequireJSON wants them, and returns these.
func RequireJSONArray(t *testing.T, output string) []map[string]any {
	t.Helper()
	var items []json.RawMessage
	require.NoError(t, json.Unmarshal([]byte(output), &items), "%.1000s", output)
	var objects strings.Builder
	for _, item := range items {
		objects.Write(item)
	}
	return RequireJSON(t, objects.String())
}

func requireJSON(t *testing.T, name string, v any) {
	t.Helper()
	switch v := v.(type) {
	case map[string]any:
		for field, inner := range v {
			require.Regexp(t, fieldName, field, name)
			requireJSON(t, field, inner)
		}
	case []any:
		for _, inner := range v {
			requireJSON(t, name, inner)
		}
	case json.Number:
		require.False(t, isID(name), "%s is the number %s", name, v)
		if !strings.ContainsAny(v.String(), ".e") {
			n, err := v.Int64()
			require.NoError(t, err, name)
			require.LessOrEqual(t, max(n, -n), int64(1)<<53, name)
		}
	case string:
		require.True(t, !isID(name) || idText.MatchString(v), "%s is %s", name, v)
	}
}

func isID(field string) bool {
	return field == "id" || field == "hash" || strings.HasSuffix(field, "_id")
}
