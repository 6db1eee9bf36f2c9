package cell

import (
	"cmp"
	"strconv"
	"strings"

	"github.com/siftkv/siftkv/cmd/kvbench/internal/bench"
	"github.com/siftkv/siftkv/cmd/kvbench/internal/engine"
	"github.com/siftkv/siftkv/cmd/kvbench/internal/keys"
	"github.com/siftkv/siftkv/kv"
)

// Bounds of what settings of text name.
const (
	maxYoung = 200 // files
	maxOver  = 100 // rounds of overwrites
	maxTheta = 0.9999
)

// Check reports the first setting that makes no sense, and sets in their canonical
// form. An error matches engine.ErrUnsupported if each setting is right by itself.
func (s *Settings) Check() error {
	if err := s.NameKeys(keys.Name); err != nil {
		return err
	}
	young, over, err := s.shaped()
	if err != nil {
		return err
	}
	if _, err := s.theta(); err != nil {
		return err
	}
	if err := s.checkBounds(); err != nil {
		return err
	}
	if s.Fill > 0 && s.Workload != Replay {
		return engine.Unsupported("fill %d: the keys that are there and not asked for are those of workload %s",
			s.Fill, Replay)
	}
	if err := cmp.Or(s.checkScan(), s.checkSeparation()); err != nil {
		return err
	}
	store := s.store()
	if err := store.Check(""); err != nil {
		return err
	}
	tree := engine.Tree{Compaction: s.Compaction, YoungFiles: young, Overwrites: over, Remember: s.Remember}
	if s.Shape == Grown {
		tree.BaseLevelBytes = 1 // as large as the keys will tell
	}
	if err := engine.CheckTree(s.Engine, tree); err != nil {
		return err
	}
	return s.checkVariant()
}

// checkVariant checks the engine and its filter, and what depends on them.
func (s *Settings) checkVariant() error {
	v, err := s.variant()
	if err != nil {
		return err
	}
	s.Filter = v.Filter
	indexed := s.Engine == "siftkv" || strings.HasPrefix(s.Engine, "pebble")
	switch {
	case s.Budget == Spread && (s.Engine != "siftkv" || v.Policy == nil):
		return engine.Unsupported("budget %s: only siftkv has one, with a filter of this project", Spread)
	case s.Budget == Spread && !engine.CanSpread(v.Policy):
		return engine.Unsupported("budget %s: the bits of %s cannot be chosen; take another filter, such as bloom:10",
			Spread, s.Filter)
	case s.Index != 0 && !indexed:
		return engine.Unsupported("index %d: %s chooses its index by itself", s.Index, s.Engine)
	}
	return nil
}

func (s *Settings) variant() (*engine.Variant, error) {
	v, err := s.values()
	if err != nil {
		return nil, err
	}
	return engine.NewVariant(s.Engine, s.Filter, v)
}

func (s *Settings) values() (keys.Values, error) {
	v, err := keys.NewValues(int(s.ValueSize), s.DataSeed)
	if s.Values == RandomValues {
		v = v.Random()
	}
	return v, err
}

// Open returns the keys of the cell.
func (s *Settings) Open() (keys.Source, error) { return keys.Open(s.request()) }

func (s *Settings) request() keys.Request {
	r := keys.Request{Keys: s.Keys, KeySize: int(s.KeySize), MaxLen: kv.MaxKeySize, Fill: int(s.Fill), Seed: s.DataSeed}
	if s.Keys == s.file.name {
		r.Keys, r.Name = s.file.path, s.file.name
	}
	return r
}

// batchKeys is the number of keys per write batch while loading.
const batchKeys = 100

// store returns the settings of the engine. One compaction runs at a time, so that trees come out the same every time.
func (s *Settings) store() engine.Settings {
	store := engine.Settings{
		CacheBytes: s.Cache, MemtableBytes: s.Memtable, BlockBytes: int(s.Block),
		Compression: s.Compression, Compactions: 1, BatchKeys: batchKeys, SeparateFrom: int(s.Separate),
		Inline: s.Separate == 0, AtCommit: s.AtCommit == Yes,
	}
	store.BlobSpace, _ = strconv.ParseFloat(s.BlobSpace, 64) // it was checked, or is empty
	if s.Engine == "siftkv" {
		store.SiftKVIndexBytes = int(s.Index)
		store.SiftKVRange = s.Range
	} else {
		store.PebbleIndexBytes = int(s.Index)
	}
	return store
}

// shaped returns N of the shapes young:N and overwritten:N, 0 for the other shapes.
func (s *Settings) shaped() (young, overwrites int, err error) {
	if s.Shape == Settled || s.Shape == Grown {
		return 0, 0, nil
	}
	name, text, _ := strings.Cut(s.Shape, ":")
	n, err := strconv.Atoi(text)
	switch {
	case err == nil && name == Young && n >= 1 && n <= maxYoung:
		return n, 0, nil
	case err == nil && name == Overwritten && n >= 1 && n <= maxOver:
		return 0, n, nil
	}
	return 0, 0, bench.Usagef("shape %s: choose from %s, %s, %s:N with 1 to %d files, %s:N with 1 to %d rounds",
		s.Shape, Settled, Grown, Young, maxYoung, Overwritten, maxOver)
}

// checkSeparation checks the settings of values, and sets that of their space in its canonical form.
func (s *Settings) checkSeparation() error {
	if s.Separate > 0 && !engine.SeparatesValues(s.Engine) {
		return engine.Unsupported("separate-from %d: %s stores all values with their keys", s.Separate, s.Engine)
	}
	if s.AtCommit != "" && (s.Engine != "siftkv" || s.Separate == 0) {
		return engine.Unsupported("at-commit %s: only siftkv has it, with separate-from", s.AtCommit)
	}
	if s.BlobSpace == "" {
		return nil
	}
	space, err := strconv.ParseFloat(s.BlobSpace, 64)
	if err != nil {
		return bench.Usagef("blob-space %s: want a number, such as 1.3", s.BlobSpace)
	}
	if s.Separate == 0 {
		return engine.Unsupported("blob-space %s: it needs separate-from", s.BlobSpace)
	}
	s.BlobSpace = strconv.FormatFloat(space, 'g', -1, 64)
	return nil
}

// theta returns the skew of the workload, 0 if it has none.
func (s *Settings) theta() (float64, error) {
	name, skew, given := strings.Cut(s.Workload, ":")
	switch {
	case s.Workload == Uniform || s.Workload == Replay:
		return 0, nil
	case name == Zipfian && !given:
		return keys.Theta, nil
	case name == Zipfian:
		theta, err := strconv.ParseFloat(skew, 64)
		if err == nil && theta > 0 && theta <= maxTheta {
			return theta, nil
		}
	}
	return 0, bench.Usagef("workload %s: choose from %s, %s, %s:SKEW with a skew above 0 and up to %g, %s",
		s.Workload, Uniform, Zipfian, Zipfian, maxTheta, Replay)
}

// checkWorkload holds the workload against the keys.
func (x *run) checkWorkload() error {
	_, isTrace := x.source.(*keys.Trace)
	switch {
	case x.settings.Workload == Replay && !isTrace:
		return bench.Usagef("workload %s: keys %s is no lookup trace; lookuptrace.Tracer writes one", Replay,
			x.settings.Keys)
	case x.settings.Workload != Replay && x.source.Absent() == 0:
		return bench.Usagef("workload %s: every key of %s was found, and there is no absent one to ask for; "+
			"take workload %s", x.settings.Workload, x.settings.Keys, Replay)
	}
	return nil
}
