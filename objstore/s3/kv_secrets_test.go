package s3

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/kv"
	"github.com/siftkv/siftkv/kv/objects"
	"github.com/siftkv/siftkv/objstore"
)

// A syncBuffer is a log of several goroutines.
type syncBuffer struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (b *syncBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.Write(p)
}

func (b *syncBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.String()
}

// Credentials that the server refuses, from the beginning or from some moment on, are in nothing that a store returns
// or logs, also if the server repeats what it was sent.
func TestNothingOfAStoreHoldsCredentials(t *testing.T) {
	p := newProxy(t, newServer(t))
	var hidden atomic.Bool
	right := p.config().Credentials
	if right == nil {
		right = p.open(t).client.Options().Credentials
	}
	s := p.open(t, func(c *Config) {
		c.Tries = 2
		c.Credentials = aws.CredentialsProviderFunc(func(ctx context.Context) (aws.Credentials, error) {
			if hidden.Load() {
				return aws.Credentials{AccessKeyID: hiddenID, SecretAccessKey: hiddenSecret, SessionToken: hiddenToken,
					CanExpire: true}, nil
			}
			credentials, err := right.Retrieve(ctx)
			credentials.CanExpire, credentials.Expires = true, time.Time{} // it is asked for each request
			return credentials, err
		})
	})
	var logged syncBuffer
	o := bucketOptions(s)
	o.Logger = slog.New(slog.NewTextHandler(&logged, &slog.HandlerOptions{Level: slog.LevelDebug}))
	o.CacheSize = -1
	db, err := kv.Open("", o)
	require.NoError(t, err)
	for i := range 200 {
		require.NoError(t, db.Set(fmt.Appendf(nil, "%03d", i), make([]byte, 500), kv.Async))
	}
	require.NoError(t, errors.Join(db.Flush(t.Context()), db.Compact(t.Context(), nil, nil)))

	hidden.Store(true)
	answers := map[string]trouble{
		"a refusal": nil,
		"a server that repeats the header": func(w http.ResponseWriter, r *http.Request, _ objstore.Kind, _ int64,
			_ http.Handler) {
			refuse(http.StatusBadRequest, fmt.Sprint(r.Header["Authorization"], r.Header["X-Amz-Security-Token"]))(w, r)
		},
		"a connection that breaks": func(w http.ResponseWriter, r *http.Request, _ objstore.Kind, _ int64,
			_ http.Handler) {
			reset(w, r)
		},
	}
	for name, answer := range answers {
		p.makes(answer)
		_, err = kv.Open("", o)
		reveals(t, err, name+": Open")
		_, err = kv.OpenReadOnly("", o)
		reveals(t, err, name+": OpenReadOnly")
		reveals(t, db.Set([]byte("key"), nil, kv.Sync), name+": Set")
		_, err = db.Get([]byte("100"))
		reveals(t, err, name+": Get")
		_, err = db.MultiGet([][]byte{[]byte("001"), []byte("150")})
		reveals(t, err, name+": MultiGet")
		_, _, err = readBucket(db)
		reveals(t, err, name+": a scan")
		reveals(t, db.Flush(t.Context()), name+": Flush")
		reveals(t, db.Compact(t.Context(), nil, nil), name+": Compact")
		reveals(t, db.Checkpoint(t.Context(), t.TempDir()), name+": Checkpoint")
		var stream bytes.Buffer
		_, err = db.Backup(t.Context(), &stream, kv.BackupMark{})
		reveals(t, err, name+": Backup")
		explained, err := db.Explain([]byte("100"))
		shown := fmt.Sprintf("%+v %v %+v", explained, err, db.Metrics())
		reveals(t, errors.New(shown), name+": Explain and Metrics")
	}
	reveals(t, db.Close(), "Close")
	require.Contains(t, logged.String(), "level=")
	for line := range strings.Lines(logged.String()) {
		reveals(t, errors.New(line), "the log")
	}
}

// Credentials in a URL are refused before there is a store, and not repeated.
func TestNoStoreIsOpenedByAURLWithCredentials(t *testing.T) {
	for _, url := range []string{"s3://" + hiddenID + ":that-nobody-may-see@bucket/store",
		"s3://bucket/store?endpoint=http://" + hiddenID + ":that-nobody-may-see@127.0.0.1:1"} {
		s, err := OpenURL(t.Context(), url)
		reveals(t, err, url)
		_, err = kv.Open("", &kv.Options{Objects: &objects.Config{Store: s}})
		reveals(t, err, "without a store")
		require.ErrorIs(t, err, kv.ErrInvalidOptions)
	}
}
