package cli

import (
	"fmt"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestRedactURL(t *testing.T) {
	for url, want := range map[string]string{
		"s3://bucket/prefix":                         "s3://bucket/prefix",
		"s3://bucket/prefix?region=x&token=SECRET":   "s3://bucket/prefix",
		"s3://user:SECRET@bucket/prefix?a=b":         "s3://bucket/prefix",
		"S3://user:SEC/RET@bucket":                   "s3://bucket",
		"s3://bucket#SECRET":                         "s3://bucket",
		"s3://bucket?x=a@SECRET":                     "s3://...",
		"s3://user:SEC?RET@bucket":                   "s3://...",
		"s3://b/p?region=x&branch=a.b&token=SECRET":  "s3://b/p?branch=a.b",
		"s3://b/p?checkpoint=c&endpoint=e&branch=a":  "s3://b/p?checkpoint=c&branch=a",
		"s3://b/p?branch=a&checkpoint=c: it failed":  "s3://b/p?branch=a",
		"s3://b/p?checkpoint=c:":                     "s3://b/p?checkpoint=c:",
		"s3://b/p?branch=a&token=SECRET):":           "s3://b/p?branch=a",
		"s3://b/p?branch=SEC/RET&checkpoint=SEC+RET": "s3://b/p",
		"s3://b/p#branch=SECRET":                     "s3://b/p",
		"s3://b/p?branch=a#SECRET":                   "s3://b/p",
		"s3://b/p?xbranch=SECRET":                    "s3://b/p",
		"s3://b?branch=a@SECRET":                     "s3://...",
		"s3://u:SECRET@b/p?branch=a":                 "s3://b/p?branch=a",
		"dir://a@b/c?d":                              "dir://a@b/c?d",
		"/a/path?with=query":                         "/a/path?with=query",
		"s3:/bucket":                                 "s3:/bucket",
	} {
		require.Equal(t, want, RedactURL(url), url)
	}
}

// A drive is no scheme, however many slashes follow it.
func TestScheme(t *testing.T) {
	for text, want := range map[string]string{
		"s3://bucket": "s3", "S3://bucket": "s3", "dir://x": "dir", "x-y+z.1://": "x-y+z.1",
		`C:\store`: "", "C:/store": "", "C://store": "", "./s3://bucket": "", "s3:/bucket": "", "://": "", "": "",
	} {
		require.Equal(t, want, Scheme(text), text)
	}
}

func TestRedact(t *testing.T) {
	for _, url := range []string{
		"s3://user:SECRET@bucket/prefix?token=SECRET", "s3://bucket?a=SECRET&b=SECRET",
		"s3://u:SECRET x SECRET@b?SECRET", "s3://bucket?a=\"SECRET\" SECRET", "s3://bucket?a='SECRET'\nSECRET",
		"s3://bucket?\xffSECRET", "ftp://SECRET@host", "s3://bucket?branch=b&x=SECRET", "s3://b?branch=SEC:SECRET",
		"s3://bucket?branch=b SECRET", "s3://bucket?branch=b\nSECRET", "s3://SECRET@b?x=SECRET&checkpoint=c",
	} {
		for _, argv := range [][]string{{"p", url}, {"p", "--flag=" + url}, {"p", "--flag", url, "x"}} {
			for _, text := range []string{
				"unexpected argument " + url, fmt.Sprintf("%q is wrong: %s", url, url), strconv.Quote(url),
				"open " + url + ": no such file", fmt.Sprint(RedactArgs(argv)), "--flag=" + url,
			} {
				require.NotContains(t, Redact(text, argv), "SECRET")
			}
			require.NotContains(t, fmt.Sprint(RedactArgs(argv)), "SECRET")
		}
	}
	require.Equal(t, `open "s3://b/p": see s3://b/p or not`,
		Redact(`open "s3://u@b/p?x=y": see s3://b/p?x, or not`, nil))
	require.Equal(t, []string{"p", "a@b?c", "--url=s3://b"}, RedactArgs([]string{"p", "a@b?c", "--url=s3://u@b?c"}))
}

func TestCutParameters(t *testing.T) {
	for url, want := range map[string][2]string{
		"s3://b/p?a=b&c=d/e":       {"s3://b/p", "?a=b&c=d/e"},
		"s3://b/p#x?y":             {"s3://b/p", "#x?y"},
		"s3://b/p":                 {"s3://b/p", ""},
		"dir:///a/b?branch=c":      {"dir:///a/b", "?branch=c"},
		"dir://a?b=c?checkpoint=d": {"dir://a?b=c", "?checkpoint=d"},
		"dir://a?b=c/":             {"dir://a?b=c/", ""},
		"dir://a?b=c/d?":           {"dir://a?b=c/d?", ""},
		"dir://a#b?c":              {"dir://a#b?c", ""},
	} {
		address, parameters := CutParameters(url)
		require.Equal(t, want, [2]string{address, parameters}, url)
	}
}
