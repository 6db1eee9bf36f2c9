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
	"os"
	"os/signal"
	"syscall"

	"github.com/siftkv/siftkv/internal/cli"
)

func main() {
	// A reader that has seen enough closes the pipe: that is an error of a write, and
	// no reason to die in the middle of something.
	signal.Ignore(syscall.SIGPIPE)
	p := program{stdin: os.Stdin, stdout: os.Stdout, stderr: os.Stderr}
	cli.Main(p.run)
}
