package manifest

import (
	"errors"
	"fmt"
	"io"

	"github.com/siftkv/siftkv/internal/base"
	"github.com/siftkv/siftkv/internal/vfs"
	"github.com/siftkv/siftkv/internal/wal"
)

// A Position is a place in the history of a store: after an edit of a manifest.
// Manifests are numbered in the order in which they are in force.
type Position struct {
	Manifest uint64
	Offset   int64 // in the manifest, after the edit
}

// Before reports whether p is earlier than q.
func (p Position) Before(q Position) bool {
	return p.Manifest < q.Manifest || p.Manifest == q.Manifest && p.Offset < q.Offset
}

// Position returns the position after the last edit.
func (l *Log) Position() Position { return Position{l.num, l.end} }

// A Tail reads a manifest that may grow meanwhile. It is not safe for concurrent use.
type Tail struct {
	f     vfs.ReadFile
	r     *wal.Reader
	name  string
	at    Position
	edits int
}

// OpenTail opens the manifest with this number.
func OpenTail(fs vfs.FS, dir string, num uint64) (*Tail, error) {
	name := Path(dir, FileManifest, num)
	f, err := fs.Open(name)
	if err != nil {
		return nil, err
	}
	return &Tail{f: f, r: wal.NewReader(f, name, num), name: name, at: Position{Manifest: num}}, nil
}

// Read calls apply with every edit that was not read before, in order. An edit that is not there as a whole was never
// acknowledged, and is left for later. Any other damage is an error.
func (t *Tail) Read(apply func(*Edit) error) error {
	if _, err := t.r.Follow(); err != nil {
		return err
	}
	for {
		record, err := t.r.Next()
		if errors.Is(err, io.EOF) || t.r.CrashExplains(err) {
			break
		}
		if err != nil {
			return err
		}
		e, err := DecodeEdit(record)
		if err == nil {
			err = apply(e)
		}
		if errors.Is(err, ErrNewerFormat) {
			return fmt.Errorf("%s: %w", t.name, err)
		}
		if err != nil {
			return &base.CorruptionError{File: t.name, Offset: -1, What: fmt.Sprintf("version edit %d", t.edits+1),
				Cause: err}
		}
		t.edits++
		t.at.Offset = t.r.End()
	}
	if t.edits == 0 {
		return &base.CorruptionError{File: t.name, Offset: 0, What: "the manifest describes no store"}
	}
	return nil
}

// Position returns the position after the last edit that was read.
func (t *Tail) Position() Position { return t.at }

// SyncedTo returns an offset: the manifest proves that the edits before it are durable.
func (t *Tail) SyncedTo() int64 { return t.r.SyncedTo() }

// Close closes the file.
func (t *Tail) Close() error { return t.f.Close() }
