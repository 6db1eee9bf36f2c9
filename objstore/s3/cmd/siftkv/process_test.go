package main

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/internal/cli/clitest"
	"github.com/siftkv/siftkv/internal/gatewaytest"
	"github.com/siftkv/siftkv/internal/scale"
	"github.com/siftkv/siftkv/internal/storecmd/followtest"
	"github.com/siftkv/siftkv/kv"
	"github.com/siftkv/siftkv/kv/objects"
	"github.com/siftkv/siftkv/objstore"
	"github.com/siftkv/siftkv/objstore/s3"
)

// TestMain is siftkv itself if a test has started it so.
func TestMain(m *testing.M) { clitest.Main(m, func() { followtest.Main(s3.OpenURL, main) }) }

var works = clitest.RunWell

func process(t *testing.T, args ...string) clitest.Result {
	t.Helper()
	return (&clitest.Process{Args: args}).Run(t)
}

// A store goes from a directory to a bucket, to another, and back, beside its writer; what reads it sends no request
// to write, and what writes to it takes it over.
func TestAStoreInABucket(t *testing.T) {
	endpoint, requests := gatewaytest.Count(t, gatewaytest.StartWithBucket(t, "tests"))
	at := func(prefix string) string { return "s3://tests/" + prefix + "?endpoint=" + endpoint }
	dir, back := filepath.Join(t.TempDir(), "dir"), filepath.Join(t.TempDir(), "back")
	db, err := kv.Open(dir, nil)
	require.NoError(t, err)
	for i := range 3000 {
		require.NoError(t, db.Set(fmt.Appendf(nil, "key/%04d", i), fmt.Appendf(nil, "%0100d", i), kv.NoSync))
	}
	require.NoError(t, db.Flush(t.Context()))
	require.NoError(t, db.Set([]byte("young"), []byte("in the log"), nil))
	require.Contains(t, works(t, "copy", dir, at("first")), "s3://tests/first: copy of store ")
	require.NoError(t, db.Close())
	want := works(t, "scan", dir)
	require.Contains(t, works(t, "copy", at("first"), at("second")), "; verified: ")

	bucket, err := s3.OpenURL(t.Context(), at("second"))
	require.NoError(t, err)
	writer, err := kv.Open("", &kv.Options{Objects: &objects.Config{Store: bucket}})
	require.NoError(t, err)
	require.NoError(t, writer.Set([]byte("younger"), []byte("yet"), nil))
	want += "younger\tyet\n"
	writes := func() (n int64) {
		for kind := range requests {
			if k := objstore.Kind(kind); k != objstore.Get && k != objstore.List {
				n += requests[kind].Load()
			}
		}
		return n
	}
	before := writes()
	require.Equal(t, want, works(t, "scan", at("second")))
	require.Equal(t, "yet\n", works(t, "get", at("second"), "younger"))
	require.Contains(t, works(t, "stats", at("second")), "s3://tests/second: store ")
	require.Contains(t, works(t, "verify", at("second")), "ok")
	require.Contains(t, works(t, "explain", at("second"), "key/0001"), "key/0001")
	works(t, "copy", at("second"), back)
	require.Equal(t, before, writes(), "nothing was written")
	require.Equal(t, want, works(t, "scan", back))
	works(t, "verify", back)
	require.NoError(t, writer.Set([]byte("the writer"), []byte("goes on"), nil))

	works(t, "put", at("second"), "taken", "over")
	require.ErrorIs(t, writer.Set([]byte("late"), nil, nil), objects.ErrFenced)
	require.ErrorIs(t, writer.Close(), objects.ErrFenced)
	require.NoError(t, bucket.Close())

	backup := filepath.Join(t.TempDir(), "backup")
	works(t, "backup", at("second"), backup)
	works(t, "restore", at("third"), backup, "--verify")
	require.Equal(t, works(t, "scan", at("second")), works(t, "scan", at("third")))
	r := process(t, "copy", dir, at("third"))
	require.Equal(t, 1, r.Status)
	require.Contains(t, r.Stderr, "holds a store")
	require.NotContains(t, r.Stderr, "endpoint")
}

// A store or its copies are in a bucket. The copies follow it while a program writes to it, and all of them are killed
// at any moment.
func TestFollowABucket(t *testing.T) {
	endpoint := gatewaytest.StartWithBucket(t, "tests")
	at := func(prefix string) string { return "s3://tests/" + prefix + "?endpoint=" + endpoint }
	disk := t.TempDir()
	for _, c := range []struct {
		name, from string
		copies     [2]string
	}{
		{"into it", filepath.Join(disk, "store"), [2]string{at("first"), at("second")}},
		{"out of it", at("store"), [2]string{filepath.Join(disk, "copy"), at("copy")}},
	} {
		t.Run(c.name, func(t *testing.T) { followtest.BesideAWriter(t, c.from, c.copies, scale.Count(2, 100)) })
	}
}

