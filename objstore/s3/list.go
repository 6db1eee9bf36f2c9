package s3

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"net/url"
	"strings"
	"unicode/utf8"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"

	"github.com/siftkv/siftkv/objstore"
)

func (s *store) List(ctx context.Context, prefix, after string) iter.Seq2[objstore.Object, error] {
	return func(yield func(objstore.Object, error) bool) {
		c, err := s.begin(ctx, objstore.List, prefix)
		if err != nil {
			yield(objstore.Object{}, err)
			return
		}
		if len(s.Prefix)+len(prefix) > objstore.MaxKey {
			return // no key is so long
		}
		last := after
		for page, f := range c.pages(ctx, prefix, after) {
			for _, entry := range page.Contents {
				var o objstore.Object
				if o, f = s.object(entry, page.EncodingType); f == nil {
					if o.Key <= after || !strings.HasPrefix(o.Key, prefix) || objstore.CheckKey(o.Key) != nil {
						continue
					}
					f = s.mayFollow(ctx, last, o.Key)
				}
				if f != nil {
					break
				}
				if last = o.Key; !yield(o, nil) {
					return
				}
			}
			if f != nil {
				yield(objstore.Object{}, c.result(f))
				return
			}
		}
	}
}

// mayFollow returns why a key is not listed after another.
func (s *store) mayFollow(ctx context.Context, last, key string) *failure {
	if err := s.check(ctx); err != nil {
		return broken(err)
	}
	if key <= last {
		return broken(fmt.Errorf("the listing has %q after %q: the server does not sort by bytes", key, last))
	}
	return nil
}

// pages fetches page after page. A page with a failure is empty, and the last one.
func (c *call) pages(ctx context.Context, prefix, after string) iter.Seq2[*s3.ListObjectsV2Output, *failure] {
	return func(yield func(*s3.ListObjectsV2Output, *failure) bool) {
		input := &s3.ListObjectsV2Input{
			Bucket: &c.s.Bucket, Prefix: aws.String(sendable(c.s.Prefix + prefix)),
			EncodingType: types.EncodingTypeUrl, // others' keys may have characters that XML cannot carry
		}
		if after != "" {
			input.StartAfter = aws.String(sendable(c.s.Prefix + after))
		}
		for {
			page, f := c.page(ctx, input)
			if f != nil {
				yield(&s3.ListObjectsV2Output{}, f)
				return
			}
			if !yield(page, nil) || !aws.ToBool(page.IsTruncated) {
				return
			}
			if err := c.s.check(ctx); err != nil {
				yield(&s3.ListObjectsV2Output{}, broken(err))
				return
			}
			input.ContinuationToken = page.NextContinuationToken
		}
	}
}

// sendable returns the longest part of s, from its beginning, that can be the beginning of a key. A listing that
// begins after it, or with it, has all that one of s has.
func sendable(s string) string {
	for i, r := range s {
		_, size := utf8.DecodeRuneInString(s[i:])
		if r == utf8.RuneError && size == 1 || r < ' ' || i+size > objstore.MaxKey {
			return s[:i]
		}
	}
	return s
}

func (c *call) page(ctx context.Context, input *s3.ListObjectsV2Input) (page *s3.ListObjectsV2Output, f *failure) {
	f = c.repeat(ctx, request{kind: objstore.List, send: func(ctx context.Context, _ *attempt) (err error) {
		page, err = c.s.client.ListObjectsV2(ctx, input)
		if err == nil && aws.ToBool(page.IsTruncated) && aws.ToString(page.NextContinuationToken) == "" {
			return broken(errors.New("a page that is not the last one does not say where the next begins"))
		}
		return err
	}})
	return page, f
}

func (s *store) object(entry types.Object, encoding types.EncodingType) (objstore.Object, *failure) {
	key := aws.ToString(entry.Key)
	if encoding == types.EncodingTypeUrl {
		decoded, err := url.QueryUnescape(key)
		if err != nil {
			return objstore.Object{}, broken(fmt.Errorf("the listing has the key %q, which is not URL-encoded", key))
		}
		key = decoded
	}
	key, found := strings.CutPrefix(key, s.Prefix)
	if !found {
		return objstore.Object{}, broken(fmt.Errorf("the listing has the key %q, without the prefix", key))
	}
	return objstore.Object{Key: key, Size: aws.ToInt64(entry.Size), ModTime: aws.ToTime(entry.LastModified)}, nil
}
