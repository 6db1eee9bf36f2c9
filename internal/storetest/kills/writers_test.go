package kills

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/internal/scale"
	"github.com/siftkv/siftkv/internal/storetest"
	"github.com/siftkv/siftkv/internal/storetest/stores"
	"github.com/siftkv/siftkv/kv"
)

func init() {
	children["write"] = func(dir string) error {
		return writeUntilKilled(dir, storetest.EnvInt(storetest.ChildSeedEnv, 0))
	}
}

// soakMinutes is for how long TestKill goes on:
//
//	go test ./internal/storetest/kills -run '^TestKill$' -args --minutes 10
var soakMinutes = flag.Int("minutes", 0, "for how many minutes TestKill goes on at the least, with long rounds")

// writeUntilKilled is the child: it opens the store, and several goroutines write
// until the process is killed. Every write that returned is reported on standard
// output: writer, number, durability, and how many writes had been reported
// before this one began. So is, now and then, what the process takes.
func writeUntilKilled(dir string, round int) error {
	fmt.Println("opening")
	db, err := kv.Open(dir, stores.NumberedOptions(rand.New(rand.NewPCG(uint64(round), 9)), round))
	if err != nil {
		return err
	}
	var mu sync.Mutex
	reported := 0
	failed := make(chan error)
	go func() { failed <- disturb(db) }()
	for w := range storetest.NumWriters {
		go func() {
			failed <- func() error {
				n, err := storetest.LastNumbered(db.Get, w)
				for err == nil {
					n++
					mu.Lock()
					before := reported
					mu.Unlock()
					level := []*kv.WriteOptions{kv.Sync, kv.NoSync, kv.Async, kv.Async, kv.NoSync}[rand.IntN(5)]
					if err = stores.CommitNumbered(db, w, n, level); err != nil {
						break
					}
					mu.Lock()
					_, err = fmt.Println(w, n, level != kv.Async, before)
					reported++
					mu.Unlock()
				}
				return err
			}()
		}()
	}
	return <-failed
}

// disturb flushes, compacts and reads the store beside the writers.
func disturb(db *kv.DB) error {
	for i := 0; ; i++ {
		s := db.NewSnapshot()
		var err error
		switch i % 3 {
		case 0:
			err = db.Flush(context.Background())
		case 1:
			err = db.Compact(context.Background(), nil, nil)
		}
		if err != nil {
			return err
		}
		it, err := s.NewIter(nil)
		if err != nil {
			return err
		}
		for ok := it.Last(); ok; ok = it.Prev() {
		}
		if err := errors.Join(it.Close(), s.Close()); err != nil {
			return err
		}
		if i%4 == 0 {
			before := db.Metrics().OpenTables
			u := currentUsage()
			fmt.Println("usage", u.heap, u.files, max(before, db.Metrics().OpenTables))
		}
		time.Sleep(time.Duration(rand.IntN(30)) * time.Millisecond) // let writers come in between
	}
}

// A killReport is a line of the child.
type killReport struct {
	writer, n int
	handed    bool // the operating system had it when it returned
	before    int  // how many writes had been reported before it began
}

// A killRun goes through rounds on one store.
type killRun struct {
	t    *testing.T
	dir  string
	rng  *rand.Rand
	soak bool
	last [storetest.NumWriters]int   // writes that were found in the round before
	ends [storetest.NumWriters][]int // and in those before that, by round

	children, parent           usageTrend
	acknowledged, synced, lost int
}

// round lets a child write, kills it after a random number of reports, and checks
// what is left.
func (k *killRun) round(n int) {
	reports := k.killed(n)
	require.NoError(k.t, kv.Verify(context.Background(), k.dir, io.Discard), "round %d", n)
	o := stores.NumberedOptions(k.rng, n)
	o.ReadOnly = n%3 == 0 // the next child recovers from the same files then
	db, err := kv.Open(k.dir, o)
	require.NoError(k.t, err, "round %d", n)
	k.check(n, db, reports)
	require.NoError(k.t, db.Close())
}

// writtenIn is the round in which a write was made that is there.
func (k *killRun) writtenIn(w, n int) int {
	round, _ := slices.BinarySearch(k.ends[w], n) // the first that ended at n or beyond
	return round
}

