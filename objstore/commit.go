package objstore

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"time"
)

// The pauses between the tries of Commit double from the first to the last.
const (
	firstPause = 10 * time.Millisecond
	lastPause  = time.Second
)

// Commit is PutIfAbsent of a unique body, for instance with a random nonce. While the outcome is unknown it tries
// again, and compares contents if it finds an object. It returns nil if the body is there, an error that matches
// [ErrExists] if another is, one that matches [ErrUnknown] if ctx ends first, or the store fails in another way after
// an unknown outcome. Without a deadline it waits for a store that cannot be reached.
//
// A name must not become free again while a client may still commit to it: before you delete the object, make sure that
// commits of stalled clients fail.
func Commit(ctx context.Context, s Store, key string, body []byte) error {
	var unknown error
	for pause := firstPause; ; pause = min(2*pause, lastPause) {
		err := s.PutIfAbsent(ctx, key, body)
		switch {
		case err == nil:
			return nil
		case errors.Is(err, ErrUnknown):
			unknown = err
		case unknown == nil:
			return err
		case errors.Is(err, ErrExists):
			own, failed := holds(ctx, s, key, body)
			if own {
				return nil
			}
			if failed == nil {
				return err
			}
			unknown = fmt.Errorf("%w: %w", ErrUnknown, failed)
			if errors.Is(failed, ErrNotExist) {
				return unknown // it was deleted meanwhile: a name must not be used again
			}
		case !errors.Is(err, ErrThrottled):
			return fmt.Errorf("%w: %w", ErrUnknown, err)
		}
		if !sleep(ctx, pause) {
			return fmt.Errorf("%w: %w", unknown, ctx.Err())
		}
	}
}

var errDiffers = errors.New("two reads of it differ")

// holds reports whether an object's content is body. Before it says no, it reads once more: what was damaged on its way
// is no other content.
func holds(ctx context.Context, s Store, key string, body []byte) (bool, error) {
	p := make([]byte, len(body)+1)
	var before []byte
	for try := range 2 {
		n, err := s.GetRange(ctx, key, 0, p)
		if err != nil && !errors.Is(err, io.EOF) {
			return false, err
		}
		switch {
		case bytes.Equal(p[:n], body):
			return true, nil
		case try == 0:
			before = bytes.Clone(p[:n])
		case !bytes.Equal(p[:n], before):
			return false, &Error{Op: Get, Key: key, Err: errDiffers}
		}
	}
	return false, nil
}

func sleep(ctx context.Context, d time.Duration) bool {
	select {
	case <-time.After(d):
		return true
	case <-ctx.Done():
		return false
	}
}