// A URL names a branch or a checkpoint beside the parameters of S3's client, in any order.
func TestBranchesOfABucket(t *testing.T) {
	endpoint := gatewaytest.StartWithBucket(t, "tests")
	url := "s3://tests/store?endpoint=" + endpoint
	at := func(parameters string) string {
		return "s3://tests/store?" + parameters + "&endpoint=" + endpoint + "&region=us-east-1"
	}
	works(t, "put", url, "a", "1", "--create")
	require.Contains(t, works(t, "checkpoint", url, "c"), "c: checkpoint of s3://tests/store: ")
	works(t, "put", url, "a", "2")
	works(t, "clone", at("checkpoint=c"), "b")
	require.Contains(t, works(t, "clone", url, "d"), "d: clone of s3://tests/store\n")
	works(t, "put", url+"&branch=b", "b", "3")
	require.Equal(t, "a\t1\n", works(t, "scan", url+"&checkpoint=c"))
	require.Equal(t, "a\t1\nb\t3\n", works(t, "scan", at("branch=b")))
	require.Equal(t, "a\t2\n", works(t, "scan", url+"&branch=d"))
	require.Contains(t, works(t, "stats", at("branch=b")), "s3://tests/store?branch=b: store ")
	works(t, "verify", at("branch=b"))
	dir := filepath.Join(t.TempDir(), "dir")
	works(t, "copy", at("branch=b"), dir)
	require.Equal(t, "a\t1\nb\t3\n", works(t, "scan", dir))
	require.Regexp(t, `^CHECKPOINT .*\nc +\S+Z +\d+ +\d+ +false\n$`, works(t, "checkpoints", url))
	require.Regexp(t, `^BRANCH .*\nb +- +c +\S+Z +false\nd +- +- +\S+Z +false\n$`,
		works(t, "branches", url))
	r := process(t, "put", at("checkpoint=c"), "a", "3")
	require.Equal(t, 2, r.Status)
	require.Contains(t, r.Stderr, "s3://tests/store?checkpoint=c is a checkpoint, which does not change")
	require.NotContains(t, r.Stderr, "endpoint")
	works(t, "drop-branch", url, "b")
	works(t, "drop-checkpoint", url, "c")
	require.Empty(t, works(t, "checkpoints", url))
	r = process(t, "get", at("branch=b"), "a")
	require.Equal(t, 1, r.Status)
	require.Contains(t, r.Stderr, `no branch is called "b"`)
}

// Whatever a server says of the credentials that it is given, nobody repeats it.
func TestNoCredentialsOfABucketAreShown(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(http.StatusForbidden)
		_, _ = fmt.Fprintf(w, "<Error><Code>AccessDenied</Code><Message>%s %s</Message></Error>",
			r.Header.Get("Authorization"), r.Header.Get("X-Amz-Security-Token"))
	}))
	t.Cleanup(server.Close)
	for name, value := range map[string]string{
		"AWS_ACCESS_KEY_ID": "IDENTITY-TO-HUSH", "AWS_SECRET_ACCESS_KEY": "SECRET-TO-HUSH",
		"AWS_SESSION_TOKEN": "TOKEN-TO-HUSH", "AWS_REGION": "us-east-1",
	} {
		t.Setenv(name, value)
	}
	file := filepath.Join(t.TempDir(), "file")
	require.NoError(t, os.WriteFile(file, nil, 0o600))
	for _, url := range []string{
		"s3://bucket/prefix?endpoint=" + server.URL, "s3://user:TO-HUSH@bucket?endpoint=" + server.URL,
		"s3://bucket?endpoint=" + strings.Replace(server.URL, "//", "//u:TO-HUSH@", 1), "s3://bucket?secret=TO-HUSH",
	} {
		for _, line := range [][]string{
			{"get", url, "a"}, {"put", url, "a", "b"}, {"put", url, "a", "b", "--create"}, {"scan", url},
			{"stats", url}, {"verify", url}, {"copy", url, file + "x"}, {"restore", url, file},
			{"checkpoint", url, "c"}, {"checkpoints", url}, {"clone", url, "b"}, {"branches", url},
			{"drop-branch", url, "b"}, {"drop-checkpoint", url, "c"}, {"get", url + "&branch=b&checkpoint=c", "a"},
			{"backup", url, file + "y"},
		} {
			r := process(t, line...)
			require.NotZero(t, r.Status, line)
			require.NotEmpty(t, r.Stderr)
			require.NotContains(t, r.Stdout+r.Stderr, "TO-HUSH", line)
		}
	}
}

// A URL that is none is a wrong command line, as with every other scheme.
func TestURLsThatAreNone(t *testing.T) {
	for _, url := range []string{
		"s3://", "s3:///prefix", "s3://user@bucket", "s3://bucket?secret=x", "s3://bucket?endpoint=x", "s3://bucket#x",
	} {
		require.Equal(t, 2, process(t, "stats", url).Status, url)
	}
}
