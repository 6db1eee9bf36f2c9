package s3

import (
	"net"
	"net/http"
	"net/http/httptrace"
	"path/filepath"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/kv"
	"github.com/siftkv/siftkv/kv/objects"
)

// An endpoint that takes connections and says nothing is named by the error of Open.
func TestAnEndpointThatIsSilent(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer l.Close()
	s, err := Open(t.Context(), Config{
		Options:  Options{Bucket: "b", Tries: 2, Timeout: 20 * time.Millisecond, Pause: time.Millisecond},
		Endpoint: "http://" + l.Addr().String(), PathStyle: true,
		Credentials: credentials.NewStaticCredentialsProvider("key", "secret", ""),
	})
	require.NoError(t, err)
	for name, open := range map[string]func(string, *kv.Options) (*kv.DB, error){
		"Open": kv.Open, "OpenReadOnly": kv.OpenReadOnly,
	} {
		_, err := open("", &kv.Options{Objects: &objects.Config{Store: s}})
		require.ErrorContains(t, err, "no reply from "+l.Addr().String()+" within ", name)
		require.NotErrorIs(t, err, kv.ErrNotExist, name)
	}
}

// A mute is an HTTP client of a server that replies to some requests, and then to none.
type mute struct{ replies atomic.Int64 }

// Do implements s3.HTTPClient.
func (m *mute) Do(r *http.Request) (*http.Response, error) {
	httptrace.ContextClientTrace(r.Context()).WroteHeaders()
	if m.replies.Add(-1) < 0 {
		<-r.Context().Done()
		return nil, r.Context().Err()
	}
	return &http.Response{StatusCode: http.StatusNoContent, Body: http.NoBody, Request: r}, nil
}

// A server that never replied is given 30 seconds. One that replied before is tried as often as the options say.
func TestAServerThatNeverRepliedIsGivenUpSooner(t *testing.T) {
	t.Parallel()
	for _, replied := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			m := new(mute)
			s, err := New(s3.New(s3.Options{Region: "us-east-1", HTTPClient: m,
				Credentials: credentials.NewStaticCredentialsProvider("key", "secret", "")}), Options{Bucket: "b"})
			require.NoError(t, err)
			if replied {
				m.replies.Store(1)
				require.NoError(t, s.Delete(t.Context(), "key"))
			}
			begun := time.Now()
			_, err = kv.Open("", &kv.Options{Objects: &objects.Config{Store: s}})
			require.ErrorContains(t, err, "within 15s")
			least, most := 30*time.Second, 31*time.Second
			if replied {
				least, most = 8*15*time.Second, (8*15+20)*time.Second
			}
			require.GreaterOrEqual(t, time.Since(begun), least)
			require.LessOrEqual(t, time.Since(begun), most)
		})
	}
}

// The error of a request without credentials says how to provide them.
func TestCredentialsAreMissing(t *testing.T) {
	empty := filepath.Join(t.TempDir(), "none")
	for _, name := range []string{
		"AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "AWS_PROFILE", "AWS_ROLE_ARN",
		"AWS_WEB_IDENTITY_TOKEN_FILE", "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI", "AWS_CONTAINER_CREDENTIALS_FULL_URI",
	} {
		t.Setenv(name, "")
	}
	t.Setenv("AWS_CONFIG_FILE", empty)
	t.Setenv("AWS_SHARED_CREDENTIALS_FILE", empty)
	t.Setenv("AWS_EC2_METADATA_DISABLED", "true")
	s, err := OpenURL(t.Context(), "s3://b?endpoint=http://127.0.0.1:1")
	require.NoError(t, err)
	defer s.Close()
	_, err = kv.Open("", &kv.Options{Objects: &objects.Config{Store: s}})
	require.ErrorContains(t, err, "there are no credentials; set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY")
}
