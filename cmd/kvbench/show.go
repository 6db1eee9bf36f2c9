package main

import (
	"io"

	"github.com/siftkv/siftkv/internal/bench/report"
)

// show prints a result and writes it as JSON too if a file is named.
func show[R any](p *program, text func(io.Writer, R) error, result R, file string) error {
	if err := text(p.stdout, result); err != nil || file == "" {
		return err
	}
	return report.WriteJSON(file, result)
}
