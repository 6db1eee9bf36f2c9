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

	"github.com/siftkv/siftkv/internal/cli"
)

func main() {
	p := program{stdin: os.Stdin, stdout: os.Stdout, stderr: os.Stderr}
	cli.Main(p.run)
}
