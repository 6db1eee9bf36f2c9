// Package sweep runs a matrix of cells: every combination of the settings that a
// specification names, one file per finished cell, so that a sweep that was stopped
// goes on where it was.
package sweep

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/siftkv/siftkv/cmd/kvbench/internal/bench"
	"github.com/siftkv/siftkv/cmd/kvbench/internal/cell"
	"github.com/siftkv/siftkv/cmd/kvbench/internal/engine"
	"github.com/siftkv/siftkv/cmd/kvbench/internal/keys"
	"github.com/siftkv/siftkv/cmd/kvbench/internal/results"
	"github.com/siftkv/siftkv/internal/cli/progress"
)

// A Spec says which cells to run. In a file it is YAML, or JSON, which is YAML:
//
//	name: quick
//	settings:             # of every cell; of a list, each in turn
//	  keys: 100000
//	  engine: [siftkv, pebble]
//	  filter: [none, "bloom:10"]
//	also:                 # more cells: the settings above, but for these
//	  - engine: pebble
//	    filter: own:10
//	exclude:              # without those that match all of a line
//	  - {engine: pebble, filter: none}
type Spec struct {
	Name     string  `yaml:"name"`
	About    string  `yaml:"about"`
	Settings Block   `yaml:"settings"`
	Also     []Block `yaml:"also"`
	Exclude  []Block `yaml:"exclude"`
}

// A Block gives settings, by name, one value or several.
type Block map[string][]string

// UnmarshalYAML reads values as they are written, so that the engine null needs no
// quotes.
func (b *Block) UnmarshalYAML(n *yaml.Node) error {
	if n.Kind != yaml.MappingNode {
		return fmt.Errorf("line %d: want settings by name", n.Line)
	}
	*b = Block{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		name := n.Content[i].Value
		if _, twice := (*b)[name]; twice {
			return fmt.Errorf("line %d: %s is given twice", n.Content[i].Line, name)
		}
		list, err := valuesOf(n.Content[i+1])
		if err != nil {
			return err
		}
		(*b)[name] = list
	}
	return nil
}

// valuesOf reads a value or a list of them.
func valuesOf(n *yaml.Node) ([]string, error) {
	nodes := []*yaml.Node{n}
	if n.Kind == yaml.AliasNode {
		n = n.Alias
	}
	if n.Kind == yaml.SequenceNode {
		nodes = n.Content
	}
	list := []string{}
	for _, item := range nodes {
		if item.Kind == yaml.AliasNode {
			item = item.Alias
		}
		if item.Kind != yaml.ScalarNode {
			return nil, fmt.Errorf("line %d: want a value or a list of values", item.Line)
		}
		list = append(list, item.Value)
	}
	return list, nil
}

// ReadSpec reads a specification from a file.
func ReadSpec(path string) (*Spec, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, bench.Usagef("--spec: %w", err)
	}
	s, err := ParseSpec(data)
	if err != nil {
		return nil, bench.Usagef("%s: %w", path, err)
	}
	return s, nil
}

// ParseSpec reads a specification. A name that it does not know is an error.
func ParseSpec(data []byte) (*Spec, error) {
	var s Spec
	d := yaml.NewDecoder(bytes.NewReader(data))
	d.KnownFields(true)
	if err := d.Decode(&s); err != nil {
		if errors.Is(err, io.EOF) {
			return nil, errors.New("empty: want settings, each with a value or a list of values")
		}
		return nil, err
	}
	return &s, nil
}

// A Plan is the cells of a specification.
type Plan struct {
	Cells   []cell.Settings // those that share a store follow each other
	Skipped []string        // combinations that no engine has, and why
}

// maxCells bounds a sweep: more is a mistake.
const maxCells = 100_000

// Plan makes the cells of a specification from the defaults.
func (s *Spec) Plan() (*Plan, error) {
	p := &planner{seen: map[string]bool{}, named: map[string]string{}}
	for _, b := range s.Exclude {
		if err := knownNames(b); err != nil {
			return nil, err
		}
		c, _ := results.NewConditions(b) // what is no value excludes nothing
		p.exclude = append(p.exclude, c)
	}
	for _, also := range append([]Block{nil}, s.Also...) {
		block := maps.Clone(s.Settings)
		if block == nil {
			block = Block{}
		}
		maps.Copy(block, also)
		if err := knownNames(block); err != nil {
			return nil, err
		}
		if err := p.expand(cell.Default(), block, 0); err != nil {
			return nil, err
		}
	}
	if len(p.plan.Cells) == 0 {
		return nil, bench.Usagef("no cells: %s",
			strings.Join(append([]string{"every combination is excluded"}, p.plan.Skipped...), "; "))
	}
	p.plan.Cells = byStore(p.plan.Cells)
	return &p.plan, nil
}

// knownNames reports a name that is not a setting's.
func knownNames(b Block) error {
	names := cell.FieldNames()
	for _, name := range slices.Sorted(maps.Keys(b)) {
		if !slices.Contains(names, name) {
			return bench.Usagef("%s: not a setting; the settings are %s", name, strings.Join(names, ", "))
		}
		if len(b[name]) == 0 {
			return bench.Usagef("%s: no value is given", name)
		}
	}
	return nil
}

type planner struct {
	plan    Plan
	seen    map[string]bool
	named   map[string]string // files of keys by path, each of which is read once
	exclude []results.Conditions
}

// expand sets the fields from the n-th on to each of their values in turn.
func (p *planner) expand(s cell.Settings, b Block, n int) error {
	fields := cell.Fields(&s)
	for ; n < len(fields); n++ {
		list := b[fields[n].Name]
		if len(list) == 0 {
			continue
		}
		for _, text := range list {
			if err := fields[n].Set(text); err != nil {
				return err
			}
			if err := p.expand(s, b, n+1); err != nil {
				return err
			}
		}
		return nil
	}
	return p.add(s)
}

