// Command siftkv looks into a store, changes it, checks it, and repairs it.
//
//	siftkv scan DIR --prefix user/
//	siftkv verify DIR
//	siftkv repair DIR --dry-run
//
// It is for a person, on a store that no other process is writing. Standard output
// carries results, standard error progress and errors.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	// After the first signal the default action is back: a second one ends the
	// process at once.
	context.AfterFunc(ctx, stop)
	// A reader that has seen enough closes the pipe: that is an error of a write, and
	// no reason to die in the middle of something.
	signal.Ignore(syscall.SIGPIPE)
	p := program{stdin: os.Stdin, stdout: os.Stdout, stderr: os.Stderr}
	os.Exit(p.run(ctx, os.Args))
}
