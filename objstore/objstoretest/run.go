package objstoretest

import (
	"bytes"
	"context"
	"errors"
	"io"
	"slices"
	"testing"

	"github.com/siftkv/siftkv/objstore"
)

// A check is a part of the contract.
type check struct {
	name string
	hold func(t *testing.T, s objstore.Store)
}

// Run holds stores to the contract of [objstore.Store]. Each part of it has a test of its own, for which open returns
// an empty store; a part of a store will do ([objstore.Sub] with a random prefix). open closes it by t.Cleanup if
// that is needed; it may be closed by then. About 4000 requests are sent, and some 50 MiB.
func Run(t *testing.T, open func(t *testing.T) objstore.Store) {
	for _, c := range slices.Concat(readChecks, writeChecks, listChecks, callChecks) {
		t.Run(c.name, func(t *testing.T) { c.hold(t, open(t)) })
	}
}

// RunClients holds two clients of one store to the contract, which open returns: two processes, machines or gateways.
// The store is empty at first.
func RunClients(t *testing.T, open func(t *testing.T) (a, b objstore.Store)) {
	t.Run("WritesAreSeenByOthers", func(t *testing.T) {
		a, b := open(t)
		put(t, a, "dir/put", []byte("1"))
		wantBody(t, b, "dir/put", []byte("1"))
		wantErr(t, b.PutIfAbsent(t.Context(), "dir/put", []byte("2")), objstore.ErrExists)
		wantErr(t, b.PutIfAbsent(t.Context(), "dir/created", []byte("3")), nil)
		wantErr(t, a.PutIfAbsent(t.Context(), "dir/created", []byte("4")), objstore.ErrExists)
		wantBody(t, a, "dir/created", []byte("3"))
		wantKeys(t, a, "", "", []string{"dir/created", "dir/put"})
		wantErr(t, b.Delete(t.Context(), "dir/put"), nil)
		wantAbsent(t, a, "dir/put")
		wantKeys(t, a, "", "", []string{"dir/created"})
	})
	t.Run("OneOfRacingCreatesWins", func(t *testing.T) {
		a, b := open(t)
		raceCreates(t, a, b)
	})
	t.Run("ClosingOneLeavesTheOther", func(t *testing.T) {
		a, b := open(t)
		put(t, a, "key", []byte("1"))
		wantErr(t, a.Close(), nil)
		wantBody(t, b, "key", []byte("1"))
		put(t, b, "other", []byte("2"))
	})
}

func wantErr(t *testing.T, err, want error) {
	t.Helper()
	if !errors.Is(err, want) {
		t.Fatalf("the error is %v, want %v", err, want)
	}
}

func put(t *testing.T, s objstore.Store, key string, body []byte) {
	t.Helper()
	if err := s.Put(t.Context(), key, bytes.NewReader(body), int64(len(body))); err != nil {
		t.Fatal(err)
	}
}

func wantBody(t *testing.T, s objstore.Store, key string, want []byte) {
	t.Helper()
	got, err := objstore.ReadAll(t.Context(), s, key, len(want))
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Fatalf("%q has %d bytes %.20q..., want %d bytes %.20q...", key, len(got), got, len(want), want)
	}
}

func wantAbsent(t *testing.T, s objstore.Store, key string) {
	t.Helper()
	n, err := s.GetRange(t.Context(), key, 0, make([]byte, 1))
	if n != 0 || !errors.Is(err, objstore.ErrNotExist) || errors.Is(err, io.EOF) {
		t.Fatalf("GetRange of %q returns %d, %v; want ErrNotExist", key, n, err)
	}
}

func listKeys(ctx context.Context, s objstore.Store, prefix, after string) (keys []string, err error) {
	for o, err := range s.List(ctx, prefix, after) {
		if err != nil {
			return keys, err
		}
		keys = append(keys, o.Key)
	}
	return keys, nil
}

func wantKeys(t *testing.T, s objstore.Store, prefix, after string, want []string) {
	t.Helper()
	got, err := listKeys(t.Context(), s, prefix, after)
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(got, want) {
		t.Fatalf("the list of prefix %q after %q is\n%q, want\n%q", prefix, after, got, want)
	}
}
