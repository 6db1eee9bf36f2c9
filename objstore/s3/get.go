package s3

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"

	"github.com/siftkv/siftkv/objstore"
)

func (s *store) GetRange(ctx context.Context, key string, off int64, p []byte) (int, error) {
	c, err := s.begin(ctx, objstore.Get, key)
	if err != nil || len(p) == 0 {
		return 0, err
	}
	if off < 0 && (off == math.MinInt64 || -off > int64(len(p))) {
		return 0, c.result(broken(io.ErrShortBuffer))
	}
	n := 0
	f := c.repeatWith(ctx, request{}, func(retries int64) (f *failure) {
		n, f = c.getHedged(ctx, off, p, retries)
		return f
	})
	switch {
	case f != nil && f.is(io.EOF):
		return 0, io.EOF
	case f != nil:
		return 0, c.result(f)
	case n < len(p):
		return n, io.EOF
	}
	return n, nil
}

// get is one try of GetRange.
func (c *call) get(ctx context.Context, off int64, p []byte, note objstore.Count) (n int, f *failure) {
	input := &s3.GetObjectInput{Bucket: &c.s.Bucket, Key: c.s.full(c.key), Range: aws.String(rangeOf(off, len(p)))}
	r := request{kind: objstore.Get}
	r.send = func(ctx context.Context, a *attempt) error {
		reply, err := c.s.client.GetObject(ctx, input)
		if err != nil {
			return err
		}
		defer reply.Body.Close()
		expected, err := expect(off, len(p), aws.ToString(reply.ContentRange), aws.ToInt64(reply.ContentLength))
		if err != nil {
			return err
		}
		n, err = io.ReadFull(&countedBody{reply.Body, &a.progress}, p[:expected])
		if errors.Is(err, io.EOF) { // none of them came
			err = io.ErrUnexpectedEOF
		}
		return err
	}
	f = c.try(ctx, r, note)
	return n, f
}

func rangeOf(off int64, n int) string {
	if off < 0 {
		return "bytes=" + strconv.FormatInt(off, 10)
	}
	last := int64(math.MaxInt64)
	if off <= last-int64(n) {
		last = off + int64(n) - 1
	}
	return fmt.Sprintf("bytes=%d-%d", off, last)
}

// expect returns how many bytes of a reply are those asked for: want at off, or fewer at the object's end. A reply
// without a range is the whole object, of length bytes.
func expect(off int64, want int, contentRange string, length int64) (int, error) {
	if off < 0 {
		want = int(-off)
	}
	if contentRange == "" {
		if off > 0 || off < 0 && length > -off {
			return 0, broken(errors.New("the server does not honour ranges"))
		}
		return int(min(length, int64(want))), nil
	}
	first, last, size, err := parseRange(contentRange)
	from := off
	if off < 0 {
		from = max(size+off, 0)
	}
	if err != nil || first != from || last != min(from+int64(want), size)-1 {
		// Not the end of the object, and not for ever: a retry may get all.
		return 0, &failure{text: fmt.Sprintf("a reply of the range %.100q", contentRange), again: true}
	}
	return int(last - first + 1), nil
}

var errRange = errors.New("not a range")

// parseRange parses a Content-Range such as "bytes 0-9/100".
func parseRange(s string) (first, last, size int64, err error) {
	span, total, found := strings.Cut(strings.TrimPrefix(s, "bytes "), "/")
	begin, end, dash := strings.Cut(span, "-")
	if !found || !dash {
		return 0, 0, 0, errRange
	}
	for _, number := range []struct {
		to   *int64
		text string
	}{{&first, begin}, {&last, end}, {&size, total}} {
		if *number.to, err = strconv.ParseInt(number.text, 10, 64); err != nil || *number.to < 0 {
			return 0, 0, 0, errRange
		}
	}
	return first, last, size, nil
}
