package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/blevesearch/bleve/v2"
	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/internal/scale"
	"github.com/siftkv/siftkv/kv"
)

// child makes the test binary, with a directory as its argument, the program, or the process that is killed.
const child = "INDEX_TEST_CHILD"

func TestMain(m *testing.M) {
	switch round := os.Getenv(child); round {
	case "":
		os.Exit(m.Run())
	case "program":
		main()
	default:
		n, _ := strconv.ParseUint(round, 10, 64)
		log.Fatal(writeAndFollow(os.Args[1], n))
	}
}

func command(t *testing.T, as, dir string) *exec.Cmd {
	t.Helper()
	self, err := os.Executable()
	require.NoError(t, err)
	cmd := exec.CommandContext(t.Context(), self, dir)
	cmd.Env = append(os.Environ(), child+"="+as)
	cmd.Stderr = t.Output()
	return cmd
}

func openStore(dir string) (*kv.DB, error) {
	return kv.Open(filepath.Join(dir, "store"), &kv.Options{MemtableSize: 64 << 10})
}

// writeAndFollow writes, and indexes what it writes, for as long as it lives. It prints w for each write, and i when
// the index has it.
func writeAndFollow(dir string, round uint64) error {
	db, err := openStore(dir)
	if err != nil {
		return err
	}
	written := make(chan struct{}, 20)
	go func() {
		for r := rand.New(rand.NewPCG(1, round)); ; written <- struct{}{} {
			if err := change(r, db); err != nil {
				log.Fatal(err)
			}
			fmt.Print("w")
		}
	}()
	x, err := openIndex(context.Background(), db, filepath.Join(dir, "index"))
	for err == nil {
		<-written
		err = x.follow(context.Background(), lastChange(db))
		fmt.Print("i")
	}
	return err
}

var words = strings.Fields("ale bock cider dubbel eisbock faro gose helles ice kolsch lambic mild pils quad rye stout")

// change commits a few random writes.
func change(r *rand.Rand, db *kv.DB) error {
	key := func() []byte { return fmt.Appendf(nil, "doc/%02d", r.IntN(40)) }
	b := db.NewBatch()
	for range 1 + r.IntN(4) {
		switch r.IntN(8) {
		case 0:
			_ = b.Delete(key())
		case 1:
			lo, hi := key(), key()
			if bytes.Compare(lo, hi) > 0 {
				lo, hi = hi, lo
			}
			_ = b.DeleteRange(lo, hi)
		default:
			var text []string
			for range 1 + r.IntN(6) {
				text = append(text, words[r.IntN(len(words))])
			}
			_ = b.Set(key(), []byte(strings.Join(text, " ")))
		}
	}
	return b.Commit(kv.NoSync)
}

// killed runs a child until it has printed n letters, and i if it has to, and kills it.
func killed(t *testing.T, dir string, round, n int, indexed bool) {
	t.Helper()
	cmd := command(t, strconv.Itoa(round), dir)
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	letter := make([]byte, 1)
	for seen := 0; seen < n || indexed; seen++ {
		_, err := io.ReadFull(out, letter)
		require.NoError(t, err, "the child has ended in round %d", round)
		indexed = indexed && letter[0] != 'i'
	}
	require.NoError(t, cmd.Process.Kill())
	_ = cmd.Wait()
}

func TestAnIndexFollowsAStoreThroughKills(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	r := rand.New(rand.NewPCG(2, 0))
	rounds := scale.Count(8, 100)
	for round := range rounds { // the first ones may not have an index yet
		killed(t, dir, round, 1+r.IntN(1+10*round), round == rounds-1)
	}

	db, err := openStore(dir)
	require.NoError(t, err)
	x, err := resume(db, filepath.Join(dir, "index"))
	require.NoError(t, err, "the index goes on where it was")
	require.NoError(t, x.follow(t.Context(), lastChange(db)))
	require.Equal(t, x.slot.Position(), x.writes, "each write is counted once")
	requireLikeNew(t, db, x)
	require.NoError(t, x.close())
	require.NoError(t, db.Close())
}

// A change is counted once that the index has and the slot has not, as after a kill before its acknowledgement.
func TestAChangeIsNotCountedAgainThatWasNotAcknowledged(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	acknowledged := filepath.Join(dir, "store", "SLOT-index")
	var before []byte
	for round := range 3 {
		db, err := openStore(dir)
		require.NoError(t, err)
		require.NoError(t, change(rand.New(rand.NewPCG(4, uint64(round))), db))
		x, err := openIndex(t.Context(), db, filepath.Join(dir, "index"))
		require.NoError(t, err)
		if round == 0 {
			before, err = os.ReadFile(acknowledged)
			require.NoError(t, err)
		}
		require.NoError(t, x.follow(t.Context(), lastChange(db)))
		require.Equal(t, x.slot.Position(), x.writes, "each write is counted once")
		requireLikeNew(t, db, x)
		require.NoError(t, x.close())
		require.NoError(t, db.Close())
		require.NoError(t, os.WriteFile(acknowledged, before, 0o600))
	}
}

