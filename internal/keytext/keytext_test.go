package keytext

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestWhatCannotBePrintedIsEscaped(t *testing.T) {
	for text, want := range map[string]string{
		"": "", `"a" \b ü`: `"a" \b ü`, "\x1b[31m\x9b\u009b\r\n": `\x1b[31m\x9b\u009b\r\n`,
	} {
		require.Equal(t, want, Escaped(text))
	}
	require.Equal(t, `"a\x1b"`, Name("a\x1b").String())
	require.Equal(t, "a b", Name("a b").String())
}

func TestNamesAndIDsInJSON(t *testing.T) {
	data, err := json.Marshal(map[string]any{"a": Name("dir/f"), "b": Name("\xff"), "c": ID(1<<53 + 1), "d": ID(0)})
	require.NoError(t, err)
	require.JSONEq(t, `{"a": "dir/f", "b": {"base64": "/w=="}, "c": "0020000000000001", "d": "0000000000000000"}`,
		string(data))
}
