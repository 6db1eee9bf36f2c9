package s3

import (
	"errors"
	"fmt"
	"time"

	"github.com/siftkv/siftkv/objstore"
)

// Options say where the objects are and how requests are made. The zero value of each field but Bucket means its
// default.
type Options struct {
	Bucket string // must be given
	Prefix string // of all keys, with a slash between; a slash at the end may be left out

	// PartSize is the most that one request uploads, in bytes: larger objects are uploaded in parts, Parts at once.
	// Over a line of less than 8 MB/s or so, parts are smaller and fewer at once. At least 5 MiB; 16 MiB and 4.
	PartSize int64
	Parts    int

	Requests int // of the whole store, at once; more wait; 128

	Tries int           // of a request that fails, all in all; 8; fewer in 30 s without any reply yet
	Pause time.Duration // after the first try; it doubles up to 100 times that, less up to a half at random; 50 ms

	// Timeout ends a try of which the network has moved nothing for so long, or less than 64 KiB of an object. After
	// the beginning of an upload it is up to 64 s more, as the system's buffers may hold 4 MiB. Default: 15 s.
	Timeout time.Duration

	// HedgeAfter is how long GetRange waits for a reply before it sends the same request once more, and takes
	// the first that succeeds. It buys the slowest replies off with requests, which are billed: at the 99th
	// percentile of the latency, one more in a hundred. The second reply needs len(p) bytes of memory. 0: never.
	HedgeAfter time.Duration
}

// Bounds of S3.
const (
	minPartSize = 5 << 20
	maxParts    = 10_000
)

// withDefaults returns o complete, or says what is wrong with it.
func (o Options) withDefaults() (Options, error) {
	if o.Bucket == "" {
		return o, errors.New("s3: no bucket is given")
	}
	for len(o.Prefix) > 0 && o.Prefix[len(o.Prefix)-1] == '/' {
		o.Prefix = o.Prefix[:len(o.Prefix)-1]
	}
	if o.Prefix != "" {
		if err := objstore.CheckKey(o.Prefix); err != nil {
			return o, fmt.Errorf("s3: prefix: %w", err)
		}
		o.Prefix += "/"
	}
	setDefault(&o.PartSize, 16<<20)
	setDefault(&o.Parts, 4)
	setDefault(&o.Requests, 128)
	setDefault(&o.Tries, 8)
	setDefault(&o.Pause, 50*time.Millisecond)
	setDefault(&o.Timeout, 15*time.Second)
	if o.PartSize < minPartSize {
		return o, fmt.Errorf("s3: parts of %d bytes; S3 takes none of less than %d", o.PartSize, minPartSize)
	}
	if min(o.Parts, o.Requests, o.Tries) < 0 || min(o.Pause, o.Timeout, o.HedgeAfter) < 0 {
		return o, errors.New("s3: a negative option")
	}
	return o, nil
}

func setDefault[T comparable](field *T, value T) {
	var zero T
	if *field == zero {
		*field = value
	}
}
