package objectscmd

import (
	"errors"
	"io"

	"github.com/siftkv/siftkv/internal/bench/page"
	"github.com/siftkv/siftkv/internal/cli/outfile"
)

// A ResultFile is a flag that names a file to write; "-" is standard output, which then
// has nothing else on it, and empty is none.
type ResultFile string

// Validate is called by kong, before the command does anything.
func (f ResultFile) Validate() error {
	if f == "" || f == "-" {
		return nil
	}
	return outfile.Check(string(f))
}

// Standard reports whether the file is standard output.
func (f ResultFile) Standard() bool { return f == "-" }

// Write makes what a function writes the contents of the file, if one is wanted.
func (f ResultFile) Write(stdout io.Writer, contents func(io.Writer) error) error {
	switch f {
	case "":
		return nil
	case "-":
		return contents(stdout)
	}
	return outfile.Write(string(f), contents)
}

// WriteJSON writes a result as indented JSON.
func WriteJSON(w io.Writer, result any) error {
	data, err := page.JSON(result)
	if err == nil {
		_, err = w.Write(data)
	}
	return err
}

// Show returns what prints a result, and writes it as JSON too if a file is named. Neither
// keeps the other from being done: the result may have taken an hour. It passes an error on.
func Show[R any](stdout io.Writer, text func(io.Writer, R) error, file ResultFile) func(R, error) error {
	return func(result R, err error) error {
		if err != nil {
			return err
		}
		if !file.Standard() {
			err = text(stdout, result)
		}
		return errors.Join(err, file.Write(stdout, func(w io.Writer) error { return WriteJSON(w, result) }))
	}
}
