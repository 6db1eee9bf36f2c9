package main

import (
	"github.com/siftkv/siftkv/internal/keytext"
	"github.com/siftkv/siftkv/kv"
)

// explainCommand is the command line of siftkv explain.
type explainCommand struct {
	Dir
	Key string `arg:"" help:"The key, which need not be there."`
}

// Run prints what one lookup did, step by step.
func (c *explainCommand) Run(p *program) error {
	key, err := p.parse("key", c.Key)
	if err != nil {
		return err
	}
	return c.read(func(db *kv.DB) error {
		e, err := db.Explain(key)
		if err != nil {
			return err
		}
		if !p.JSON {
			return p.printf("%s", e)
		}
		return p.printJSON(explanation(p, e), true)
	})
}

// explanation is the JSON of a lookup.
func explanation(p *program, e *kv.Explanation) any {
	type step struct {
		Source          string `json:"source"`
		Level           *int   `json:"level,omitempty"`
		Verdict         string `json:"verdict"`
		Filter          string `json:"filter,omitempty"`
		BlocksFromCache int    `json:"blocks_from_cache"`
		BlocksFromDisk  int    `json:"blocks_from_disk"`
	}
	steps := []step{}
	for _, s := range e.Steps {
		st := step{Source: s.Source, Verdict: string(s.Verdict), BlocksFromCache: s.Probe.BlocksFromCache,
			BlocksFromDisk: s.Probe.BlocksFromDisk}
		if s.Level >= 0 {
			st.Level, st.Filter = &s.Level, s.Probe.Filter.String()
		}
		steps = append(steps, st)
	}
	return map[string]any{"key": p.KeyFormat.JSON(e.Key), "hash": keytext.ID(e.Hash), "found": e.Found,
		"covered_by": e.CoveredBy, "steps": steps}
}
