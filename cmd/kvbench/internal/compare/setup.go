package compare

import (
	"cmp"
	"errors"
	"path/filepath"
	"time"

	"github.com/siftkv/siftkv/cmd/kvbench/internal/bench"
	"github.com/siftkv/siftkv/cmd/kvbench/internal/engine"
	"github.com/siftkv/siftkv/cmd/kvbench/internal/environ"
	"github.com/siftkv/siftkv/cmd/kvbench/internal/tidy"
	"github.com/siftkv/siftkv/internal/cli/progress"
)

// A Setup is what every experiment needs of the program that it is a part of. Every field is
// needed but Dir and Argv.
type Setup struct {
	Dir      string // where a temporary directory is made; empty: the system's
	Argv     []string
	Progress *progress.Reporter
	Worker   []string // the command line that runs Serve on standard input and output
}

// inTemporary runs an experiment, whose stores are in a directory that is gone when it returns.
func (s *Setup) inTemporary(experiment string, run func(dir string) error) (err error) {
	dir, remove, err := bench.TempDir(s.Dir, experiment)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, remove()) }()
	return run(dir)
}

// measured runs an experiment in a temporary directory, and returns its result.
func (s *Setup) measured(experiment, about string, settings any, run func(r *tidy.Result, dir string) error) (
	*tidy.Result, error) {
	started := time.Now()
	var r *tidy.Result
	err := s.inTemporary(experiment, func(dir string) error {
		r = tidy.New(experiment, about, settings, s.environment(dir))
		return run(r, dir)
	})
	if err != nil {
		return nil, err
	}
	r.WallSeconds = time.Since(started).Seconds()
	return r, nil
}

// environment describes the machine, with the file system of a temporary directory.
func (s *Setup) environment(dir string) environ.Environment {
	return environ.Capture(s.Argv, filepath.Dir(dir))
}

// Bounds of the number of keys.
const (
	minKeys = 1000
	maxKeys = 1 << 30
)

// checkEngines reports the first name that is no peer's, and how to get it if that is possible.
func checkEngines(names []string) error {
	for _, name := range names {
		if err := engine.CheckName("--engine", name, engine.Peers()); err != nil {
			return err
		}
	}
	return bench.CheckNames("--engine", names, engine.Peers())
}

// checkStores reports the first number of keys, size or setting of stores that makes no sense.
func checkStores(sizes []int, keySize, valueSize int, settings engine.Settings) error {
	for _, n := range sizes {
		err := bench.CheckBounds(bench.Bound{Flag: "--keys", Value: int64(n), Low: minKeys, High: maxKeys})
		if err == nil {
			_, err = newKeyspace(&startTask{Keys: n, KeySize: keySize, ValueSize: valueSize})
		}
		if err != nil {
			return err
		}
	}
	return cmp.Or(bench.CheckNames("--compression", []string{settings.Compression}, Compressions), settings.Check("--"))
}
