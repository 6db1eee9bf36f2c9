package kv

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/internal/commit"
	"github.com/siftkv/siftkv/internal/scale"
	"github.com/siftkv/siftkv/internal/storetest"
)

// children are what a child does, by the value of childEnv.
var children = map[string]func(dir string) error{
	"write":  func(dir string) error { return writeUntilKilled(dir, envInt(storetest.ChildSeedEnv, 0)) },
	"hold":   holdUntilEOF,
	"follow": followUntilKilled, "restore": restoreUntilKilled, "stream": streamUntilKilled,
	"back up": backUpUntilKilled, "restore into a directory": restoreDirUntilKilled,
}

// soakMinutes is for how long TestKill goes on: go test ./kv -run '^TestKill$' -args --minutes 10.
var soakMinutes = flag.Int("minutes", 0, "for how many minutes TestKill goes on at the least, with long rounds")

func TestMain(m *testing.M) { storetest.Main(m, children) }

const (
	killWriters = 4
	killSlots   = 64 // keys of a writer, which its writes go through in turn
)

func killKey(w, slot int) string { return fmt.Sprintf("slot/%d/%02d", w, slot) }
func twinKey(w, slot int) string { return fmt.Sprintf("twin/%02d/%d", slot, w) }
func lastKey(w int) string       { return fmt.Sprintf("last/%d", w) }

// Every write n adds n to its writer's counter and to the one of all.
func countKey(w int) string { return fmt.Sprintf("count/%d", w) }

const countAllKey = "count/all"

func briefKey(w, slot int) string { return fmt.Sprintf("brief/%d/%02d", w, slot) }

// killClock is the time of a round, which stands still.
func killClock(round int) func() time.Time {
	return func() time.Time { return time.Unix(1e9+int64(round), 0) }
}

// killLife is for how many rounds the value lives that write n gives a time to: up to
// four beyond its own.
func killLife(n int) int { return 1 + n%5 }

// killOptions are those of a round: of the child, and of the parent afterwards.
func killOptions(rng *rand.Rand, round int) *Options {
	o := randomOptions(rng)
	o.Merger, o.Clock = Int64Add, killClock(round)
	if round%2 == 0 {
		sometimesApart(o, rng)
	}
	return o
}

// killValue is what write n of a writer stores: anybody can compute it.
func killValue(w, n int) string {
	rng := rand.New(rand.NewPCG(uint64(w), uint64(n)))
	b := fmt.Appendf(nil, "%d %d ", w, n)
	for range rng.IntN(1200) {
		b = append(b, byte('a'+rng.IntN(4)))
	}
	return string(b)
}

// A killTarget takes the writes of killWrite.
type killTarget interface {
	set(k, v string)
	del(k string)
	delRange(lo, hi string)
	merge(k string, n int64)
	setTTL(k, v string, rounds int)
}

// killWrite does write n of a writer on anything that takes writes: all its keys
// change together, and its effects depend on w and n alone.
func killWrite(w, n int, to killTarget) {
	slot := n % killSlots
	to.set(lastKey(w), strconv.Itoa(n))
	if n%31 == 0 {
		to.delRange(killKey(w, 20), killKey(w, 30))
		to.delRange(fmt.Sprintf("twin/40/%d", w), fmt.Sprintf("twin/40/%d\x00", w))
	}
	if n%5 == 0 {
		to.del(twinKey(w, n*7%killSlots))
	}
	to.set(killKey(w, slot), killValue(w, n))
	to.set(twinKey(w, slot), killValue(w, n))
	to.setTTL(briefKey(w, slot), killValue(w, n), killLife(n))
	if n%97 == 0 { // a value under the operands, which changes no sum
		to.set(countKey(w), string(AppendInt64(nil, killSum(n-1))))
	}
	to.merge(countKey(w), int64(n))
	to.merge(countAllKey, int64(n))
}

// killSum is what a writer's counter holds after write n, if each addition was made
// once.
func killSum(n int) int64 { return int64(n) * int64(n+1) / 2 }

// A killBatch is a batch that killWrite fills.
type killBatch struct {
	*Batch
	err error
}

func (b *killBatch) note(err error)         { b.err = errors.Join(b.err, err) }
func (b *killBatch) set(k, v string)        { b.note(b.Set([]byte(k), []byte(v))) }
func (b *killBatch) del(k string)           { b.note(b.Delete([]byte(k))) }
func (b *killBatch) delRange(lo, hi string) { b.note(b.DeleteRange([]byte(lo), []byte(hi))) }
func (b *killBatch) merge(k string, n int64) {
	b.note(b.Merge([]byte(k), AppendInt64(nil, n)))
}
func (b *killBatch) setTTL(k, v string, rounds int) {
	b.note(b.SetTTL([]byte(k), []byte(v), time.Duration(rounds)*time.Second))
}

// A killModel is what the store holds in a round, counters aside: these come from the
// writes before too, see killSum.
type killModel struct {
	storetest.Model
	round, written int // this round, and the one in which the write was made
}

func (m *killModel) set(k, v string)        { m.Model[k] = v }
func (m *killModel) del(k string)           { delete(m.Model, k) }
func (m *killModel) delRange(lo, hi string) { m.DeleteRange([]byte(lo), []byte(hi)) }
func (m *killModel) merge(string, int64)    {}
func (m *killModel) setTTL(k, v string, rounds int) {
	delete(m.Model, k)
	if m.round < m.written+rounds {
		m.Model[k] = v
	}
}

// state puts in what a writer's keys are after its writes up to n. Every slot is
// set once in killSlots writes, so that earlier ones do not matter.
func (m *killModel) state(w, n int, writtenIn func(w, n int) int) {
	for i := max(1, n-killSlots); i <= n; i++ {
		m.written = writtenIn(w, i)
		killWrite(w, i, m)
	}
	if n > 0 {
		m.Model[countKey(w)] = string(AppendInt64(nil, killSum(n)))
	}
}