// add takes in one cell, unless it is excluded, there already, or unsupported.
func (p *planner) add(s cell.Settings) error {
	if slices.ContainsFunc(p.exclude, func(c results.Conditions) bool { return c.Match(s.Shown()) }) {
		return nil
	}
	if err := s.NameKeys(p.nameKeys); err != nil {
		return err
	}
	err := s.Check()
	switch {
	case errors.Is(err, engine.ErrUnsupported):
		if text := err.Error(); !slices.Contains(p.plan.Skipped, text) {
			p.plan.Skipped = append(p.plan.Skipped, text)
		}
		return nil
	case err != nil:
		return err
	case p.seen[s.Text()]:
		return nil
	case len(p.plan.Cells) >= maxCells:
		return bench.Usagef("more than %d cells", maxCells)
	}
	p.seen[s.Text()] = true
	p.plan.Cells = append(p.plan.Cells, s)
	return nil
}

func (p *planner) nameKeys(path string) (string, error) {
	if name, ok := p.named[path]; ok {
		return name, nil
	}
	name, err := keys.Name(path)
	p.named[path] = name
	return name, err
}

// byStore puts cells with the same files next to each other, in the order of the first
// of each.
func byStore(cells []cell.Settings) []cell.Settings {
	var order []string
	groups := map[string][]cell.Settings{}
	for _, s := range cells {
		text := s.BuildText()
		if groups[text] == nil {
			order = append(order, text)
		}
		groups[text] = append(groups[text], s)
	}
	out := cells[:0:0]
	for _, text := range order {
		out = append(out, groups[text]...)
	}
	return out
}

// A Config says how to run a plan.
type Config struct {
	Plan     *Plan
	Out      string // directory of the results
	Force    bool   // run cells that have a result
	Lab      *cell.Lab
	Progress *progress.Reporter
}

// An Outcome is what came of a sweep.
type Outcome struct {
	Results []*cell.Result // of the cells that have one, in the order of the plan
	Run     int            // cells that were run
	Kept    int            // cells that had a result already
	Failed  []Failure
	Mixed   []string // revisions of kvbench that made the results, if there are several
}

// A Failure is a cell without a result.
type Failure struct {
	Cell string
	Err  error
}

// Run runs the cells of a plan that have no result yet, and writes each as it is done.
// A cell that fails does not stop the others: it is in the outcome and in the error.
// Of a context that ends the error is that of the context, and the outcome says what
// is done.
func Run(ctx context.Context, c *Config) (*Outcome, error) {
	o := &Outcome{}
	start, n := time.Now(), len(c.Plan.Cells)
	for i, s := range c.Plan.Cells {
		if !c.Force {
			found, err := results.Find(c.Out, s)
			switch {
			case errors.Is(err, results.ErrOther):
				c.Progress.Line("cell %d of %d is measured again: %v", i+1, n, err)
			case err != nil:
				return o, err
			case found != nil:
				o.Results, o.Kept = append(o.Results, found), o.Kept+1
				continue
			}
		}
		r, err := c.one(ctx, s)
		switch {
		case ctx.Err() != nil:
			return o, ctx.Err()
		case errors.Is(err, errSave):
			return o, err // the others would fare no better
		case err != nil:
			o.Failed = append(o.Failed, Failure{s.Name(), err})
			c.Progress.Line("cell %d of %d failed: %s: %v", i+1, n, s.Name(), err)
		default:
			o.Results = append(o.Results, r)
			o.Run++
			c.Progress.Line("cell %d of %d done: %s in %.1f s%s", i+1, n, s.Name(), r.WallSeconds,
				left(time.Since(start), o.Run+len(o.Failed), n-i-1))
		}
	}
	o.revisions()
	return o, o.err()
}

// errSave marks a result that could not be written.
var errSave = errors.New("cannot write the result")

func (c *Config) one(ctx context.Context, s cell.Settings) (*cell.Result, error) {
	r, err := c.Lab.Run(ctx, s)
	if err != nil {
		return nil, err
	}
	if err := r.Identities.Err(); err != nil {
		return nil, err
	}
	if err := results.Save(c.Out, r); err != nil {
		return nil, fmt.Errorf("%w: %w", errSave, err)
	}
	return r, nil
}

// left estimates the time that the remaining cells take, at most, since some of them
// may have their result already.
func left(took time.Duration, done, remaining int) string {
	if remaining == 0 || done == 0 {
		return ""
	}
	return fmt.Sprintf(", about %s left", (took / time.Duration(done) * time.Duration(remaining)).Round(time.Second))
}

// revisions notes by which builds the results were made.
func (o *Outcome) revisions() {
	for _, r := range o.Results {
		if rev := r.Environment.Revision; !slices.Contains(o.Mixed, rev) {
			o.Mixed = append(o.Mixed, rev)
		}
	}
	if len(o.Mixed) < 2 {
		o.Mixed = nil
	}
}

// err returns an error if cells failed: that of a wrong answer if there was one.
func (o *Outcome) err() error {
	if len(o.Failed) == 0 {
		return nil
	}
	for _, f := range o.Failed {
		if errors.Is(f.Err, bench.ErrWrongAnswer) || errors.Is(f.Err, bench.ErrIdentity) {
			return fmt.Errorf("%s: %w", f.Cell, f.Err)
		}
	}
	f := o.Failed[0]
	return fmt.Errorf("%w: %d of %d, the first %s: %w; run again to try them again", bench.ErrSomeFailed,
		len(o.Failed), len(o.Failed)+len(o.Results), f.Cell, f.Err)
}
