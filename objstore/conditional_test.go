package objstore_test

import (
	"context"
	"errors"
	"io"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/objstore"
	"github.com/siftkv/siftkv/objstore/objstoretest"
)

func readerOf(s string) io.ReaderAt { return strings.NewReader(s) }

// A careless store ignores the condition.
type careless struct{ objstore.Store }

func (s careless) PutIfAbsent(ctx context.Context, key string, body []byte) error {
	return s.Put(ctx, key, readerOf(string(body)), int64(len(body)))
}

// A racy store looks first and writes then. All racers look before the first of them writes.
type racy struct {
	objstore.Store
	looked *sync.WaitGroup
}

func (s racy) PutIfAbsent(ctx context.Context, key string, body []byte) error {
	_, err := s.GetRange(ctx, key, 0, make([]byte, 1))
	if err == nil || errors.Is(err, io.EOF) {
		return &objstore.Error{Op: objstore.PutIfAbsent, Key: key, Err: objstore.ErrExists}
	}
	s.looked.Done()
	s.looked.Wait()
	return careless{s.Store}.PutIfAbsent(ctx, key, body)
}

// A mendacious store says that it kept the first object, and keeps the last.
type mendacious struct{ objstore.Store }

func (s mendacious) PutIfAbsent(ctx context.Context, key string, body []byte) error {
	err := s.Store.PutIfAbsent(ctx, key, body)
	if errors.Is(err, objstore.ErrExists) {
		_ = careless(s).PutIfAbsent(ctx, key, body)
	}
	return err
}

// A refusing store says of all objects that they exist.
type refusing struct{ objstore.Store }

func (refusing) PutIfAbsent(context.Context, string, []byte) error { return objstore.ErrExists }

func TestCheckConditionalRefusesBrokenStores(t *testing.T) {
	looked := new(sync.WaitGroup)
	looked.Add(8) // as many as race
	for name, broken := range map[string]func(objstore.Store) objstore.Store{
		"careless":   func(s objstore.Store) objstore.Store { return careless{s} },
		"racy":       func(s objstore.Store) objstore.Store { return racy{s, looked} },
		"mendacious": func(s objstore.Store) objstore.Store { return mendacious{s} },
		"refusing":   func(s objstore.Store) objstore.Store { return refusing{s} },
	} {
		t.Run(name, func(t *testing.T) {
			base := objstore.NewMem()
			err := objstore.CheckConditional(t.Context(), broken(base), "db/")
			require.ErrorIs(t, err, objstore.ErrUnconditional)
			require.ErrorContains(t, err, "use a server")
			require.ErrorContains(t, err, "db/conditional-check-")
			for o := range base.List(t.Context(), "", "") {
				require.Fail(t, "it leaves an object", o.Key)
			}
		})
	}
}

func TestCheckConditionalBearsTroubles(t *testing.T) {
	s := objstoretest.NewFaults(objstore.NewMem(), 1)
	s.Inject(func(c objstoretest.Call) objstoretest.Fault {
		if c.Kind == objstore.PutIfAbsent && c.Nth%2 == 1 {
			return lost
		}
		return none
	})
	require.NoError(t, objstore.CheckConditional(t.Context(), s, ""))

	denied := errors.New("access denied")
	s.Inject(func(objstoretest.Call) objstoretest.Fault { return fails(denied) })
	err := objstore.CheckConditional(t.Context(), s, "")
	require.ErrorIs(t, err, denied)
	require.NotErrorIs(t, err, objstore.ErrUnconditional)
	require.ErrorIs(t, objstore.CheckConditional(t.Context(), objstore.NewMem(), "../"), objstore.ErrInvalidKey)
}

func TestSubOfABadPrefix(t *testing.T) {
	base, ctx := objstore.NewMem(), t.Context()
	for _, prefix := range []string{"..", "/", "a//b", "a/../b"} {
		s := objstore.Sub(base, prefix)
		require.ErrorIs(t, s.PutIfAbsent(ctx, "key", nil), objstore.ErrInvalidKey, "prefix %q", prefix)
		for o, err := range s.List(ctx, "", "") {
			require.Fail(t, "it lists", "%v, %v", o, err)
		}
	}
	s := objstore.Sub(base, "a")
	require.NoError(t, s.Close())
	require.NoError(t, base.PutIfAbsent(ctx, "a/key", nil), "a part that is closed leaves the store open")
}
