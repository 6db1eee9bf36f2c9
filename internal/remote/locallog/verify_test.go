package locallog

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/internal/vfs"
)

// Every directory against every list of files.
func TestVerdictsOnADirectoryOfLogs(t *testing.T) {
	const id, store, epoch = 9, 7, 5
	ended := []EndedLog{{id + 3, epoch}, {id, epoch}}
	for _, c := range []struct {
		what string
		dir  identity // of the directory
		list Location
		want string // with logs in the directory
	}{
		{"as the list says", identity{id, store, epoch}, Location{ID: id, Epoch: epoch}, "here"},
		{"an opening that went no further", identity{id, store, epoch + 1}, Location{ID: id, Epoch: epoch}, "here"},
		{"an older copy", identity{id, store, epoch - 1}, Location{ID: id, Epoch: epoch}, "lost stale"},
		{"another directory", identity{id + 1, store, epoch}, Location{ID: id, Epoch: epoch}, "lost stale"},
		{"another directory of later", identity{id + 1, store, epoch + 1}, Location{ID: id, Epoch: epoch},
			"lost stale"},
		{"no identity file", identity{}, Location{ID: id, Epoch: epoch}, "lost stale"},
		{"released by the writer that had it", identity{id, store, epoch}, Location{Epoch: epoch}, ""},
		{"an opening that made it", identity{id, store, epoch + 1}, Location{Epoch: epoch}, ""},
		{"taken over, and released", identity{id, store, epoch - 1}, Location{Epoch: epoch}, "stale"},
		{"released, and taken over", identity{id, store, epoch}, Location{Epoch: epoch + 2, Ended: ended}, ""},
		{"released, and another has a log", identity{id, store, epoch}, Location{id + 1, epoch + 2, "", nil, ended},
			"lost"},
		{"a copy, released where it was", identity{id, store, epoch - 1}, Location{Epoch: epoch, Ended: ended},
			"stale"},
		{"released in another store", identity{id, store + 1, epoch}, Location{Epoch: epoch + 2, Ended: ended},
			"stale"},
		{"nobody's, and none needed", identity{}, Location{Epoch: epoch}, "stale"},
		{"nobody's, and no list", identity{}, Location{}, "stale"},
	} {
		d := &Dir{fs: vfs.NewMem(), dir: "log", identity: c.dir, logs: map[uint64]struct{}{}}
		require.NoError(t, d.fs.MkdirAll(d.dir))
		verdict := func() string {
			var parts []string
			v, err := d.Verify(c.list, store, true)
			require.NoError(t, err)
			for _, part := range []struct {
				name string
				is   bool
			}{{"here", v.Here}, {"lost", v.Lost}, {"stale", len(v.stale) > 0}} {
				if part.is {
					parts = append(parts, part.name)
				}
			}
			_, err = d.Verify(c.list, store, false)
			require.Equal(t, v.Lost || len(v.stale) > 0, err != nil, c.what)
			if v.Lost {
				require.ErrorIs(t, err, ErrElsewhere)
			}
			if len(v.stale) > 0 {
				require.ErrorIs(t, err, ErrAbandoned)
				require.Equal(t, []uint64{4}, v.stale)
			}
			return strings.Join(parts, " ")
		}
		none := map[bool]string{true: "lost"}[c.list.ID != 0 && c.want != "here"]
		if c.want == "here" {
			none = "here"
		}
		require.Equal(t, none, verdict(), "%s, without logs", c.what)
		for num, text := range map[uint64]string{4: strings.Repeat("a record", 9), 6: ""} {
			w, err := d.fs.Create(d.LogPath(num))
			require.NoError(t, err)
			_, err = fmt.Fprint(w, text)
			require.NoError(t, err)
			require.NoError(t, w.Close())
			d.logs[num] = struct{}{}
		}
		require.Equal(t, c.want, verdict(), c.what)
	}
}
