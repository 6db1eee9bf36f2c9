package remote

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/internal/base"
	"github.com/siftkv/siftkv/internal/golden"
	"github.com/siftkv/siftkv/internal/hostile"
	"github.com/siftkv/siftkv/internal/manifest"
	"github.com/siftkv/siftkv/internal/vfs"
)

var sampleHome = homeFile{id: 1<<63 + 5, store: 7, epoch: 12}

func TestGoldenHomeFilesAreDecodedAsEncoded(t *testing.T) {
	h, err := decodeHome(sampleHome.encode())
	require.NoError(t, err)
	require.Equal(t, sampleHome, h)
	golden.File(t, filepath.Join("testdata", "home.golden"), string(sampleHome.encode()))
}

// homeBound is what decoding may allocate: copies of the text.
var homeBound = hostile.Bound{PerByte: 40, Fixed: 4 << 10}

func TestHostileHomeFiles(t *testing.T) {
	for mutant := range hostile.Mutants(sampleHome.encode(), 2000) {
		homeBound.Require(t, len(mutant), func() {
			if h, err := decodeHome(mutant); err == nil {
				require.Equal(t, string(mutant), string(h.encode()))
			}
		})
	}
	for _, h := range []homeFile{{}, {id: 1}, {store: 1}} {
		_, err := decodeHome(h.encode())
		require.ErrorIs(t, err, errHome)
	}
	_, err := decodeHome(base.SealLine("siftkv-log format=2 and more"))
	require.ErrorIs(t, err, manifest.ErrNewerFormat)
}

func FuzzHomeFile(f *testing.F) {
	f.Add(sampleHome.encode())
	f.Fuzz(func(t *testing.T, b []byte) {
		if h, err := decodeHome(b); err == nil {
			require.Equal(t, string(b), string(h.encode()))
		}
	})
}

// Every directory against every list of files.
func TestVerdictsOnADirectoryOfLogs(t *testing.T) {
	const id, store, epoch = 9, 7, 5
	ended := []endedLog{{id + 3, epoch}, {id, epoch}}
	for _, c := range []struct {
		what string
		home homeFile // of the directory
		list logHome
		want string // with logs in the directory
	}{
		{"as the list says", homeFile{id, store, epoch}, logHome{id: id, epoch: epoch}, "here"},
		{"an opening that went no further", homeFile{id, store, epoch + 1}, logHome{id: id, epoch: epoch}, "here"},
		{"an older copy", homeFile{id, store, epoch - 1}, logHome{id: id, epoch: epoch}, "lost stale"},
		{"another directory", homeFile{id + 1, store, epoch}, logHome{id: id, epoch: epoch}, "lost stale"},
		{"another directory of later", homeFile{id + 1, store, epoch + 1}, logHome{id: id, epoch: epoch}, "lost stale"},
		{"no home file", homeFile{}, logHome{id: id, epoch: epoch}, "lost stale"},
		{"released by the writer that had it", homeFile{id, store, epoch}, logHome{epoch: epoch}, ""},
		{"an opening that made it", homeFile{id, store, epoch + 1}, logHome{epoch: epoch}, ""},
		{"taken over, and released", homeFile{id, store, epoch - 1}, logHome{epoch: epoch}, "stale"},
		{"released, and taken over", homeFile{id, store, epoch}, logHome{epoch: epoch + 2, ended: ended}, ""},
		{"released, and another has a log", homeFile{id, store, epoch}, logHome{id + 1, epoch + 2, "", nil, ended},
			"lost"},
		{"a copy, released where it was", homeFile{id, store, epoch - 1}, logHome{epoch: epoch, ended: ended}, "stale"},
		{"released in another store", homeFile{id, store + 1, epoch}, logHome{epoch: epoch + 2, ended: ended}, "stale"},
		{"nobody's, and none needed", homeFile{}, logHome{epoch: epoch}, "stale"},
		{"nobody's, and no list", homeFile{}, logHome{}, "stale"},
	} {
		l := &localLog{fs: vfs.NewMem(), dir: "log", home: c.home, logs: map[uint64]struct{}{}}
		require.NoError(t, l.fs.MkdirAll(l.dir))
		verdict := func() string {
			var parts []string
			v, err := l.judge(c.list, store)
			require.NoError(t, err)
			for _, part := range []struct {
				name string
				is   bool
			}{{"here", v.here}, {"lost", v.lost}, {"stale", len(v.stale) > 0}} {
				if part.is {
					parts = append(parts, part.name)
				}
			}
			err = l.refusal(v, c.list)
			require.Equal(t, v.lost || len(v.stale) > 0, err != nil, c.what)
			if v.lost {
				require.ErrorIs(t, err, ErrLogElsewhere)
			}
			if len(v.stale) > 0 {
				require.ErrorIs(t, err, ErrLogAbandoned)
				require.Equal(t, []uint64{4}, v.stale)
			}
			return strings.Join(parts, " ")
		}
		none := map[bool]string{true: "lost"}[c.list.id != 0 && c.want != "here"]
		if c.want == "here" {
			none = "here"
		}
		require.Equal(t, none, verdict(), "%s, without logs", c.what)
		for num, text := range map[uint64]string{4: strings.Repeat("a record", 9), 6: ""} {
			w, err := l.fs.Create(l.logPath(num))
			require.NoError(t, err)
			_, err = fmt.Fprint(w, text)
			require.NoError(t, err)
			require.NoError(t, w.Close())
			l.logs[num] = struct{}{}
		}
		require.Equal(t, c.want, verdict(), c.what)
	}
}

func TestTheLastLogsThatHaveEndedAreRemembered(t *testing.T) {
	var home logHome
	before := home
	for epoch := range uint64(mostEnded + 3) {
		home.end(endedLog{9, epoch})
		home.end(endedLog{9, epoch})
		require.Len(t, home.ended, min(int(epoch)+1, mostEnded))
		require.Equal(t, endedLog{9, epoch}, home.ended[len(home.ended)-1])
		if epoch == 0 {
			before = home
		}
	}
	require.Equal(t, endedLog{9, 3}, home.ended[0])
	require.Equal(t, []endedLog{{9, 0}}, before.ended, "lists that were made stay as they are")
}
