// Package work keeps what an import has done so far: sorted files, and a file beside them that says which of them are
// finished, so that a second run goes on where the first one stopped, whatever stopped it.
package work

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/siftkv/siftkv/cmd/siftimport/internal/source"
)

// The file of the state has a JSON object in each line: the Header, then an entry for each file in the order of keys,
// and marks. It is only appended to; a last line that a crash has cut counts as not written.
const (
	stateName = "state"
	lockName  = "lock"
	format    = 1
)

// A Header says what the files are made of. A run with another one starts again.
type Header struct {
	Format   int       `json:"siftimport"`
	Source   string    `json:"source"`   // its kind and path
	Contents string    `json:"contents"` // a digest of the names, sizes and times of its files
	Settings string    `json:"settings"` // of the files that are written
	Started  time.Time `json:"started"`  // values that had expired then are left out
}

// A File is a sorted file that is on stable storage.
type File struct {
	Name    string `json:"file"`
	Last    []byte `json:"last"` // its last key
	Entries int64  `json:"entries"`
	Bytes   int64  `json:"bytes"` // of keys and values
	Size    int64  `json:"size"`  // of the file
}

// A Stage is what an import has come to.
type Stage string

// The stages after all files are finished.
const (
	Ingesting Stage = "ingesting" // the store has all files, or none
	Ingested  Stage = "ingested"
)

// line is a line of the state after the header.
type line struct {
	*File
	Stage Stage `json:"stage,omitempty"`
}

// A Dir is the directory of an import. It is used by one goroutine at a time.
type Dir struct {
	Path   string
	Header Header
	Files  []File // finished
	Stage  Stage

	lock  io.Closer
	state *os.File
}

// Open opens or makes the directory for an import that h describes; Started of what is there stays. Again says why a
// directory with the files of another import was emptied; "" if it was not.
func Open(path string, h Header) (d *Dir, again string, err error) {
	h.Format = format
	d = &Dir{Path: path, Header: h}
	if err := d.claim(); err != nil {
		return nil, "", err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, d.Close())
		}
	}()
	end, err := d.load()
	if err != nil {
		return d, "", err
	}
	if again = d.differs(h); end == 0 || again != "" {
		d.Header, d.Files, d.Stage = h, nil, ""
		end = 0
	}
	if err := d.removeOthers(); err != nil {
		return d, "", err
	}
	return d, again, d.write(end)
}

// claim makes the directory, or makes sure that the one there is siftimport's, and locks it.
func (d *Dir) claim() (err error) {
	if err := os.MkdirAll(d.Path, 0o700); err != nil {
		return err
	}
	entries, err := os.ReadDir(d.Path)
	if err != nil {
		return err
	}
	ours := len(entries) == 0
	for _, e := range entries {
		ours = ours || e.Name() == lockName
	}
	if !ours {
		return fmt.Errorf("%s is there, and no work directory of siftimport", d.Path)
	}
	d.lock, err = source.LockAlone(filepath.Join(d.Path, lockName))
	return err
}

// load reads the state, and returns the length of what can be read of it; 0 if there is none.
func (d *Dir) load() (end int64, err error) {
	f, err := os.Open(filepath.Join(d.Path, stateName))
	if errors.Is(err, fs.ErrNotExist) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	defer func() { _ = f.Close() }()
	r := bufio.NewReader(f)
	for n := 0; ; n++ {
		text, err := r.ReadBytes('\n')
		if err != nil {
			if errors.Is(err, io.EOF) {
				err = nil
			}
			return end, err
		}
		if !d.parse(text, n == 0) {
			return end, nil
		}
		end += int64(len(text))
	}
}

// parse takes a line of the state, and reports whether it is one whose file is there.
func (d *Dir) parse(text []byte, first bool) bool {
	if first {
		d.Header = Header{}
		return json.Unmarshal(text, &d.Header) == nil
	}
	var l line
	if json.Unmarshal(text, &l) != nil || (l.File == nil) == (l.Stage == "") {
		return false
	}
	if l.Stage != "" {
		d.Stage = l.Stage
		return true
	}
	info, err := os.Stat(filepath.Join(d.Path, filepath.Base(l.Name)))
	if err != nil || info.Size() != l.Size {
		return false
	}
	d.Files = append(d.Files, *l.File)
	return true
}

// differs says what was imported when it is something else than h; "" if nothing was, or the same.
func (d *Dir) differs(h Header) string {
	switch was := d.Header; {
	case was.Format != format || was.Source != h.Source:
		return "they are of another source"
	case was.Contents != h.Contents:
		return "the source has changed since"
	case was.Settings != h.Settings:
		return "they were written with other options"
	}
	return ""
}

// removeOthers removes the sorted files that are not finished, and scratch directories.
func (d *Dir) removeOthers() error {
	keep := map[string]bool{stateName: true, lockName: true}
	for _, f := range d.Files {
		keep[f.Name] = true
	}
	entries, err := os.ReadDir(d.Path)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if keep[e.Name()] {
			continue
		}
		if !strings.HasSuffix(e.Name(), suffix) && e.Name() != scratchName {
			return fmt.Errorf("%s is no file of siftimport's", filepath.Join(d.Path, e.Name()))
		}
		if err := os.RemoveAll(filepath.Join(d.Path, e.Name())); err != nil {
			return err
		}
	}
	return nil
}

// write opens the state for what is appended after end; with end 0 it begins anew.
func (d *Dir) write(end int64) (err error) {
	d.state, err = os.OpenFile(filepath.Join(d.Path, stateName), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	if err := d.state.Truncate(end); err != nil {
		return err
	}
	if _, err := d.state.Seek(end, io.SeekStart); err != nil {
		return err
	}
	if end > 0 {
		return nil
	}
	return d.append(d.Header)
}

// append writes a line, which is on stable storage then.
func (d *Dir) append(v any) error {
	text, err := json.Marshal(v)
	if err != nil {
		return err
	}
	if _, err := d.state.Write(append(text, '\n')); err != nil {
		return err
	}
	if err := d.state.Sync(); err != nil {
		return err
	}
	return SyncDir(d.Path)
}

// Add enters a file, whose bytes are on stable storage, with a last key beyond all others.
func (d *Dir) Add(f File) error {
	if err := d.append(line{File: &f}); err != nil {
		return err
	}
	d.Files = append(d.Files, f)
	return nil
}

// Reach enters a stage.
func (d *Dir) Reach(s Stage) error {
	d.Stage = s
	return d.append(line{Stage: s})
}

// Close leaves everything for the next run.
func (d *Dir) Close() error {
	var err error
	if d.state != nil {
		err = d.state.Close()
	}
	return errors.Join(err, os.RemoveAll(filepath.Join(d.Path, scratchName)), d.lock.Close())
}

// Remove removes everything: the import is over.
func (d *Dir) Remove() error { return errors.Join(d.Close(), os.RemoveAll(d.Path)) }
