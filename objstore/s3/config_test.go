package s3

import (
	"net/url"
	"strings"
	"testing"

	awsconfig "github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/objstore"
)

func TestParseURL(t *testing.T) {
	const endpoint = "http://127.0.0.1:7070"
	for rawURL, want := range map[string]Config{
		"s3://b":                      {Options: Options{Bucket: "b"}},
		"s3://b/":                     {Options: Options{Bucket: "b"}},
		"s3://b/p/q/":                 {Options: Options{Bucket: "b", Prefix: "p/q"}},
		"s3://b/p%20q":                {Options: Options{Bucket: "b", Prefix: "p q"}},
		"s3://b?region=eu":            {Options: Options{Bucket: "b"}, Region: "eu"},
		"s3://b?endpoint=" + endpoint: {Options: Options{Bucket: "b"}, Endpoint: endpoint, PathStyle: true},
		"s3://b/p?endpoint=" + url.QueryEscape(endpoint) + "&path-style=false": {
			Options: Options{Bucket: "b", Prefix: "p"}, Endpoint: endpoint},
		"s3://b?path-style=1": {Options: Options{Bucket: "b"}, PathStyle: true},
	} {
		got, err := ParseURL(rawURL)
		require.NoError(t, err, rawURL)
		require.Equal(t, want, got, rawURL)
	}
	for _, rawURL := range []string{
		"", "b", "/b/p", "http://b", "s3:b", "s3:///p", "s3://u@b", "s3://b:9", "s3://b#f", "s3://b?x=1", "s3://b?x",
		"s3://b?endpoint=host:80", "s3://b?endpoint=ftp://host", "s3://b?endpoint=http://u:p@host",
		"s3://b?endpoint=http://host?x", "s3://b?region=a&region=b", "s3://b?path-style=perhaps", "s3://b?%zz",
	} {
		_, err := ParseURL(rawURL)
		require.Error(t, err, rawURL)
	}
}

func FuzzParseURL(f *testing.F) {
	f.Add("s3://bucket/prefix?endpoint=http://127.0.0.1:7070&region=eu&path-style=true")
	f.Fuzz(func(t *testing.T, rawURL string) {
		c, err := ParseURL(rawURL)
		if err == nil && c.Bucket == "" {
			t.Fatalf("%q names no bucket", rawURL)
		}
		if user, _, found := strings.Cut(c.Endpoint, "@"); err == nil && found && !strings.Contains(user, "/") {
			t.Fatalf("the endpoint %q holds credentials", c.Endpoint)
		}
	})
}

func TestOptionsThatMakeNoSense(t *testing.T) {
	client := s3.New(s3.Options{Region: "us-east-1"})
	for name, o := range map[string]Options{
		"no bucket":         {},
		"small parts":       {Bucket: "b", PartSize: minPartSize - 1},
		"negative requests": {Bucket: "b", Requests: -1},
		"negative tries":    {Bucket: "b", Tries: -1},
		"negative parts":    {Bucket: "b", Parts: -1},
		"negative pause":    {Bucket: "b", Pause: -1},
		"negative timeout":  {Bucket: "b", Timeout: -1},
		"negative hedge":    {Bucket: "b", HedgeAfter: -1},
		"prefix":            {Bucket: "b", Prefix: "a//b"},
		"absolute prefix":   {Bucket: "b", Prefix: "/a"},
	} {
		_, err := New(client, o)
		require.Error(t, err, name)
	}
	_, err := New(nil, Options{Bucket: "b"})
	require.Error(t, err)
	for _, prefix := range []string{"", "/", "a", "a/", "a/b"} {
		_, err := New(client, Options{Bucket: "b", Prefix: prefix})
		require.NoError(t, err, prefix)
	}
}

// TestTheSDKsWays opens a store with the environment's credentials, by URL, and over a client of one's own.
func TestTheSDKsWays(t *testing.T) {
	v := newServer(t)
	if v.own {
		t.Setenv("AWS_ACCESS_KEY_ID", accessKey)
		t.Setenv("AWS_SECRET_ACCESS_KEY", secretKey)
		t.Setenv("AWS_SESSION_TOKEN", "")
	}
	prefix := v.config().Prefix
	if !v.own {
		t.Cleanup(func() { clearBucket(t, prefix) })
	}
	byURL, err := OpenURL(t.Context(), "s3://"+v.bucket+"/"+prefix+"?endpoint="+url.QueryEscape(v.endpoint))
	require.NoError(t, err)
	require.NoError(t, byURL.PutIfAbsent(t.Context(), "k", []byte("body")))

	settings, err := awsconfig.LoadDefaultConfig(t.Context(), awsconfig.WithRegion("us-east-1"))
	require.NoError(t, err)
	client := s3.NewFromConfig(settings, func(o *s3.Options) { o.BaseEndpoint, o.UsePathStyle = &v.endpoint, true })
	own, err := New(client, Options{Bucket: v.bucket, Prefix: prefix})
	require.NoError(t, err)
	require.Equal(t, "body", content(t, own, "k"))
	require.NoError(t, own.Close())
	require.ErrorIs(t, own.Delete(t.Context(), "k"), objstore.ErrClosed)
	require.Equal(t, "body", content(t, byURL, "k"), "a store that is closed leaves others alone")

	key := prefix + "/k"
	_, err = client.HeadObject(t.Context(), &s3.HeadObjectInput{Bucket: &v.bucket, Key: &key})
	require.NoError(t, err, "the client is its caller's still")
}
