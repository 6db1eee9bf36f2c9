package storecmd

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"github.com/siftkv/siftkv/internal/manifest"
	"github.com/siftkv/siftkv/internal/vfs"
	"github.com/siftkv/siftkv/kv"
)

type applyCommand struct {
	takesOver
	adviceTrace
	Options string `placeholder:"TEXT" help:"${apply_options}"`
	Rewrite bool   `default:"true" negatable:"" help:"${apply_rewrite}"`
	DryRun  bool   `help:"Say what would be done, and do nothing."`
}

func (c *applyCommand) Run(ctx context.Context, p *program) error {
	text := c.Options
	if text == "" {
		r, err := c.advice(ctx, p)
		if err != nil {
			return err
		}
		if text = r.Options; text == "" {
			return c.keep(ctx, p, r.Words)
		}
	} else if c.Trace != "" {
		return usagef("--options says what to apply: leave %s out", c.Trace)
	}
	o, merged, err := c.merge(text)
	if err != nil {
		return err
	}
	if c.DryRun {
		o.ReadOnly = true
		return c.with(ctx, p, o, false, func(db *kv.DB) error { return c.tell(p, db, merged) })
	}
	return c.apply(ctx, p, o, merged)
}

// keep says that there is nothing to apply, and which files do not have the filters of the settings that are kept: of
// an apply that was broken off, say.
func (c *applyCommand) keep(ctx context.Context, p *program, words string) error {
	var stale kv.FilterCompaction
	if !c.Dir.Dir.remote() {
		o := c.Dir.Dir.stored()
		o.ReadOnly, o.MemoryLimit = true, 0
		err := c.with(ctx, p, o, false, func(db *kv.DB) (err error) {
			stale, err = db.StaleFilters()
			return err
		})
		if err != nil {
			return err
		}
	}
	if stale.Files > 0 {
		words += fmt.Sprintf(" %d files have other filters than those settings: name a setting with --options, and "+
			"they are rewritten.", stale.Files)
	}
	p.answer(object{"applied", false, "options", "", "words", words, "rewrite_files", stale.Files, "rewrite_bytes",
		stale.Bytes}, "%s\n", words)
	return nil
}

// merge returns the options of the store with those of the text in their place, and their text.
func (c *applyCommand) merge(text string) (o *kv.Options, merged string, err error) {
	text = optionLines(text)
	if _, err := kv.ParseOptions(text); err != nil {
		return nil, "", usagef("--options: %w", err)
	}
	names := fieldsOf(text)
	for _, name := range notApplied {
		if slices.Contains(names, name) {
			return nil, "", usagef("--options: %s is not a setting of a store", name)
		}
	}
	stored, err := c.storedText()
	if err != nil {
		return nil, "", err
	}
	var b strings.Builder
	for line := range strings.Lines(stored) {
		name, own := fieldOf(line)
		switch {
		case name == "" || slices.Contains(names, name) || slices.Contains(notApplied, name):
		case own && c.Rewrite && (name == "Filter" || name == "Prefix" || name == "RangeFilter"):
			return nil, "", usagef("the store's %s is its program's own, which siftkv does not have: set one with "+
				"--options, or use --no-rewrite", name)
		case !own:
			b.WriteString(line)
		}
	}
	for line := range strings.Lines(text) {
		if name, own := fieldOf(line); name != "" && !own {
			b.WriteString(strings.TrimSpace(line) + "\n")
		}
	}
	if o, err = kv.ParseOptions(b.String()); err != nil {
		return nil, "", usagef("with what the store was last opened with: %w", err)
	}
	return o, o.String(), nil
}

// optionLines returns a text of options with a line for each. Semicolons end lines too, except in values that are
// quoted as in Go.
func optionLines(text string) string {
	b := []byte(text)
	line, quoted := 0, false // where the line begins, and whether its value is being quoted
	for i := 0; i < len(b); i++ {
		switch {
		case b[i] == '\n':
			line, quoted = i+1, false
		case b[i] == '\\' && quoted:
			i++
		case b[i] == '"' && (quoted || strings.HasSuffix(strings.TrimSpace(string(b[line:i])), "=")):
			quoted = !quoted
		case b[i] == ';' && !quoted:
			b[i], line = '\n', i+1
		}
	}
	return string(b)
}

// notApplied are fields of options that say how to open a store, and not what it is like.
var notApplied = []string{"InMemory", "ReadOnly", "RecoveryMode", "TolerateMissingValues"}

// storedText returns the text of the options that the store was last opened with. One that cannot be read is an error:
// what it says would be lost.
func (c *applyCommand) storedText() (string, error) {
	if c.Dir.Dir.remote() {
		if !c.Rewrite {
			return "", usagef("%s keeps no options: without a rewrite there is nothing to do", c.Dir.Dir)
		}
		return "", nil
	}
	stored, err := manifest.Options(vfs.OS, string(c.Dir.Dir))
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return "", nil
	case err != nil:
		return "", fmt.Errorf("%w (what it says would be lost; remove the file to begin without it)", err)
	}
	return stored.Text, nil
}

// fieldsOf returns the fields that a text of options sets.
func fieldsOf(text string) (names []string) {
	for line := range strings.Lines(text) {
		if name, own := fieldOf(line); name != "" && !own {
			names = append(names, name)
		}
	}
	return names
}

// fieldOf returns the field that a line of options is about, if it sets it, or says that it is the application's own.
func fieldOf(line string) (name string, own bool) {
	name, value, ok := strings.Cut(strings.TrimSpace(line), "=")
	if !ok {
		return "", false
	}
	name, comment := strings.CutPrefix(name, "#")
	if own = strings.HasSuffix(value, ": the application's own"); comment && !own {
		return "", false
	}
	return strings.TrimSpace(name), own && comment
}

func (c *applyCommand) tell(p *program, db *kv.DB, merged string) error {
	var stale kv.FilterCompaction
	var err error
	if c.Rewrite {
		stale, err = db.StaleFilters()
	}
	if err == nil {
		p.answer(object{"applied", false, "options", merged, "rewrite_files", stale.Files,
			"rewrite_bytes", stale.Bytes}, "%swould rewrite %d files, %d bytes\n", merged, stale.Files, stale.Bytes)
	}
	return err
}

// apply opens the store with the options, which writes them down, and rewrites its files.
func (c *applyCommand) apply(ctx context.Context, p *program, o *kv.Options, merged string) error {
	var sum kv.FilterCompaction
	err := c.writeWith(ctx, p, o, func(db *kv.DB) (err error) {
		if c.Rewrite {
			sum, err = db.CompactFilters(ctx)
		}
		return err
	})
	if err != nil {
		if sum.Files > 0 {
			err = fmt.Errorf("%w (%d files, %d bytes were rewritten; another apply goes on from there)", err, sum.Files,
				sum.Bytes)
		}
		return err
	}
	p.answer(object{"applied", true, "options", merged, "rewritten_files", sum.Files, "rewritten_bytes", sum.Bytes},
		"%srewrote %d files, %d bytes\n", merged, sum.Files, sum.Bytes)
	return nil
}