func TestWritesOfAChangeAreIndexedInTheirOrder(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	db, err := openStore(dir)
	require.NoError(t, err)
	x, err := openIndex(t.Context(), db, filepath.Join(dir, "index"))
	require.NoError(t, err)
	b := db.NewBatch()
	for _, key := range []string{"a", "b", "c", "d"} {
		require.NoError(t, b.Set([]byte(key), []byte("ale")))
	}
	require.NoError(t, b.DeleteRange([]byte("b"), []byte("d")))
	require.NoError(t, b.Delete([]byte("a")))
	require.NoError(t, b.Set([]byte("c"), []byte("pale ale")))
	require.NoError(t, b.Commit(nil))
	require.NoError(t, x.follow(t.Context(), lastChange(db)))
	keys, err := x.search("ale")
	require.NoError(t, err)
	require.Equal(t, []string{"c", "d"}, keys)
	requireLikeNew(t, db, x)
	require.NoError(t, db.DeleteRange(nil, nil, nil)) // all
	require.NoError(t, x.follow(t.Context(), lastChange(db)))
	requireLikeNew(t, db, x)
	require.NoError(t, x.close())
	require.NoError(t, db.Close())
}

// requireLikeNew holds that an index answers as one of the store as it is now.
func requireLikeNew(t *testing.T, db *kv.DB, x *index) {
	t.Helper()
	b, err := bleve.NewMemOnly(bleve.NewIndexMapping())
	require.NoError(t, err)
	var failed error
	for key, text := range db.All(nil, &failed) {
		require.NoError(t, b.Index(string(key), document{string(text)}))
	}
	require.NoError(t, failed)
	want, err := b.DocCount()
	require.NoError(t, err)
	got, err := x.bleve.DocCount()
	require.NoError(t, err)
	require.Equal(t, want, got)
	fresh := &index{bleve: b}
	for _, word := range words {
		want, err := fresh.search(word)
		require.NoError(t, err)
		got, err := x.search(word)
		require.NoError(t, err)
		require.Equal(t, want, got, word)
	}
	require.NoError(t, b.Close())
}

// An index is made again where it cannot go on: it lacks the end of its snapshot, or its slot is gone.
func TestAnIndexBeginsAgain(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	db, err := openStore(dir)
	require.NoError(t, err)
	path := filepath.Join(dir, "index")
	r := rand.New(rand.NewPCG(3, 0))
	for _, spoil := range []func(x *index){
		func(*index) {},
		func(x *index) { require.NoError(t, x.bleve.DeleteInternal(progress)) },
		func(x *index) {
			require.NoError(t, x.slot.Close())
			require.NoError(t, db.DropSlot(slotName))
		},
		func(*index) { require.NoError(t, os.Remove(filepath.Join(path, "index_meta.json"))) },
	} {
		for range 50 {
			require.NoError(t, change(r, db))
		}
		x, err := openIndex(t.Context(), db, path)
		require.NoError(t, err)
		require.NoError(t, x.follow(t.Context(), lastChange(db)))
		requireLikeNew(t, db, x)
		spoil(x)
		require.NoError(t, x.close())
	}
	x, err := openIndex(t.Context(), db, path)
	require.NoError(t, err)
	requireLikeNew(t, db, x)
	require.NoError(t, x.close())
	require.NoError(t, db.Close())
}

// An older index lacks what was acknowledged since: it is made again, and not continued.
func TestAnOlderIndexIsMadeAgain(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	db, err := openStore(dir)
	require.NoError(t, err)
	path, older := filepath.Join(dir, "index"), filepath.Join(dir, "older")
	r := rand.New(rand.NewPCG(5, 0))
	for round := range 3 {
		require.NoError(t, change(r, db))
		x, err := openIndex(t.Context(), db, path)
		require.NoError(t, err)
		require.NoError(t, x.follow(t.Context(), lastChange(db)))
		requireLikeNew(t, db, x)
		require.NoError(t, x.close())
		switch round {
		case 0:
			require.NoError(t, os.CopyFS(older, os.DirFS(path)))
		case 1:
			require.NoError(t, os.RemoveAll(path))
			require.NoError(t, os.Rename(older, path))
		}
	}
	require.NoError(t, db.Close())
}

// The old index may be back after a power cut, next to the new slot. It is not continued, whatever number it has.
func TestAnIndexWhoseRemovalWasLostIsMadeAgain(t *testing.T) {
	t.Parallel()
	for _, more := range []int{0, 8} { // changes of the new slot: it is behind the old index, or ahead of it
		dir := t.TempDir()
		path, kept := filepath.Join(dir, "index"), filepath.Join(dir, "kept")
		r := rand.New(rand.NewPCG(6, 0))
		old, err := openStore(filepath.Join(dir, "old"))
		require.NoError(t, err)
		x, err := openIndex(t.Context(), old, path)
		require.NoError(t, err)
		for range 5 {
			require.NoError(t, change(r, old))
		}
		require.NoError(t, x.follow(t.Context(), lastChange(old)))
		require.NoError(t, x.close())
		require.NoError(t, old.Close())

		db, err := openStore(dir) // has another history
		require.NoError(t, err)
		_, err = resume(db, path)
		require.Error(t, err)
		require.NoError(t, os.CopyFS(kept, os.DirFS(path))) // as it is before it is removed
		x, err = begin(t.Context(), db, path)
		require.NoError(t, err)
		require.NoError(t, x.close())
		for range 2 + more {
			require.NoError(t, change(r, db))
		}
		require.NoError(t, os.RemoveAll(path))
		require.NoError(t, os.Rename(kept, path))
		x, err = openIndex(t.Context(), db, path)
		require.NoError(t, err)
		require.NoError(t, x.follow(t.Context(), lastChange(db)))
		requireLikeNew(t, db, x)
		require.NoError(t, x.close())
		require.NoError(t, db.Close())
	}
}

func TestTheProgramPrintsWhatItSays(t *testing.T) {
	t.Parallel()
	want, err := os.ReadFile("output.txt")
	require.NoError(t, err)
	got, err := command(t, "program", t.TempDir()).Output()
	require.NoError(t, err)
	require.Equal(t, string(want), string(got))
}
