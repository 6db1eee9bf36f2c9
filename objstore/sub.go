package objstore

import (
	"context"
	"io"
	"iter"
	"strings"
)

type sub struct {
	gate
	s      Store
	prefix string // empty, or ends with a slash
}

// Sub returns the part of s with keys that begin with prefix and a slash, as a store of its own; its keys are without
// them. An empty prefix means all of s. A slash at the end of prefix may be left out. With a prefix that makes keys
// invalid, all calls fail, and listings are empty.
//
// Closing the part makes its later calls fail, and leaves s open: parts share it, and the opener of s closes it. Errors
// name the keys of s.
func Sub(s Store, prefix string) Store {
	if prefix != "" && !strings.HasSuffix(prefix, "/") {
		prefix += "/"
	}
	return &sub{s: s, prefix: prefix}
}

func (s *sub) GetRange(ctx context.Context, key string, off int64, p []byte) (int, error) {
	if err := s.admit(ctx, Get, key); err != nil {
		return 0, err
	}
	return s.s.GetRange(ctx, s.prefix+key, off, p)
}

func (s *sub) Put(ctx context.Context, key string, r io.ReaderAt, size int64) error {
	if err := s.admit(ctx, Put, key); err != nil {
		return err
	}
	return s.s.Put(ctx, s.prefix+key, r, size)
}

func (s *sub) PutIfAbsent(ctx context.Context, key string, body []byte) error {
	if err := s.admit(ctx, PutIfAbsent, key); err != nil {
		return err
	}
	return s.s.PutIfAbsent(ctx, s.prefix+key, body)
}

func (s *sub) List(ctx context.Context, prefix, after string) iter.Seq2[Object, error] {
	return func(yield func(Object, error) bool) {
		if err := s.admit(ctx, List, prefix); err != nil {
			yield(Object{}, err)
			return
		}
		if after != "" {
			after = s.prefix + after
		}
		for o, err := range s.s.List(ctx, s.prefix+prefix, after) {
			o.Key = strings.TrimPrefix(o.Key, s.prefix)
			if !yield(o, err) {
				return
			}
		}
	}
}

func (s *sub) Delete(ctx context.Context, key string) error {
	if err := s.admit(ctx, Delete, key); err != nil {
		return err
	}
	return s.s.Delete(ctx, s.prefix+key)
}
