package objstoretest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/siftkv/siftkv/objstore"
)

var callChecks = []check{
	{"InvalidKeys", invalidKeys},
	{"EndedContexts", endedContexts},
	{"ErrorsNameTheCall", errorsName},
	{"Close", closes},
}

// calls are all methods with a key; the key of the last is a prefix.
func calls(ctx context.Context, s objstore.Store, key string) map[objstore.Kind]error {
	_, get := s.GetRange(ctx, key, 0, make([]byte, 1))
	_, list := listKeys(ctx, s, key, "")
	return map[objstore.Kind]error{
		objstore.Get:         get,
		objstore.Put:         s.Put(ctx, key, bytes.NewReader([]byte("x")), 1),
		objstore.PutIfAbsent: s.PutIfAbsent(ctx, key, []byte("x")),
		objstore.Delete:      s.Delete(ctx, key),
		objstore.List:        list,
	}
}

var badKeys = []string{
	"", "/", "/a", "a/", "a//b", ".", "..", "../a", "a/..", "a/../b", "a/./b", "a.", "a./b", "...", "a\x00b", "a\nb",
	"\x7f", "\u0085", "a\\b", "\xff", "a\xc3", "\ufffe", "\U0001fffe", strings.Repeat("a", objstore.MaxSegment+1),
	strings.Repeat("abcdefg/", 128) + "a", "b/" + strings.Repeat("é", objstore.MaxSegment/2+1),
}

func invalidKeys(t *testing.T, s objstore.Store) {
	for _, key := range badKeys {
		for kind, err := range calls(t.Context(), s, key) {
			if kind == objstore.List {
				wantErr(t, err, nil)
			} else if !errors.Is(err, objstore.ErrInvalidKey) || errors.Is(err, objstore.ErrUnknown) {
				t.Errorf("%v of key %q: %v, want ErrInvalidKey", kind, key, err)
			}
		}
	}
	wantKeys(t, s, "", "", nil)
}

func endedContexts(t *testing.T, s objstore.Store) {
	put(t, s, "there", []byte("there"))
	canceled, cancel := context.WithCancel(t.Context())
	cancel()
	late, cancel := context.WithDeadline(t.Context(), time.Now().Add(-time.Hour))
	defer cancel()
	for _, ctx := range []context.Context{canceled, late} {
		for _, key := range []string{"there", "absent"} {
			for kind, err := range calls(ctx, s, key) {
				if !errors.Is(err, ctx.Err()) || errors.Is(err, objstore.ErrUnknown) {
					t.Errorf("%v whose context had ended: %v, want %v alone", kind, err, ctx.Err())
				}
			}
		}
	}
	wantBody(t, s, "there", []byte("there"))
	wantAbsent(t, s, "absent")
}

func errorsName(t *testing.T, s objstore.Store) {
	put(t, s, "some/object", nil)
	_, get := s.GetRange(t.Context(), "some/absent", 0, make([]byte, 1))
	for _, c := range []struct {
		kind objstore.Kind
		key  string
		err  error
	}{
		{objstore.Get, "some/absent", get},
		{objstore.PutIfAbsent, "some/object", s.PutIfAbsent(t.Context(), "some/object", nil)},
		{objstore.Put, "some//object", s.Put(t.Context(), "some//object", bytes.NewReader(nil), 0)},
		{objstore.Delete, "some//object", s.Delete(t.Context(), "some//object")},
	} {
		var failure *objstore.Error
		if !errors.As(c.err, &failure) || failure.Op != c.kind || !strings.HasSuffix(failure.Key, c.key) {
			t.Errorf("the error %v is not an objstore.Error of %v %q", c.err, c.kind, c.key)
		} else if text := c.err.Error(); !strings.Contains(text, c.kind.String()) || !strings.Contains(text, c.key) {
			t.Errorf("the error %q does not name %v and %q", text, c.kind, c.key)
		}
	}
}

func closes(t *testing.T, s objstore.Store) {
	put(t, s, "object", []byte("x"))
	for i := range 2 {
		if err := s.Close(); err != nil {
			t.Fatal(fmt.Sprint("close ", i, ": ", err))
		}
	}
	for kind, err := range calls(t.Context(), s, "object") {
		if !errors.Is(err, objstore.ErrClosed) || errors.Is(err, objstore.ErrUnknown) {
			t.Errorf("%v of a closed store: %v, want ErrClosed", kind, err)
		}
	}
}
