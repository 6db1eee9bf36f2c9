package sweep

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/cmd/kvbench/internal/bench"
	"github.com/siftkv/siftkv/cmd/kvbench/internal/cell"
	"github.com/siftkv/siftkv/cmd/kvbench/internal/engine"
	"github.com/siftkv/siftkv/cmd/kvbench/internal/results"
	"github.com/siftkv/siftkv/internal/cli/progress"
)

const quick = `
name: quick
settings:
  keys: 2000
  lookups: 200
  reps: 2
  memtable: 256KiB
  engine: [siftkv, pebble]
  filter: [none, "bloom:10"]
  cache: [64KiB, 1MiB]
also:
  - {engine: pebble, filter: "own:10", cache: 1MiB}
  - {engine: siftkv, filter: [none], cache: 1MiB, shape: grown}
exclude:
  - {engine: pebble, filter: "bloom:10"}
`

func plan(t *testing.T, text string) *Plan {
	t.Helper()
	s, err := ParseSpec([]byte(text))
	require.NoError(t, err)
	p, err := s.Plan()
	require.NoError(t, err)
	return p
}

func TestPlanIsTheMatrixWithoutTheExcluded(t *testing.T) {
	p := plan(t, quick)
	require.Len(t, p.Cells, 2*2+1*2+1+1)
	require.Empty(t, p.Skipped)
	stores := map[string]bool{}
	for i, s := range p.Cells {
		if i > 0 && p.Cells[i-1].BuildText() == s.BuildText() {
			continue
		}
		require.False(t, stores[s.BuildText()], "cells of one store follow each other")
		stores[s.BuildText()] = true
	}
	require.Len(t, stores, 5)

	// JSON is YAML.
	same := plan(t, `{"settings": {"keys": 2000, "filter": ["none", "bloom:10"], "engine": ["siftkv", "null"]}}`)
	require.Len(t, same.Cells, 3)
	require.Equal(t, []string{"filter bloom:10: null has none"}, same.Skipped)

	twice := plan(t, `{settings: {cache: [1024KiB, 1MiB]}}`)
	require.Len(t, twice.Cells, 1, "equal settings are one cell")
	require.Len(t, plan(t, `{settings: {cache: [64KiB, 1MiB]}, exclude: [{cache: 1048576}]}`).Cells, 1)
}

func TestWrongSpecsSayWhere(t *testing.T) {
	for text, want := range map[string]string{
		"":                            "empty",
		"setings: {}":                 "setings",
		"settings: {filtre: none}":    "filtre: not a setting; the settings are engine, filter",
		"settings: {filter: {a: b}}":  "line 1: want a value or a list",
		"settings: {filter: []}":      "no value is given",
		"settings: {filter: bloom}":   "bloom:BITS",
		"settings: {engine: rocks}":   "choose from null",
		"settings: {cache: big}":      "not a size",
		"exclude: [{colour: red}]":    "colour: not a setting",
		"exclude: [{engine: siftkv}]": "no cells",
		"settings: {engine: null, budget: spread, filter: none}": "no cells",
		"settings: {engine: siftkv, engine: pebble}":             "engine is given twice",
		"settings: 3":  "want settings by name",
		"settings: [1": "yaml",
	} {
		s, err := ParseSpec([]byte(text))
		if err == nil {
			_, err = s.Plan()
		}
		require.Error(t, err, text)
		require.ErrorContains(t, err, want, text)
	}
	_, err := ReadSpec("/nothing/here")
	require.ErrorIs(t, err, bench.ErrUsage)
}

// harness runs sweeps into one directory.
type harness struct {
	t      *testing.T
	out    string
	config Config
	stderr bytes.Buffer
}

func newHarness(t *testing.T, p *Plan) *harness {
	t.Helper()
	h := &harness{t: t, out: filepath.Join(t.TempDir(), "deep", "results")}
	reporter := progress.New(&h.stderr, "plain")
	lab, err := cell.NewLab(t.TempDir(), nil, reporter)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, lab.Close()) })
	h.config = Config{Plan: p, Out: h.out, Lab: lab, Progress: reporter}
	return h
}

func (h *harness) files() []string {
	entries, _ := os.ReadDir(h.out)
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}

func TestASweepGoesOnWhereItWasStopped(t *testing.T) {
	p := plan(t, quick)
	h := newHarness(t, p)
	ctx, cancel := context.WithCancel(t.Context())
	opened := 0
	h.config.Lab.Wrap = func(_ string, s engine.Store) engine.Store {
		if opened++; opened == 8 {
			cancel()
		}
		return s
	}
	o, err := Run(ctx, &h.config)
	require.ErrorIs(t, err, context.Canceled)
	require.NotEmpty(t, o.Results)
	require.Less(t, len(o.Results), len(p.Cells))
	require.Len(t, h.files(), len(o.Results), "finished cells are there, and nothing else")

	first := o.Results[0]
	again, err := Run(t.Context(), &h.config)
	require.NoError(t, err)
	require.Equal(t, len(o.Results), again.Kept)
	require.Equal(t, len(p.Cells)-again.Kept, again.Run)
	require.Len(t, h.files(), len(p.Cells))
	require.Equal(t, first.Environment.Started.String(), again.Results[0].Environment.Started.String(),
		"kept as it was")
	require.Contains(t, h.stderr.String(), "cell 8 of 8 done: ")
	require.Contains(t, h.stderr.String(), "left")

	loaded, err := results.Load(h.out)
	require.NoError(t, err)
	require.Len(t, loaded.Cells, len(p.Cells))

	// A file that is no result of the cell is replaced, which the sweep says, and --force makes all.
	for bad, says := range map[string]string{"{": "not a result of kvbench",
		`{"schema":"kvbench.cell/v1"}`: `its schema is "kvbench.cell/v1"`} {
		require.NoError(t, os.WriteFile(results.Path(h.out, p.Cells[0]), []byte(bad), 0o600))
		h.stderr.Reset()
		again, err = Run(t.Context(), &h.config)
		require.NoError(t, err)
		require.Equal(t, 1, again.Run)
		require.Contains(t, h.stderr.String(), "cell 1 of 8 is measured again: ")
		require.Contains(t, h.stderr.String(), says)
	}
	h.config.Force = true
	h.config.Plan = &Plan{Cells: p.Cells[:2]}
	again, err = Run(t.Context(), &h.config)
	require.NoError(t, err)
	require.Equal(t, 2, again.Run)
}

