package objstoretest

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/siftkv/siftkv/objstore"
)

var listChecks = []check{
	{"ListOrder", listOrder},
	{"ListPages", listPages},
	{"ListSaysWhatIsThere", listSays},
	{"ListBesideWrites", listBesideWrites},
	{"ListEnds", listEnds},
}

// trickyKeys are in no order. Slashes sort between other signs; file systems fold case, take some names for devices,
// compose accents; none of that must show.
var trickyKeys = []string{
	"a/x", "a-b/x", "a.b/x", "a0/x", "a!/x", "a/y/z", "a/y-z", "a-", "a1", "aa", "ab/c", "A/x", "B", "b",
	"con", "CON", "nul.txt", "lpt1/x", "com1.sst", ".hidden", ".tmp/x", "..x", "...x/y", "%41", "%", "%2f", "100%",
	"a b", " ", "+", "q?x=1&y=2", "#", "*", "~", "x:y", "'\"", "<>|", "é", "e\u0301", "日本/語", "\U0001F600", "\ufffd",
	"manifest/00000000000000000009", "manifest/00000000000000000010", strings.Repeat("Z", objstore.MaxSegment),
	strings.Repeat(strings.Repeat("é", 20)+"/", 24) + "end",
}

func listOrder(t *testing.T, s objstore.Store) {
	for _, key := range trickyKeys {
		wantErr(t, objstore.CheckKey(key), nil)
		put(t, s, key, []byte(key))
	}
	sorted := slices.Sorted(slices.Values(trickyKeys))
	wantKeys(t, s, "", "", sorted)
	for _, key := range trickyKeys {
		wantBody(t, s, key, []byte(key))
		wantErr(t, s.PutIfAbsent(t.Context(), key, nil), objstore.ErrExists)
	}
	prefixes := []string{"", "a", "a/", "a/y", "a/y/", "a-", "manifest/", "m", "nothing", "A", "é", "日本/", "z", "/",
		sorted[3], sorted[len(sorted)/2]}
	afters := []string{"", "a", "a/", "a/x", "a/x0", "a/y/", "a-b", "manifest/00000000000000000009", "~", "日", "zz",
		"\x01"}
	for _, prefix := range prefixes {
		for _, after := range afters {
			var want []string
			for _, key := range sorted {
				if strings.HasPrefix(key, prefix) && key > after {
					want = append(want, key)
				}
			}
			wantKeys(t, s, prefix, after, want)
		}
	}
	for i, key := range sorted {
		wantKeys(t, s, "", key, slices.Clip(sorted[i+1:]))
	}
}

func listPages(t *testing.T, s objstore.Store) {
	const objects, writers = 1003, 8
	want := make([]string, objects)
	for i := range want {
		want[i] = fmt.Sprintf("sst/%06d", i)
	}
	var all sync.WaitGroup
	for w := range writers {
		all.Go(func() {
			for i := w; i < objects; i += writers {
				if err := s.PutIfAbsent(t.Context(), want[i], nil); err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	put(t, s, "a", nil)
	put(t, s, "z", nil)
	wantKeys(t, s, "sst/", "", want)
	wantKeys(t, s, "s", want[0], want[1:])
	wantKeys(t, s, "", want[objects-2], []string{want[objects-1], "z"})
}

func listSays(t *testing.T, s objstore.Store) {
	put(t, s, "dir/object", make([]byte, 12345))
	for o, err := range s.List(t.Context(), "", "") {
		if err != nil {
			t.Fatal(err)
		}
		if o.Key != "dir/object" || o.Size != 12345 || time.Since(o.ModTime).Abs() > 24*time.Hour {
			t.Errorf("listed as %+v", o)
		}
	}
}

func listBesideWrites(t *testing.T, s objstore.Store) {
	var want, seen []string
	for i := range 20 {
		want = append(want, fmt.Sprintf("k%02d/x", i))
		put(t, s, want[i], nil)
	}
	for o, err := range s.List(t.Context(), "", "") {
		if err != nil {
			t.Fatal(err)
		}
		if strings.HasSuffix(o.Key, "/x") {
			seen = append(seen, o.Key)
		}
		wantErr(t, s.Delete(t.Context(), o.Key), nil)
		put(t, s, "a"+o.Key, nil)
	}
	if !slices.Equal(seen, want) {
		t.Errorf("a list whose loop deletes what it sees has seen %q", seen)
	}
	for i := range want {
		want[i] = "a" + want[i]
	}
	wantKeys(t, s, "", "", want)
}

func listEnds(t *testing.T, s objstore.Store) {
	for i := range 10 {
		put(t, s, fmt.Sprintf("k%d", i), nil)
	}
	seen := 0
	for _, err := range s.List(t.Context(), "", "") {
		wantErr(t, err, nil)
		if seen++; seen == 3 {
			break
		}
	}
	if seen != 3 {
		t.Errorf("a loop that breaks off has seen %d objects", seen)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var failures []error
	for o, err := range s.List(ctx, "", "") {
		if cancel(); err == nil {
			seen++
			continue
		}
		if failures = append(failures, err); o != (objstore.Object{}) {
			t.Errorf("with the error comes %+v", o)
		}
	}
	if len(failures) != 1 || seen != 4 {
		t.Fatalf("a list whose context ended has yielded %d objects and %v", seen-3, failures)
	}
	wantErr(t, failures[0], context.Canceled)
}