func (k *killRun) killed(n int) (reports []killReport) {
	var stderr bytes.Buffer
	cmd := storetest.Child(k.t, "write", k.dir, n)
	cmd.Stderr = &stderr
	stdout, err := cmd.StdoutPipe()
	require.NoError(k.t, err)
	require.NoError(k.t, cmd.Start())
	lines := bufio.NewScanner(stdout)
	lines.Scan() // "opening"
	read := func() bool {
		var r killReport
		if !lines.Scan() {
			return false
		}
		var u usage
		if n, _ := fmt.Sscanf(lines.Text(), "usage %d %d %d", &u.heap, &u.files, &u.live); n == 3 {
			k.children = append(k.children, u)
			return true
		}
		_, err := fmt.Sscan(lines.Text(), &r.writer, &r.n, &r.handed, &r.before)
		require.NoError(k.t, err, lines.Text())
		reports = append(reports, r)
		return true
	}
	limit, before := k.rng.IntN(500), len(k.children)
	switch {
	case n%8 == 7:
		limit = 0 // while it opens the store
	case k.soak && n%64 == 1:
		limit = 20_000 // long enough for what leaks to add up
	}
	for len(reports) < limit && read() {
	}
	require.NoError(k.t, cmd.Process.Kill())
	for read() { // reported before it died
	}
	require.Error(k.t, cmd.Wait())
	require.False(k.t, cmd.ProcessState.Exited(), "round %d: the child failed: %s", n, stderr.String())
	require.NoError(k.t, k.children[before:].check(), "round %d", n)
	return reports
}

// check holds the store against the reports: what was with the operating system
// when a write returned is there, with everything that came before; each
// writer's writes are a prefix; no batch is there in part.
func (k *killRun) check(round int, db kv.Reader, reports []killReport) {
	acked, due, survive := k.last, k.last, 0
	for _, r := range reports {
		acked[r.writer] = max(acked[r.writer], r.n)
		if r.handed {
			due[r.writer] = max(due[r.writer], r.n)
			survive = max(survive, r.before)
			k.synced++
		}
	}
	for _, r := range reports[:survive] { // they came before one that is there
		due[r.writer] = max(due[r.writer], r.n)
	}
	for w := range storetest.NumWriters {
		n, err := storetest.LastNumbered(db.Get, w)
		require.NoError(k.t, err)
		require.GreaterOrEqual(k.t, n, due[w], "round %d: writer %d has lost acknowledged writes", round, w)
		require.LessOrEqual(k.t, n, acked[w]+1, "round %d: writer %d never wrote this", round, w)
		k.lost += max(acked[w]-n, 0)
		k.last[w] = n
		k.ends[w] = append(k.ends[w], n)
	}
	k.acknowledged += len(reports)
	storetest.RequireContents(k.t, storetest.Numbered(k.last[:], round, k.writtenIn), db)
}

// TestKill writes from several goroutines in another process, beside flushes,
// compactions and snapshots, kills it, and looks at what is left.
// --minutes sets for how long at the least. Neither the processes that write take
// more from round to round, nor, where it has the process for itself, the one that looks. A
// soak has long rounds too.
func TestKill(t *testing.T) {
	t.Parallel() // it mostly waits: for the disk, and for the child
	k := &killRun{t: t, dir: filepath.Join(t.TempDir(), "store"), rng: rand.New(rand.NewPCG(50, 9))}
	rounds := 0
	k.soak = *soakMinutes > 0
	end := time.Now().Add(time.Duration(*soakMinutes) * time.Minute)
	for rounds < scale.Fewer(max(scale.Count(5, 50), 5), 3) || time.Now().Before(end) {
		k.round(rounds)
		rounds++
		if k.soak {
			k.parent = append(k.parent, currentUsage())
		}
	}
	require.NoError(t, k.children.check(), "processes that write")
	require.NoError(t, k.parent.check(), "the process that looks")
	t.Logf("%d rounds: %d writes acknowledged, %d of them Sync or NoSync, %d Async ones lost", rounds, k.acknowledged,
		k.synced, k.lost)
	t.Logf("writing: %s", k.children)
	if k.soak {
		t.Logf("looking: %s", k.parent)
	}
}
