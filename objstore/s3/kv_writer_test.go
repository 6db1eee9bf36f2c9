package s3

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/kv"
	"github.com/siftkv/siftkv/kv/objects"
	"github.com/siftkv/siftkv/objstore"
)

// bucketOptions are those of small stores, which flush and compact soon, and delete at once what nobody needs.
func bucketOptions(s objstore.Store) *kv.Options {
	return &kv.Options{MemtableSize: 64 << 10, TargetFileSize: 64 << 10, BaseLevelSize: 64 << 10, BlockSize: 4 << 10,
		CacheSize: 64 << 10, Objects: &objects.Config{Store: s, LogInterval: time.Hour, Grace: -1,
			Patience: 50 * time.Millisecond}}
}

// A bucketWriter does write 1, 2, 3... to a store: each sets a few keys, and a key to its number.
type bucketWriter struct {
	t      testing.TB
	s      objstore.Store
	db     *kv.DB
	n      int // begun
	synced int // acknowledged with Sync
}

// value is what write n sets its keys to.
func value(n int) []byte {
	rng := rand.New(rand.NewPCG(uint64(n), 3))
	return fmt.Appendf(nil, "%d %s", n, strings.Repeat(strconv.Itoa(rng.IntN(1000)), rng.IntN(400)))
}

// objectKeys returns the keys of write n. Each key is set again by a later write.
func keysOf(n int) []string {
	return []string{fmt.Sprintf("a%02d", n%40), fmt.Sprintf("b%02d", n*7%40), "last"}
}

// contents returns what the first n writes leave.
func contents(n int) map[string]string {
	want := map[string]string{}
	for i := 1; i <= n; i++ {
		for _, k := range keysOf(i) {
			want[k] = string(value(i))
		}
	}
	return want
}

// openBucket opens the store in a bucket, which has all of the first writes, as many as from least to most.
func openBucket(t testing.TB, s objstore.Store, least, most int) *bucketWriter {
	t.Helper()
	db, err := kv.Open("", bucketOptions(s))
	require.NoError(t, err)
	t.Cleanup(func() { _ = db.Close() })
	n := checkBucket(t, db, least, most)
	return &bucketWriter{t: t, s: s, db: db, n: n, synced: n}
}

// bucket returns the store that the writer has its objects in.
func (w *bucketWriter) bucket(t testing.TB) *store {
	s, ok := w.s.(*store)
	require.True(t, ok)
	return s
}

// checkBucket requires that a store has the first writes, as many as from least to most, and returns how many.
func checkBucket(t testing.TB, db kv.Reader, least, most int) int {
	t.Helper()
	n, got, err := readBucket(db)
	require.NoError(t, err)
	require.GreaterOrEqual(t, n, least, "acknowledged writes are lost")
	require.LessOrEqual(t, n, most, "nobody wrote this")
	require.Equal(t, contents(n), got)
	return n
}

func readBucket(db kv.Reader) (n int, got map[string]string, err error) {
	it, err := db.NewIter(nil)
	if err != nil {
		return 0, nil, err
	}
	got = map[string]string{}
	for ok := it.First(); ok; ok = it.Next() {
		got[string(it.Key())] = string(it.Value())
	}
	if err := errors.Join(it.Error(), it.Close()); err != nil {
		return 0, nil, err
	}
	if last, ok := got["last"]; ok {
		number, _, _ := strings.Cut(last, " ")
		n, err = strconv.Atoi(number)
	}
	return n, got, err
}

// try does the next write, and flushes and compacts now and then.
func (w *bucketWriter) try() error {
	w.n++
	b := w.db.NewBatch()
	for _, k := range keysOf(w.n) {
		if err := b.Set([]byte(k), value(w.n)); err != nil {
			return err
		}
	}
	o := []*kv.WriteOptions{kv.Sync, kv.NoSync, kv.Async}[w.n%3]
	if err := b.Commit(o); err != nil {
		return err
	}
	if o == kv.Sync {
		w.synced = w.n
	}
	switch w.n % 20 {
	case 7:
		return w.db.Flush(context.Background())
	case 17:
		return w.db.Compact(context.Background(), nil, nil)
	}
	return nil
}

// write does so many writes and makes them durable.
func (w *bucketWriter) write(n int) {
	w.t.Helper()
	for range n {
		require.NoError(w.t, w.try())
	}
	require.NoError(w.t, w.db.Flush(context.Background()))
	w.synced = w.n
}

// requireFenced requires that the writer, whatever it tries, is told that another has taken over.
func (w *bucketWriter) requireFenced() {
	w.t.Helper()
	var err error
	for i := 0; i < 100 && err == nil; i++ {
		err = w.try()
	}
	require.Error(w.t, err)
	for !errors.Is(err, objects.ErrFenced) { // it gave up on a request, and asks again before it says why
		err = w.db.Set([]byte("late"), nil, kv.Sync)
		require.Error(w.t, err)
	}
	require.ErrorIs(w.t, w.db.Flush(context.Background()), objects.ErrFenced)
	require.ErrorIs(w.t, w.db.Close(), objects.ErrFenced)
}

// writerEnv makes the test binary a writer in a process of its own.
const writerEnv = "SIFTKV_TEST_WRITER"

// A writerJob is what such a process is told.
type writerJob struct {
	Endpoint, Bucket, Prefix string
	Big                      bool // its first flush is of a file that goes up in parts
}

// runWriter writes until it is killed, and says what was acknowledged with Sync.
func runWriter(text string) error {
	var job writerJob
	if err := json.Unmarshal([]byte(text), &job); err != nil {
		return err
	}
	c := Config{Endpoint: job.Endpoint, PathStyle: true}
	c.Bucket, c.Prefix, c.PartSize = job.Bucket, job.Prefix, minPartSize
	s, err := Open(context.Background(), c)
	if err != nil {
		return err
	}
	o := bucketOptions(s)
	if job.Big {
		o.MemtableSize, o.TargetFileSize, o.BaseLevelSize = 32<<20, 32<<20, 32<<20
	}
	db, err := kv.Open("", o)
	if err != nil {
		return err
	}
	w := &bucketWriter{db: db}
	if w.n, _, err = readBucket(db); err != nil {
		return err
	}
	for err == nil {
		before := w.synced
		if err = w.try(); w.synced > before {
			fmt.Println(w.synced)
		}
		if job.Big && w.n%20 == 5 {
			err = errors.Join(err, db.Set([]byte("big"), big, kv.NoSync), db.Flush(context.Background()))
		}
	}
	return err
}

// A writerProcess is one that a test has started.
type writerProcess struct {
	cmd   *exec.Cmd
	lines *bufio.Scanner
}

func startWriter(t testing.TB, job writerJob, own bool) *writerProcess {
	text, err := json.Marshal(job)
	require.NoError(t, err)
	self, err := os.Executable()
	require.NoError(t, err)
	p := &writerProcess{cmd: exec.CommandContext(t.Context(), self)}
	p.cmd.Env = append(os.Environ(), writerEnv+"="+string(text))
	if own {
		p.cmd.Env = append(p.cmd.Env, "AWS_ACCESS_KEY_ID="+accessKey, "AWS_SECRET_ACCESS_KEY="+secretKey)
	}
	p.cmd.Stderr = os.Stderr
	stdout, err := p.cmd.StdoutPipe()
	require.NoError(t, err)
	p.lines = bufio.NewScanner(stdout)
	return p
}
