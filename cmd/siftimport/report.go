package main

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"sync"
	"time"

	"golang.org/x/term"

	"github.com/siftkv/siftkv/cmd/siftimport/internal/compare"
	"github.com/siftkv/siftkv/cmd/siftimport/internal/source"
	"github.com/siftkv/siftkv/internal/cli"
	"github.com/siftkv/siftkv/internal/cli/progress"
)

type result struct {
	Source, Dest *compare.Side // nil: not compared

	Reading, Ingesting, Verifying float64 // seconds of this run
	Notes                         []string
}

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

// A meter shows how far a pass over the source has come, in MiB of what it takes on disk. Its methods may be called by
// several goroutines at once.
type meter struct {
	im    *importer
	phase *progress.Phase
	total int64

	mu     sync.Mutex
	places map[string]*place // by the end of their ranges
	done   int64             // bytes: of all places, and what was done before
	shown  int64             // MiB
}

// A place is how far a range has come.
type place struct {
	at   int64     // bytes before it
	next time.Time // when to look again
}

func (im *importer) meter(name string) *meter {
	total := im.store.Size()
	return &meter{im: im, phase: im.report.Start(name, max(int(total>>20), 1), "MiB"), total: total,
		places: map[string]*place{}}
}

func (m *meter) begin(key []byte) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.add(m.im.store.Before(key))
}

// show says that a range has been read up to a key, or to its end if that is nil. It looks at a key a few times a
// second, however often it is called.
func (m *meter) show(r source.Range, key []byte) {
	m.mu.Lock()
	defer m.mu.Unlock()
	p := m.places[string(r.To)]
	if p == nil {
		p = &place{}
		if r.From != nil {
			p.at = m.im.store.Before(r.From)
		}
		m.places[string(r.To)] = p
	}
	if key == nil {
		key = r.To
	} else if now := time.Now(); now.Before(p.next) {
		return
	} else {
		p.next = now.Add(200 * time.Millisecond)
	}
	if key == nil {
		return // end follows
	}
	if at := m.im.store.Before(key); at > p.at {
		m.add(at - p.at)
		p.at = at
	}
}

func (m *meter) add(n int64) {
	m.done += max(n, 0)
	if done := min(m.done, m.total) >> 20; done > m.shown {
		m.phase.Add(int(done - m.shown))
		m.shown = done
	}
}

func (m *meter) end() { m.phase.Done() }

// stop takes the bar away. Where there is none, nothing is said of a pass that was broken off.
func (m *meter) stop() {
	if f, ok := m.im.program.stderr.(*os.File); ok && term.IsTerminal(int(f.Fd())) {
		m.phase.Done()
	}
}
