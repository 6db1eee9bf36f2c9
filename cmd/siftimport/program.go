package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"syscall"

	"github.com/alecthomas/kong"

	"github.com/siftkv/siftkv/cmd/siftimport/internal/source"
	"github.com/siftkv/siftkv/internal/cli"
	"github.com/siftkv/siftkv/kv"
)

type program struct {
	stdout, stderr io.Writer
}

const description = "Makes a SiftKV store of a store of another library, which stays as it is: pebble:DIR, " +
	"leveldb:DIR, badger:DIR or bbolt:FILE. What is done so far is kept in DEST.import: the same command goes on " +
	"from there.\n\n" +
	"Exit status: 0 ok, 1 error, 2 usage, 4 the source is damaged or the copy differs, 130 interrupted."

// Exit statuses, as siftkv has them.
const (
	statusOK          = 0
	statusError       = 1
	statusUsage       = 2
	statusDamage      = 4
	statusInterrupted = 130 // 128 + SIGINT
)

var helpTexts = kong.Vars{
	"version": cli.Version("siftimport"),
	"source":  "What is imported: pebble:DIR, leveldb:DIR (goleveldb), badger:DIR or bbolt:FILE.",
	"dest":    "Directory of the store: not there, empty, or a store without keys.",
	"bucket": "The bucket of a bbolt file whose keys are imported, without a prefix, as NAME or OUTER/NAME; a / in a " +
		"name is written \\/. By default the keys of all buckets are, with prefixes.",
	"verify":   "Read the new store, and compare it with what was read of the source. (--no-verify: do not.)",
	"filesize": "Size of a sorted file, about.",
}

// errDiffers is matched when the copy is not what the source is.
var errDiffers = errors.New("the copy differs from the source")

func usagef(format string, args ...any) error { return cli.Usagef(format, args...) }

// run executes one command line and returns the exit status.
func (p *program) run(ctx context.Context, argv []string) int {
	var line command
	spec := cli.Program{Name: "siftimport", Description: description, Vars: helpTexts, Stdout: p.stdout,
		Stderr: p.stderr, Examples: map[string]string{"": "siftimport pebble:/var/old /var/new\n" +
			"siftimport bbolt:app.db /var/new --bucket users"}}
	parsed, err := spec.Parse(ctx, argv, &line)
	if err == nil && parsed == nil {
		return statusOK
	}
	if err == nil {
		err = line.run(ctx, p)
	}
	return p.fail(err)
}

// statusOf returns the exit status that belongs to an error; nil is statusOK.
func statusOf(err error) int {
	switch {
	case err == nil:
		return statusOK
	case errors.Is(err, context.Canceled):
		return statusInterrupted
	case errors.Is(err, cli.ErrUsage), errors.Is(err, kv.ErrInvalidOptions):
		return statusUsage
	case errors.Is(err, source.ErrDamaged), errors.Is(err, errDiffers), errors.Is(err, kv.ErrCorruption):
		return statusDamage
	case errors.Is(err, syscall.EPIPE):
		return statusOK
	}
	return statusError
}

// fail prints an error, if there is one, in one line and returns the exit status.
func (p *program) fail(err error) int {
	status := statusOf(err)
	switch status {
	case statusOK:
		return status
	case statusInterrupted:
		_, _ = fmt.Fprintln(p.stderr, "siftimport: interrupted; the same command goes on from here")
	default:
		_, _ = fmt.Fprintf(p.stderr, "siftimport: %s\n", strings.TrimPrefix(cli.Text(err), "siftkv: "))
	}
	return status
}