func TestASweepDoesNotKeepTheCellsOfAChangedFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "words.txt")
	sweep := func(words int, h *harness) *Outcome {
		var text strings.Builder
		for i := range words {
			fmt.Fprintf(&text, "word-%05d\n", i)
		}
		require.NoError(t, os.WriteFile(path, []byte(text.String()), 0o600))
		h.config.Plan = plan(t, fmt.Sprintf(
			"settings: {keys: %q, filter: [none, bloom:10], lookups: 100, reps: 1, memtable: 256KiB}\nexclude: "+
				"[{keys: other.txt}]", path))
		o, err := Run(t.Context(), &h.config)
		require.NoError(t, err)
		require.Len(t, o.Results, 2)
		return o
	}
	h := newHarness(t, nil)
	require.Equal(t, 2, sweep(700, h).Run)
	require.Equal(t, 2, sweep(700, h).Kept)
	require.Equal(t, 2, sweep(701, h).Run)
	require.Len(t, h.files(), 4)
	require.Equal(t, 2, sweep(700, h).Kept, "as it was")
}

// broken is a store whose lookups fail.
type broken struct {
	engine.Store
	err error
}

func (b broken) NewReader(a engine.Access, k engine.Kind) (engine.Reader, error) {
	r, err := b.Store.NewReader(a, k)
	return brokenReader{r, b.err}, err
}

type brokenReader struct {
	engine.Reader
	err error
}

func (b brokenReader) Get(dst, _ []byte) ([]byte, bool, error) { return dst, false, b.err }

func TestAFailedCellDoesNotStopTheOthers(t *testing.T) {
	p := plan(t, quick)
	h := newHarness(t, p)
	fail := errors.New("the disk is tired")
	h.config.Lab.Wrap = func(name string, s engine.Store) engine.Store {
		if name == p.Cells[1].Name() {
			return broken{s, fail}
		}
		return s
	}
	o, err := Run(t.Context(), &h.config)
	require.ErrorIs(t, err, bench.ErrSomeFailed)
	require.Equal(t, bench.StatusSomeFailed, bench.Status(err))
	require.ErrorContains(t, err, "the disk is tired")
	require.Len(t, o.Failed, 1)
	require.Len(t, o.Results, len(p.Cells)-1)
	require.NoFileExists(t, results.Path(h.out, p.Cells[1]))

	fail = nil // answers that are wrong
	_, err = Run(t.Context(), &h.config)
	require.ErrorIs(t, err, bench.ErrWrongAnswer)
	require.Equal(t, bench.StatusWrong, bench.Status(err))

	h.config.Lab.Wrap = nil
	o, err = Run(t.Context(), &h.config)
	require.NoError(t, err)
	require.Equal(t, 1, o.Run)
}

func TestLoadRefusesWhatIsNoResult(t *testing.T) {
	dir := t.TempDir()
	_, err := results.Load(dir)
	require.ErrorIs(t, err, bench.ErrUsage)
	_, err = results.Load(filepath.Join(dir, "nothing"))
	require.ErrorIs(t, err, bench.ErrUsage)
	for text, want := range map[string]string{
		`{"schema":"kvbench.readamp/v1"}`: "kvbench.readamp/v1",
		`{"schema":"kvbench.cell/v1"}`:    "not kvbench.rows/v2",
		`{"schema":"kvbench.rows/v1"}`:    `its schema is "kvbench.rows/v1", not kvbench.rows/v2`,
		`[null]`:                          "schema",
		`12`:                              "not a result",
	} {
		path := filepath.Join(dir, "a.json")
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
		_, err = results.Load(path)
		require.ErrorIs(t, err, bench.ErrUsage)
		require.ErrorContains(t, err, want)
		require.ErrorContains(t, err, path)
	}
	r := []*cell.Result{{Name: "b"}, {Name: "a"}}
	data, err := json.Marshal(r)
	require.NoError(t, err)
	path := filepath.Join(dir, "set.json")
	require.NoError(t, os.WriteFile(path, data, 0o600))
	loaded, err := results.Load(path)
	require.NoError(t, err)
	require.Equal(t, "a b", strings.Join([]string{loaded.Cells[0].Name, loaded.Cells[1].Name}, " "))
}
