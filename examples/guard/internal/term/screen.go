// Package term shows in a terminal what the service and its visitors see: a table
// that is drawn anew in its place, and at the end a summary. Where the output is no
// terminal it writes a line for each sample.
package term

import (
	"fmt"
	"io"
	"os"
	"strings"

	"golang.org/x/term"
)

// A screen is what is written to. It is used by one goroutine.
type screen struct {
	out   io.Writer
	live  bool // it is a terminal
	color bool
	drawn int // lines that the next picture replaces
}

// newScreen finds out what a writer is. NO_COLOR in the environment turns colours off
// (no-color.org).
func newScreen(out io.Writer) *screen {
	s := &screen{out: out}
	if f, ok := out.(*os.File); ok {
		s.live = term.IsTerminal(int(f.Fd()))
	}
	s.color = s.live && os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb"
	return s
}

// draw puts a picture in the place of the one before.
func (s *screen) draw(picture string) {
	erase := ""
	if s.drawn > 0 {
		erase = fmt.Sprintf("\x1b[%dA\x1b[J", s.drawn) // up, and clear what is below
	}
	s.print(erase + picture)
	s.drawn = strings.Count(picture, "\n")
}

// print writes text that stays.
func (s *screen) print(text string) {
	s.drawn = 0
	_, _ = io.WriteString(s.out, text) // nobody is there to be told that nobody looks
}

// red shows that something is wrong. What it says must be said by the words too.
func (s *screen) red(text string) string {
	if !s.color {
		return text
	}
	return "\x1b[1;31m" + text + "\x1b[0m"
}
