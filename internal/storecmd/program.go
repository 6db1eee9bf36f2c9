package storecmd

import (
	"bufio"
	"context"
	_ "embed" // the words of the help
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"syscall"

	"github.com/alecthomas/kong"

	"github.com/siftkv/siftkv/internal/cli"
	"github.com/siftkv/siftkv/internal/keyformat"
	"github.com/siftkv/siftkv/internal/keytext"
	"github.com/siftkv/siftkv/kv"
	"github.com/siftkv/siftkv/kv/objects"
)

// commands is the command line. A command is a struct in a file of its own with a
// Run method; it is listed here.
type commands struct {
	Globals

	Get        getCommand        `cmd:"" help:"Print the value of a key."`
	Put        putCommand        `cmd:"" help:"Store a value under a key."`
	Delete     deleteCommand     `cmd:"" help:"Remove a key, or a range of keys."`
	Scan       scanCommand       `cmd:"" help:"List keys and values in order."`
	Explain    explainCommand    `cmd:"" help:"${explain}"`
	Stats      statsCommand      `cmd:"" help:"The shape of a store: levels, filters, indexes, logs, garbage, options."`
	Verify     verifyCommand     `cmd:"" help:"Check every byte of a store, and list all damage."`
	Repair     repairCommand     `cmd:"" help:"Make a store of what is left of a damaged one, and say what was lost."`
	Copy       copyCommand       `cmd:"" help:"${copy_about}"`
	Checkpoint checkpointCommand `cmd:"" help:"${checkpoint}"`
	Backup     backupCommand     `cmd:"" help:"${backup}"`
	Restore    restoreCommand    `cmd:"" help:"Make a store of backups."`
	Ingest     ingestCommand     `cmd:"" help:"Take sorted files into a store, all at one moment."`
	Compact    compactCommand    `cmd:"" help:"Merge a store, or a range of it, into its last level."`
	Advise     adviseCommand     `cmd:"" help:"${advise}"`
	Apply      applyCommand      `cmd:"" help:"${apply}"`

	Changes    changesCommand    `cmd:"" help:"${changes}"`
	Follow     followCommand     `cmd:"" help:"${follow}"`
	Slots      slotsCommand      `cmd:"" help:"${slots}"`
	CreateSlot createSlotCommand `cmd:"" help:"${create_slot}"`
	DropSlot   dropSlotCommand   `cmd:"" help:"Give up a slot, and the changes that are kept for it."`

	Demo demoCommand `cmd:"" help:"Make a small store to try the other commands on."`

	Checkpoints    checkpointsCommand    `cmd:"" help:"${checkpoints}"`
	DropCheckpoint dropCheckpointCommand `cmd:"" help:"Give up a checkpoint in an object store."`
	Clone          cloneCommand          `cmd:"" help:"${clone}"`
	Branches       branchesCommand       `cmd:"" help:"List the branches of a store in an object store."`
	DropBranch     dropBranchCommand     `cmd:"" help:"Delete a branch of a store in an object store."`
	GC             gcCommand             `cmd:"" help:"Delete what writers left behind in an object store."`

	DumpSSTable  dumpSSTableCommand  `cmd:"" name:"dump-sstable" help:"${dump_sstable}"`
	DumpBlob     dumpBlobCommand     `cmd:"" name:"dump-blob" help:"${dump_blob}"`
	DumpWAL      dumpWALCommand      `cmd:"" name:"dump-wal" help:"Print a write-ahead log: every write, past damage."`
	DumpManifest dumpManifestCommand `cmd:"" name:"dump-manifest" help:"${dump_manifest}"`

	cli.Standard
}

// Globals are flags of every command.
type Globals struct {
	JSON      bool             `name:"json" help:"${json}"`
	Quiet     bool             `short:"q" help:"No progress."`
	KeyFormat keyformat.Format `enum:"text,hex,base64" default:"text" help:"${key_format}"`
}

// A program is siftkv with its surroundings.
type program struct {
	stdin          io.Reader
	stdout, stderr io.Writer
	out            *bufio.Writer // standard output
	openers        Openers
	argv           []string
	Globals
}

//go:embed texts.txt
var textsFile string

// texts are the words of the help. Long texts are no tags of flags and commands.
var texts = cli.ParseTexts(textsFile)

// Exit statuses.
const (
	statusOK          = 0
	statusError       = 1
	statusUsage       = 2
	statusNotFound    = 3
	statusDamage      = 4
	statusInterrupted = 130 // 128 + SIGINT
)

// Errors that set the exit status.
var (
	errDamage = errors.New("damage found")
	errQuiet  = errors.New("the output has said it")
)

// Main is the main function of a siftkv that opens object stores.
func Main(openers Openers) {
	p := program{stdin: os.Stdin, stdout: os.Stdout, stderr: os.Stderr, openers: openers}
	cli.Main(p.run)
}

// run executes one command line and returns the exit status.
func (p *program) run(ctx context.Context, argv []string) int {
	p.out, p.argv = bufio.NewWriterSize(p.stdout, 64<<10), argv
	var line commands
	spec := cli.Program{Name: "siftkv", Description: texts.Description, Helps: texts.Helps, Examples: texts.Examples,
		Details: texts.Details, Vars: kong.Vars{"version": cli.Version("siftkv")}, Stdout: p.stdout, Stderr: p.stderr}
	parsed, err := spec.Parse(ctx, argv, &line, p)
	switch {
	case errors.Is(err, cli.ErrUsage):
		p.JSON = slices.Contains(argv, "--json") // as far as such a command line can be read
		return p.fail(err)
	case err != nil:
		return p.fail(err)
	case parsed == nil:
		return statusOK
	}
	p.Globals = line.Globals
	err = parsed.Run()
	if ferr := p.out.Flush(); ferr != nil && !gone(ferr) {
		if errors.Is(err, errQuiet) {
			err = errDamage // the output has not said it
		}
		err = errors.Join(ferr, err)
	}
	return p.fail(err)
}

func usagef(format string, args ...any) error { return cli.Usagef(format, args...) }

// statusOf returns the exit status that belongs to an error; nil is statusOK.
func statusOf(err error) int {
	switch {
	case err == nil:
		return statusOK
	case errors.Is(err, context.Canceled):
		return statusInterrupted
	case errors.Is(err, cli.ErrUsage), errors.Is(err, kv.ErrInvalidOptions), errors.Is(err, kv.ErrTooLarge),
		errors.Is(err, objects.ErrInvalidName):
		return statusUsage
	case errors.Is(err, kv.ErrNotFound):
		return statusNotFound
	case errors.Is(err, errDamage), errors.Is(err, kv.ErrCorruption):
		return statusDamage
	case gone(err):
		return statusOK
	}
	return statusError
}

// gone reports whether a write failed because the reader is gone. A command with a
// verdict gives it all the same.
func gone(err error) bool { return errors.Is(err, syscall.EPIPE) }

// A failure is an error in JSON.
type failure struct {
	Error  string `json:"error"`
	Status int    `json:"status"` // the exit status
}

// fail prints an error, if there is one, in one line and returns the exit status.
func (p *program) fail(err error) int {
	status := statusOf(err)
	if status == statusOK || errors.Is(err, errQuiet) {
		return status
	}
	text := "interrupted"
	if status != statusInterrupted {
		text = strings.TrimPrefix(cli.Redact(cli.Text(err), p.argv), "siftkv: ")
	}
	if p.JSON {
		_ = encodeJSON(p.stderr, failure{text, status}, "")
	} else {
		_, _ = fmt.Fprintf(p.stderr, "siftkv: %s\n", keytext.Escaped(text))
	}
	return status
}
