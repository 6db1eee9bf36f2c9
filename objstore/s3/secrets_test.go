package s3

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/objstore"
)

// What must be in no error.
const (
	hiddenID     = "AKIASECLUDEDSECLUDED"
	hiddenSecret = "secluded/secret+key/that-nobody-may-see"
	hiddenToken  = "secluded-session-token-that-nobody-may-see"
)

// reveals holds that an error, which there must be, has no part of the credentials in any form of its text.
func reveals(t *testing.T, err error, name string) {
	t.Helper()
	require.Error(t, err, name)
	for _, format := range []string{"%v", "%+v", "%#v", "%q"} {
		text := strings.ToLower(fmt.Sprintf(format, err))
		for _, secret := range []string{"secluded", "that-nobody-may-see"} {
			assert.NotContains(t, text, secret, "%s, as %s", name, format)
		}
		assert.NotRegexp(t, "signature=[0-9a-f]", text, "%s, as %s", name, format)
	}
}

// failures returns the errors of one call of each kind.
func failures(t *testing.T, s objstore.Store) (errs []error) {
	_, err := s.GetRange(t.Context(), "k", 0, make([]byte, 1))
	errs = append(errs, err,
		s.Put(t.Context(), "k", bytes.NewReader([]byte("x")), 1),
		s.Put(t.Context(), "k", bytes.NewReader(big), int64(len(big))),
		s.PutIfAbsent(t.Context(), "k", []byte("x")),
		s.Delete(t.Context(), "k"))
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond) // it repeats what is of unknown outcome
	defer cancel()
	errs = append(errs, objstore.CheckConditional(ctx, s, ""))
	for _, err := range s.List(t.Context(), "", "") {
		errs = append(errs, err)
	}
	require.Len(t, errs, 7)
	return errs
}

func TestNoErrorHoldsCredentials(t *testing.T) {
	v := newServer(t)
	p := newProxy(t, v)
	hidden := func(id, secret, token string) func(*Config) {
		return func(c *Config) {
			c.Tries, c.PartSize = 2, minPartSize
			c.Credentials = credentials.NewStaticCredentialsProvider(id, secret, token)
		}
	}
	all := hidden(hiddenID, hiddenSecret, hiddenToken)

	for _, err := range failures(t, v.open(t, all)) {
		reveals(t, err, "an identity that the server does not know")
	}
	if v.own {
		for _, err := range failures(t, v.open(t, hidden(accessKey, hiddenSecret, ""))) {
			reveals(t, err, "a wrong secret")
			require.ErrorContains(t, err, "SignatureDoesNotMatch")
		}
	}
	for _, status := range []int{http.StatusBadRequest, http.StatusServiceUnavailable, http.StatusConflict} {
		p.makes(func(w http.ResponseWriter, r *http.Request, _ objstore.Kind, _ int64, _ http.Handler) {
			said := fmt.Sprint(r.Header["Authorization"], r.Header["X-Amz-Security-Token"])
			refuse(status, said)(w, r)
		})
		for _, err := range failures(t, p.open(t, all)) {
			reveals(t, err, "a server that repeats the request's header")
		}
	}
	for name, trouble := range map[string]http.HandlerFunc{"reset": reset, "hang": hang} {
		p.makes(func(w http.ResponseWriter, r *http.Request, _ objstore.Kind, _ int64, _ http.Handler) {
			trouble(w, r)
		})
		short := func(c *Config) { c.Timeout = 50 * time.Millisecond }
		for _, err := range failures(t, p.open(t, all, short)) {
			reveals(t, err, name)
		}
	}
	v.endpoint = "http://127.0.0.1:1"
	for _, err := range failures(t, v.open(t, all)) {
		reveals(t, err, "a server that is not there")
	}
}

func TestNoErrorOfOpeningHoldsCredentials(t *testing.T) {
	for _, url := range []string{
		"s3://" + hiddenID + ":that-nobody-may-see@bucket/prefix",
		"s3://" + hiddenID + ":" + hiddenSecret + "@bucket/prefix",
		"s3://bucket/prefix?secret=" + hiddenToken, "s3://bucket/prefix?" + hiddenToken,
		"s3://bucket/prefix?endpoint=http://" + hiddenID + ":that-nobody-may-see@host",
		"s3://bucket/prefix?endpoint=http://" + hiddenID + ":" + hiddenSecret + "@host",
		"s3://bucket/prefix?endpoint=http://host?key=" + hiddenToken,
		"s3://bucket/%zz" + hiddenToken, hiddenToken, "s3:" + hiddenToken, "http://" + hiddenToken,
		"s3://bucket/p#" + hiddenToken, "s3://bucket/?region=a&region=" + hiddenToken,
		"s3://bucket/?path-style=" + hiddenToken, "s3://bucket:" + hiddenToken + "/", "s3://bucket:1/" + hiddenToken,
	} {
		_, err := OpenURL(t.Context(), url)
		reveals(t, err, url)
	}
	t.Setenv("AWS_ENDPOINT_URL_S3", "http://"+hiddenID+":that-nobody-may-see@host")
	_, err := OpenURL(t.Context(), "s3://bucket")
	reveals(t, err, "an endpoint of the environment")
}

func TestNoErrorOfTheSDKsConfigurationHoldsCredentials(t *testing.T) {
	for _, name := range []string{"AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "AWS_PROFILE"} {
		t.Setenv(name, "")
		require.NoError(t, os.Unsetenv(name))
	}
	t.Setenv("AWS_EC2_METADATA_DISABLED", "true")
	file := filepath.Join(t.TempDir(), "config")
	t.Setenv("AWS_CONFIG_FILE", file)
	t.Setenv("AWS_SHARED_CREDENTIALS_FILE", file)
	for _, text := range []string{
		"", "[default]\ncredential_process = echo " + hiddenSecret,
		"[default]\ncredential_process = sh -c 'exit 1' " + hiddenSecret,
		"[default]\naws_access_key_id = " + hiddenID, "[default\naws_secret_access_key = " + hiddenSecret,
		"[default]\ns3_use_arn_region = " + hiddenSecret,
	} {
		require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
		c := Config{Endpoint: "http://127.0.0.1:1", PathStyle: true}
		c.Bucket, c.Tries = "bucket", 1
		s, err := Open(t.Context(), c)
		if err == nil {
			err = s.Delete(t.Context(), "k")
		}
		reveals(t, err, text)
	}
}
