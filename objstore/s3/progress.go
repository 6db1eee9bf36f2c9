package s3

import (
	"context"
	"io"
	"sync/atomic"
	"time"
)

const (
	// progressStep is the least that counts as progress, in bytes.
	progressStep = 64 << 10

	// The system takes the first bytes of an upload into its own buffers, before the network has them. Their reply is
	// waited for as if the network were the slowest that is of use, 64 KiB/s.
	systemBuffers = 4 << 20
	slowestMiB    = 16 * time.Second
)

// A progress tells how many bytes of an object the network has moved for a try, and when it last moved a step.
type progress struct {
	begun   time.Time
	bytes   atomic.Int64
	marked  atomic.Int64 // of bytes, when the last step ended
	when    atomic.Int64 // that was, in nanoseconds after begun
	stalled atomic.Bool  // the try was abandoned

	all *atomic.Int64 // bytes of all uploads; nil in a read
}

// add is called by one goroutine at a time.
func (p *progress) add(n int) {
	if p.all != nil {
		p.all.Add(int64(n))
	}
	if bytes := p.bytes.Add(int64(n)); bytes-p.marked.Load() >= progressStep {
		p.marked.Store(bytes)
		p.when.Store(int64(time.Since(p.begun)))
	}
}

// left returns how much longer the network may move nothing.
func (p *progress) left(timeout time.Duration) time.Duration {
	if p.all != nil {
		timeout += time.Duration(min(p.bytes.Load(), systemBuffers)) * slowestMiB / (1 << 20)
	}
	return time.Duration(p.when.Load()) + timeout - time.Since(p.begun)
}

// watch returns a context that ends when a try has made no progress for the timeout. A try has no limit in all: a slow
// uplink needs a minute for what a fast one does in a second.
func (p *progress) watch(ctx context.Context, timeout time.Duration) (context.Context, func()) {
	p.begun = time.Now()
	ctx, cancel := context.WithCancel(ctx)
	go func() {
		timer := time.NewTimer(timeout)
		defer timer.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-timer.C:
			}
			left := p.left(timeout)
			if left <= 0 {
				p.stalled.Store(true)
				cancel()
				return
			}
			timer.Reset(left)
		}
	}()
	return ctx, cancel
}

// A countedBody counts what is read of the body of an upload or of a reply.
type countedBody struct {
	io.ReadCloser
	p *progress
}

func (b *countedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	b.p.add(n)
	return n, err
}
