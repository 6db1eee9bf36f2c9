package s3

import (
	"context"
	"time"

	"github.com/siftkv/siftkv/objstore"
)

// A reading is what became of one of the requests that getHedged sends.
type reading struct {
	n      int
	f      *failure
	buffer []byte
}

// decides reports whether the other request would bring no more.
func (r reading) decides() bool { return r.f == nil || !r.f.again }

// getHedged is a try of GetRange and, if the reply is slow, a second concurrent request. Both have ended when it
// returns.
func (c *call) getHedged(ctx context.Context, off int64, p []byte, retries int64) (int, *failure) {
	if c.s.HedgeAfter == 0 {
		return c.get(ctx, off, p, objstore.Count{Retries: retries})
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	readings := make(chan reading)
	read := func(buffer []byte, note objstore.Count) {
		n, f := c.get(ctx, off, buffer, note)
		readings <- reading{n, f, buffer}
	}
	go read(p, objstore.Count{Retries: retries})
	slow := time.NewTimer(c.s.HedgeAfter)
	defer slow.Stop()
	var best *reading
	for running := 1; running > 0; {
		select {
		case <-slow.C:
			if best == nil {
				running++
				go read(make([]byte, len(p)), objstore.Count{Hedges: 1}) // both write
			}
		case r := <-readings:
			running--
			if best == nil || !best.decides() {
				best = &r
			}
			if best.decides() {
				cancel()
			}
		}
	}
	copy(p, best.buffer[:best.n])
	return best.n, best.f
}
