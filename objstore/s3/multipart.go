package s3

import (
	"context"
	"io"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"

	"github.com/siftkv/siftkv/objstore"
)

// An upload that failed is cleared away within abortTime. A part that the server was busy with may appear after the
// upload was aborted. So it is aborted again until there is none, at most abortRounds times.
const (
	abortTime   = 10 * time.Second
	abortRounds = 3
	abortPause  = 50 * time.Millisecond
)

// upload writes an object in parts. Until the last request, which puts them together, there is no object; if it
// is never sent, there never will be.
func (c *call) upload(ctx context.Context, r io.ReaderAt, size int64) *failure {
	id := ""
	create := func(ctx context.Context, _ *attempt) error {
		reply, err := c.s.client.CreateMultipartUpload(ctx, &s3.CreateMultipartUploadInput{
			Bucket: &c.s.Bucket, Key: c.s.full(c.key),
		})
		if err == nil {
			id = aws.ToString(reply.UploadId)
		}
		return err
	}
	if f := c.repeat(ctx, request{kind: objstore.Put, send: create}); f != nil {
		return f
	}
	parts, f := c.uploadParts(ctx, id, r, size)
	if f == nil {
		f = c.complete(ctx, id, parts, size)
	}
	if f != nil {
		c.abort(ctx, id)
	}
	return f
}

// uploadParts uploads several parts at once, until one fails. Others are not broken off then, but not repeated either:
// a server that is still busy with a part may keep it although the upload is aborted.
func (c *call) uploadParts(ctx context.Context, id string,
	r io.ReaderAt, size int64) ([]types.CompletedPart, *failure) {
	_, partSize := c.s.uplink.parts(c.s.Parts, c.s.PartSize)
	partSize = max(partSize, (size+maxParts-1)/maxParts)
	parts := make([]types.CompletedPart, (size+partSize-1)/partSize)
	quit := make(chan struct{})
	var (
		mu     sync.Mutex
		next   int
		failed *failure // the first one
		all    sync.WaitGroup
	)
	take := func(lane int) int {
		mu.Lock()
		defer mu.Unlock()
		if lanes, _ := c.s.uplink.parts(c.s.Parts, c.s.PartSize); failed != nil || next == len(parts) || lane >= lanes {
			return -1
		}
		next++
		return next - 1
	}
	for lane := range min(c.s.Parts, len(parts)) {
		all.Go(func() {
			for i := take(lane); i >= 0; i = take(lane) {
				off := int64(i) * partSize
				part, f := c.uploadPart(ctx, quit, id, i, r, off, min(partSize, size-off))
				mu.Lock()
				if parts[i] = part; f != nil && failed == nil {
					failed = f
					close(quit)
				}
				mu.Unlock()
			}
		})
	}
	all.Wait()
	return parts, failed
}

func (c *call) uploadPart(ctx context.Context, quit <-chan struct{}, id string, i int,
	r io.ReaderAt, off, size int64) (part types.CompletedPart, f *failure) {
	part.PartNumber = aws.Int32(int32(i + 1))
	send := func(ctx context.Context, body *source) error {
		reply, err := c.s.client.UploadPart(ctx, &s3.UploadPartInput{
			Bucket: &c.s.Bucket, Key: c.s.full(c.key), UploadId: &id, PartNumber: part.PartNumber,
			Body: body, ContentLength: &size,
		})
		if err == nil {
			part.ETag = reply.ETag
		}
		return err
	}
	c.s.uplink.begin()
	defer c.s.uplink.end()
	f = c.repeat(ctx, request{
		kind: objstore.Put, upload: true, quit: quit, send: sending(r, off, size, send),
	})
	return part, f
}

// complete makes an object of the parts. Once its reply is lost, another try cannot tell an upload that is complete
// from one that is not there.
func (c *call) complete(ctx context.Context, id string, parts []types.CompletedPart, size int64) *failure {
	send := func(ctx context.Context, _ *attempt) error {
		_, err := c.s.client.CompleteMultipartUpload(ctx, &s3.CompleteMultipartUploadInput{
			Bucket: &c.s.Bucket, Key: c.s.full(c.key), UploadId: &id,
			MultipartUpload: &types.CompletedMultipartUpload{Parts: parts},
		})
		return err
	}
	return c.repeat(ctx, request{kind: objstore.Put, commits: true, joins: size, send: send})
}

// abort frees the space of an upload's parts. The call does not wait for it, as its context may have ended; Close does,
// and after Close the call itself.
func (c *call) abort(ctx context.Context, id string) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), abortTime)
	cleanup := &call{s: c.s, kind: objstore.Delete, key: c.key, meter: c.meter, cleanup: true}
	remove := func(ctx context.Context, _ *attempt) error {
		_, err := c.s.client.AbortMultipartUpload(ctx, &s3.AbortMultipartUploadInput{
			Bucket: &c.s.Bucket, Key: c.s.full(c.key), UploadId: &id,
		})
		return err
	}
	c.s.inBackground(func() {
		defer cancel()
		for range abortRounds {
			f := cleanup.repeat(ctx, request{kind: objstore.Delete, send: remove})
			if f != nil || !sleep(ctx, abortPause) {
				return // there is none, mostly
			}
		}
	})
}
