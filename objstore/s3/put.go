package s3

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"

	"github.com/siftkv/siftkv/objstore"
)

func (s *store) Put(ctx context.Context, key string, r io.ReaderAt, size int64) error {
	c, err := s.begin(ctx, objstore.Put, key)
	if err != nil {
		return err
	}
	switch {
	case size < 0:
		return c.result(broken(fmt.Errorf("an object of %d bytes", size)))
	case size > s.PartSize:
		return c.result(c.upload(ctx, r, size))
	}
	return c.result(c.put(ctx, r, size, nil))
}

// put writes an object with one request, if a condition holds.
func (c *call) put(ctx context.Context, r io.ReaderAt, size int64, ifNoneMatch *string) *failure {
	send := func(ctx context.Context, body *source) error {
		_, err := c.s.client.PutObject(ctx, &s3.PutObjectInput{
			Bucket: &c.s.Bucket, Key: c.s.full(c.key), Body: body, ContentLength: &size, IfNoneMatch: ifNoneMatch,
		})
		return err
	}
	return c.repeat(ctx, request{
		kind: c.kind, upload: true, commits: true, once: ifNoneMatch != nil,
		send: sending(r, 0, size, send),
	})
}

// sending returns the try of a request with size bytes of r at off as its body.
func sending(r io.ReaderAt, off, size int64,
	send func(context.Context, *source) error) func(context.Context, *attempt) error {
	return func(ctx context.Context, _ *attempt) error {
		body := &source{r: r, off: off, size: size}
		err := send(ctx, body)
		if failed := body.stop(); failed != nil && err != nil {
			return broken(fmt.Errorf("reading what will be written: %w", failed))
		}
		return err
	}
}

func (s *store) PutIfAbsent(ctx context.Context, key string, body []byte) error {
	c, err := s.begin(ctx, objstore.PutIfAbsent, key)
	if err != nil {
		return err
	}
	f := c.put(ctx, bytes.NewReader(body), int64(len(body)), aws.String("*"))
	if f != nil && f.is(objstore.ErrExists) && c.sent.Load() > 1 {
		// The tries before were refused, if the replies of the server and its proxies were true. The object's content
		// is better evidence.
		c.lost = !s.differs(ctx, key, body)
	}
	return c.result(f)
}

// differs reports whether there is an object with another content than body.
func (s *store) differs(ctx context.Context, key string, body []byte) bool {
	p := make([]byte, len(body)+1)
	n, err := s.GetRange(ctx, key, 0, p)
	return (err == nil || errors.Is(err, io.EOF)) && !bytes.Equal(p[:n], body)
}
