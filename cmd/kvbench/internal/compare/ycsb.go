package compare

import (
	"errors"
	"fmt"
	"strings"

	"github.com/siftkv/siftkv/cmd/kvbench/internal/keys"
	"github.com/siftkv/siftkv/cmd/kvbench/internal/ycsb"
)

// ycsbChunk is the number of operations between two readings of the clock.
const ycsbChunk = 256

// mixed is a loop of one mix, in one goroutine.
type mixed struct {
	ycsb.Actor
	operations [ycsbChunk]ycsb.Operation
	audit      bool // look, at the end, whether scans can have missed something
}

func newYCSB(w *worker, name string, pass uint64) (*mixed, error) {
	m, ok := ycsb.Mixes[strings.TrimPrefix(name, "ycsb-")]
	if !ok {
		return nil, fmt.Errorf("no job named %q", name)
	}
	u := w.keyspace
	y := &mixed{
		Actor: ycsb.Actor{
			Mix: m, Store: w.store, Records: u, Frontier: w.frontier, Zipf: w.popular,
			Popular: keys.NewPermutation(u.n, keys.Mix(u.seed^zipfOrder)), Random: keys.NewRandom(u.seed^mixDraw, pass),
		},
		audit: m.First == ycsb.Scan && pass == 0,
	}
	return y, y.Open()
}

func (y *mixed) draw() (int, error) {
	for i := range y.operations {
		if err := y.Draw(&y.operations[i]); err != nil {
			return 0, fmt.Errorf("%w; ask for more keys, or less seconds", err)
		}
	}
	return len(y.operations), nil
}

func (y *mixed) do() error {
	for i := range y.operations {
		if err := y.Do(&y.operations[i]); err != nil {
			return err
		}
		if err := y.Check(&y.operations[i]); err != nil {
			return err
		}
	}
	return nil
}

func (y *mixed) close() (err error) {
	if y.audit {
		err = y.CheckAll()
	}
	return errors.Join(err, y.Close())
}
