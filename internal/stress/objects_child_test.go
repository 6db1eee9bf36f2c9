package stress

import (
	"context"
	"encoding/gob"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"time"

	"github.com/siftkv/siftkv/internal/harness"
	"github.com/siftkv/siftkv/kv"
	"github.com/siftkv/siftkv/objstore"
	"github.com/siftkv/siftkv/objstore/objstoretest"
)

// processEnv makes the test binary a process of a store in an object store: the variable has its jobConfig. It takes
// orders from its standard input and writes records to its standard output.
const processEnv = "SIFTKV_STRESS_PROCESS"

// A jobConfig says what a process does.
type jobConfig struct {
	Follow   bool // it reads only
	Seed     uint64
	Number   int // of the round
	Workers  int
	Want     featureSet
	Objects  string // the object store's directory
	Cache    string
	Patience time.Duration
	DieAt    int64
	Grace    time.Duration // the same for all who use the store: else readers miss what is new

	SlotBytes int64 // the bound of what is kept for slots
}

// far is a time at which everything has expired that may: readers in other processes have no share in the clock.
const far = int64(100 * 365 * 24 * time.Hour / time.Microsecond)

// runJob does what the environment asks for and returns the exit status.
func runJob(text string) int {
	var c jobConfig
	err := json.Unmarshal([]byte(text), &c)
	var store objstore.Store
	if err == nil {
		store, err = objstore.OpenDir(c.Objects)
	}
	if err != nil {
		_, _ = fmt.Fprintln(os.Stderr, err)
		return 1
	}
	j, orders := newJournal(os.Stdout), make(chan order, 4)
	go func() {
		defer close(orders)
		for in := gob.NewDecoder(os.Stdin); ; {
			var c order
			if err := in.Decode(&c); err != nil {
				return
			}
			orders <- c
		}
	}()
	rng := rand.New(rand.NewPCG(c.Seed, 9))
	b := &bucket{store: store, faults: objstoretest.NewFaults(store, c.Seed), options: drawObjects(rng, c.Grace),
		cache: c.Cache, journal: j, orders: orders, troubles: drawTroubles(rng, c.Want)}
	b.troubles.dieAt, b.flight = c.DieAt, &flight{Store: b.faults}
	// A page that the process before has kept may be of a damaged reply. Another damaged reply, to the one request that
	// follows, would be two in a row: that is a damaged file, as a store sees it.
	if left, _ := filepath.Glob(filepath.Join(c.Cache, "pages-*")); len(left) > 0 && b.options.CacheSize > 0 {
		b.troubles.damaged = 0
	}
	var f *Finding
	if c.Follow {
		f = b.follow(&c, rng)
	} else {
		f = b.write(&c)
	}
	if f != nil {
		j.write(record{Kind: recordFinding, Name: f.Kind, Text: f.Text})
	}
	return 0
}

// write is a round of a store.
func (b *bucket) write(c *jobConfig) *Finding {
	l := &life{want: c.Want, patience: c.Patience, disk: NewDisk(c.Seed), oracle: newOracle(c.Workers),
		counts: newCounts(), bucket: b, lastEnd: "another process",
		consumers: newConsumers(), slotBytes: c.SlotBytes}
	l.oracle.tell(b.journal)
	r := l.drawFrom(c.Number, c.Seed)
	b.faults.Inject(b.rule(r.plan))
	first := <-b.orders
	if first.Kind != orderOpen {
		return nil // whoever started the process is no more
	}
	f := r.run(context.Background())
	b.faults.Inject(func(objstoretest.Call) objstoretest.Fault { return objstoretest.Fault{} })
	b.faults.Deliver() // when the store is closed
	if f == nil {
		b.journal.write(record{Kind: recordEnd, Text: fmt.Sprintf("%s, which returned %v", r.lastEnd, r.closeResult)})
	}
	return f
}

// follow reads the store beside its writers, until it is told that the last one has ended.
func (b *bucket) follow(c *jobConfig, rng *rand.Rand) *Finding {
	p := newPlan(rng)
	b.faults.Inject(b.rule(p))
	v := &view{}
	defer v.close()
	for told := false; ; {
		select {
		case _, ok := <-b.orders:
			if told = true; !ok {
				return nil
			}
			p.lift()
		case <-time.After(time.Duration(rng.IntN(20)) * time.Millisecond):
		}
		found, err := b.look(v, rng, c.Patience)
		switch {
		case err == nil && told:
			b.journal.write(record{Kind: recordEnd, Found: found})
			return nil
		case err == nil:
			b.journal.write(record{Kind: recordView, Found: found})
		case !errors.Is(err, kv.ErrStale) && !isAny(err, objectErrors...) && !isAny(err, context.DeadlineExceeded):
			return &Finding{Kind: "follower", Text: fmt.Sprintf("in another process: %v", err)}
		}
		for told && err != nil {
			if found, err = b.look(v, rng, c.Patience); err == nil {
				b.journal.write(record{Kind: recordEnd, Found: found})
				return nil
			}
			if !errors.Is(err, kv.ErrStale) && !isAny(err, objectErrors...) {
				return &Finding{Kind: "follower", Text: fmt.Sprintf("in another process, at last: %v", err)}
			}
		}
	}
}

// look opens the reader, or brings it up to date, and reads everything.
func (b *bucket) look(v *view, rng *rand.Rand, patience time.Duration) (content, error) {
	if v.db == nil {
		s := drawSetup(rng)
		b.use(&s, b.faults, b.options.CacheSize)
		s.harness.FS = localDisk{NewDisk(1).Mount(nil), b.cache}
		*harness.Of(&s.opts) = s.harness
		s.opts.Clock = func() time.Time { return time.UnixMicro(far) }
		db, err := kv.OpenReadOnly(storeDir, &s.opts)
		if err != nil {
			return nil, err
		}
		v.db = db
	} else {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		if err := v.db.Refresh(ctx); err != nil {
			return nil, err
		}
	}
	return readAll(v.db, "", rng.IntN(2) == 0)
}

// tell makes the oracle write down what happens.
func (o *oracle) tell(j *journal) {
	o.journal, o.clock.journal = j, j
	for n, k := range o.spaces {
		k.number, k.journal = n, j
	}
}
