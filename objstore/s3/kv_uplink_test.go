package s3

import (
	"io"
	"math/rand/v2"
	"net"
	"net/url"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/internal/scale"
	"github.com/siftkv/siftkv/kv"
	"github.com/siftkv/siftkv/kv/objects"
)

// throttled returns a server behind a line that takes so many bytes per second, from all connections together.
func throttled(t *testing.T, v server, rate int) server {
	target, err := url.Parse(v.endpoint)
	require.NoError(t, err)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	var (
		turn    sync.Mutex // of who sends
		closers []io.Closer
		accepts sync.WaitGroup
		all     sync.WaitGroup
	)
	accepts.Go(func() {
		for {
			client, err := l.Accept()
			if err != nil {
				return
			}
			up, err := net.Dial("tcp", target.Host)
			if !assert.NoError(t, err) {
				return
			}
			closers = append(closers, client, up)
			all.Go(func() { _, _ = io.Copy(client, up) }) // replies
			all.Go(func() {
				defer up.Close()
				for p := make([]byte, 16<<10); ; {
					n, err := client.Read(p)
					turn.Lock()
					time.Sleep(time.Duration(n) * time.Second / time.Duration(rate))
					turn.Unlock()
					if _, failed := up.Write(p[:n]); err != nil || failed != nil {
						return
					}
				}
			})
		}
	})
	t.Cleanup(func() {
		_ = l.Close()
		accepts.Wait()
		for _, c := range closers {
			_ = c.Close()
		}
		all.Wait()
	})
	v.endpoint = "http://" + l.Addr().String()
	return v
}

// A writer behind a slow uplink acknowledges synced writes while files go up, and stays writable.
func TestAStoreBehindASlowUplink(t *testing.T) {
	rates := []int{10_000_000}
	if scale.Long() {
		rates = []int{250_000, 1_000_000, 10_000_000}
	}
	v := newServer(t)
	for _, rate := range rates {
		t.Run(strconv.Itoa(rate), func(t *testing.T) {
			t.Parallel()
			s := throttled(t, v, rate).open(t, inParts)
			db, err := kv.Open("", &kv.Options{MemtableSize: 8 << 20, Objects: &objects.Config{Store: s}})
			require.NoError(t, err)
			rng := rand.NewChaCha8([32]byte{byte(rate)})
			var longest time.Duration
			for i := range 12 {
				value := make([]byte, 1<<20)
				_, _ = rng.Read(value)
				begun := time.Now()
				require.NoError(t, db.Set(strconv.AppendInt(nil, int64(i), 10), value, kv.Sync))
				longest = max(longest, time.Since(begun))
			}
			require.NoError(t, db.Flush(t.Context()))
			require.NoError(t, db.Set([]byte("last"), nil, kv.Sync))
			require.NoError(t, db.Close())
			t.Logf("the longest write of 1 MiB took %v", longest)
		})
	}
}
