// Command pictures makes the pictures of the documents, as SVG, into the directory that it is given:
//
//	go run ./docs/pictures docs/pictures
//
// A picture is a function that draws boxes, text and lines at coordinates of its own. A test fails when a file in the
// tree differs from what the program makes.
package main

import (
	"fmt"
	"os"
	"path/filepath"
)

// pictures has all of them, by the names of their files.
var pictures = map[string]func() *canvas{
	"blocks.svg":     blocks,
	"branches.svg":   branches,
	"compaction.svg": compaction,
	"laboratory.svg": laboratory,
	"layers.svg":     layers,
	"lookup.svg":     lookup,
	"rates.svg":      rates,
	"reads.svg":      reads,
	"recovery.svg":   recovery,
	"references.svg": references,
	"sequence.svg":   sequence,
}

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: pictures DIR")
		os.Exit(2)
	}
	for name, draw := range pictures {
		if err := os.WriteFile(filepath.Join(os.Args[1], name), draw().svg(), 0o644); err != nil {
			fmt.Fprintln(os.Stderr, "pictures:", err)
			os.Exit(1)
		}
	}
}