// writeUntilKilled is the child: it opens the store, and several goroutines write
// until the process is killed. Every write that returned is reported on standard
// output: writer, number, durability, and how many writes had been reported
// before this one began. So is, now and then, what the process takes.
func writeUntilKilled(dir string, round int) error {
	fmt.Println("opening")
	db, err := Open(dir, killOptions(rand.New(rand.NewPCG(uint64(round), 9)), round))
	if err != nil {
		return err
	}
	var mu sync.Mutex
	reported := 0
	failed := make(chan error)
	go func() { failed <- disturb(db) }()
	for w := range killWriters {
		go func() {
			failed <- func() error {
				n, err := lastWrite(db, w)
				for err == nil {
					n++
					mu.Lock()
					before := reported
					mu.Unlock()
					level := []*WriteOptions{Sync, NoSync, Async, Async, NoSync}[rand.IntN(5)]
					if err = commitKillWrite(db, w, n, level); err != nil {
						break
					}
					mu.Lock()
					_, err = fmt.Println(w, n, level.level(), before)
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
func disturb(db *DB) error {
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

func commitKillWrite(db *DB, w, n int, o *WriteOptions) error {
	b := &killBatch{Batch: db.NewBatch()}
	killWrite(w, n, b)
	return errors.Join(b.err, b.Commit(o))
}

// lastWrite returns the number of a writer's last write.
func lastWrite(db Reader, w int) (int, error) {
	v, err := db.Get([]byte(lastKey(w)))
	if errors.Is(err, ErrNotFound) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	return strconv.Atoi(string(v))
}

// A killReport is a line of the child.
type killReport struct{ writer, n, level, before int }

// A killRun goes through rounds on one store.
type killRun struct {
	t    *testing.T
	dir  string
	rng  *rand.Rand
	soak bool
	last [killWriters]int   // writes that were found in the round before
	ends [killWriters][]int // and in those before that, by round

	children, parent           usageTrend
	acknowledged, synced, lost int
}

// round lets a child write, kills it after a random number of reports, and checks
// what is left.
func (k *killRun) round(n int) {
	reports := k.killed(n)
	require.NoError(k.t, Verify(context.Background(), k.dir, io.Discard), "round %d", n)
	o := killOptions(k.rng, n)
	o.ReadOnly = n%3 == 0 // the next child recovers from the same files then
	db, err := Open(k.dir, o)
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
		_, err := fmt.Sscan(lines.Text(), &r.writer, &r.n, &r.level, &r.before)
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
func (k *killRun) check(round int, db Reader, reports []killReport) {
	acked, due, survive := k.last, k.last, 0
	for _, r := range reports {
		acked[r.writer] = max(acked[r.writer], r.n)
		if commit.Level(r.level) != commit.Buffered {
			due[r.writer] = max(due[r.writer], r.n)
			survive = max(survive, r.before)
			k.synced++
		}
	}
	for _, r := range reports[:survive] { // they came before one that is there
		due[r.writer] = max(due[r.writer], r.n)
	}
	want := &killModel{Model: storetest.Model{}, round: round}
	all := int64(0)
	for w := range killWriters {
		n, err := lastWrite(db, w)
		require.NoError(k.t, err)
		require.GreaterOrEqual(k.t, n, due[w], "round %d: writer %d has lost acknowledged writes", round, w)
		require.LessOrEqual(k.t, n, acked[w]+1, "round %d: writer %d never wrote this", round, w)
		k.lost += max(acked[w]-n, 0)
		k.last[w] = n
		k.ends[w] = append(k.ends[w], n)
		want.state(w, n, k.writtenIn)
		all += killSum(n)
	}
	if all > 0 {
		want.Model[countAllKey] = string(AppendInt64(nil, all))
	}
	k.acknowledged += len(reports)
	requireContents(k.t, want.Model, db)
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
	for rounds < max(scale.Count(5, 50), 5) || time.Now().Before(end) {
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

// holdUntilEOF is the child that has a store open until its input ends.
func holdUntilEOF(dir string) error {
	db, err := Open(dir, nil)
	if err != nil {
		return err
	}
	fmt.Println("open")
	_, err = io.Copy(io.Discard, os.Stdin)
	return errors.Join(err, db.Close())
}

// holdOpen starts a process that has a store open until its input ends.
func holdOpen(t *testing.T, dir string) (cmd *exec.Cmd, stdin io.Closer) {
	t.Helper()
	cmd = storetest.Child(t, "hold", dir, 0)
	stdin, err := cmd.StdinPipe()
	require.NoError(t, err)
	stdout, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	line, err := bufio.NewReader(stdout).ReadString('\n')
	require.NoError(t, err)
	require.Equal(t, "open\n", line)
	return cmd, stdin
}

func TestAStoreThatAnotherProcessHasIsLocked(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "store")
	cmd, stdin := holdOpen(t, dir)
	for _, o := range []*Options{nil, {ReadOnly: true}} {
		_, err := Open(dir, o)
		require.ErrorIs(t, err, ErrLocked)
		require.ErrorContains(t, err, filepath.Join(dir, "LOCK"))
		require.ErrorContains(t, err, strconv.Itoa(cmd.Process.Pid))
	}
	require.ErrorIs(t, Verify(t.Context(), dir, io.Discard), ErrLocked)

	require.NoError(t, stdin.Close())
	require.NoError(t, cmd.Wait())
	db, err := Open(dir, nil)
	require.NoError(t, err, "the lock goes with its holder")
	require.NoError(t, db.Close())
}
