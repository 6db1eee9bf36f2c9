package main

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"time"

	"golang.org/x/term"

	"github.com/siftkv/siftkv/cmd/siftimport/internal/compare"
	"github.com/siftkv/siftkv/internal/cli"
	"github.com/siftkv/siftkv/internal/cli/progress"
)

// A result is what a run has to say.
type result struct {
	Source, Dest *compare.Side // nil: not compared

	Reading, Ingesting, Verifying float64 // seconds of this run
	Notes                         []string
}

// print prints the result.
func (im *importer) print() error {
	r := &im.result
	var keys, bytes int64
	for _, f := range im.dir.Files {
		keys, bytes = keys+f.Entries, bytes+f.Bytes
	}
	out := cli.Output(im.program.stdout)
	if im.JSON {
		o := map[string]any{"source": string(im.Source), "dest": string(im.Dest), "keys": keys, "bytes": bytes,
			"files": len(im.dir.Files), "reading_seconds": r.Reading, "ingesting_seconds": r.Ingesting,
			"verifying_seconds": r.Verifying, "verified": r.Source != nil, "notes": append([]string{}, r.Notes...)}
		if r.Source != nil {
			o["hash"] = fmt.Sprintf("%016x", r.Source.Digest)
		}
		text, err := json.Marshal(o)
		if err == nil {
			_, err = fmt.Fprintf(out, "%s\n", text)
		}
		return err
	}
	text := fmt.Sprintf("%s: %d keys, %d bytes of keys and values, in %d files, from %s\n", im.Dest, keys, bytes,
		len(im.dir.Files), im.Source)
	if len(r.Notes) > 0 {
		text += "note: " + strings.Join(r.Notes, "\nnote: ") + "\n"
	}
	text += fmt.Sprintf("read in %.1f s, ingested in %.1f s", r.Reading, r.Ingesting)
	if r.Source == nil {
		text += "; not verified\n"
	} else {
		text += fmt.Sprintf(", compared in %.1f s: %d keys, digest %016x on both sides\n", r.Verifying, r.Dest.Keys,
			r.Dest.Digest)
	}
	_, err := fmt.Fprint(out, text)
	return err
}

// A meter shows how far a pass over the source has come, in MiB of what it takes on disk.
type meter struct {
	im    *importer
	phase *progress.Phase
	total int64
	shown int64     // MiB
	next  time.Time // when to look again

}

func (im *importer) meter(name string) *meter {
	total := im.store.Size()
	return &meter{im: im, phase: im.report.Start(name, max(int(total>>20), 1), "MiB"), total: total}
}

// begin has the pass begin after a key.
func (m *meter) begin(key []byte) { m.at(key) }

// show says that the pass has come to a key. It does so a few times a second, however often it is called.
func (m *meter) show(key []byte) {
	now := time.Now()
	if now.Before(m.next) {
		return
	}
	m.next = now.Add(200 * time.Millisecond)
	m.at(key)
}

func (m *meter) at(key []byte) {
	done := min(m.im.store.Before(key), m.total) >> 20
	if done > m.shown {
		m.phase.Add(int(done - m.shown))
		m.shown = done
	}
}

// end says that the pass is done.
func (m *meter) end() { m.phase.Done() }

// stop takes the bar away. Where there is none, nothing is said of a pass that was broken off.
func (m *meter) stop() {
	if f, ok := m.im.program.stderr.(*os.File); ok && term.IsTerminal(int(f.Fd())) {
		m.phase.Done()
	}
}
