package storecmd

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/siftkv/siftkv/internal/backup"
	"github.com/siftkv/siftkv/internal/cli"
	"github.com/siftkv/siftkv/internal/keytext"
	"github.com/siftkv/siftkv/internal/manifest"
	"github.com/siftkv/siftkv/internal/objectdir"
	"github.com/siftkv/siftkv/internal/vfs"
	"github.com/siftkv/siftkv/kv"
)

type restoreCommand struct {
	Dir
	From   cli.Files `arg:"" help:"${from}"`
	Verify bool      `help:"Check every byte of the restored store."`
}

func (c *restoreCommand) Run(ctx context.Context, p *program) error {
	r := &restoring{ctx: ctx, p: p, dir: c.Dir.Dir,
		answer: restoreItem{Restored: c.Dir.Dir.name(), Streams: []streamItem{}}}
	end, err := r.begin()
	if err != nil {
		return err
	}
	defer end()
	for _, name := range c.From {
		if err = r.input(name); err != nil {
			break
		}
	}
	if err == nil {
		err = r.ended()
	}
	if err == nil && c.Verify {
		err = c.verify(ctx, p, &r.answer)
	}
	r.answer.print(p)
	return errors.Join(err, p.printed())
}

// verify checks the store as siftkv verify does.
func (c *restoreCommand) verify(ctx context.Context, p *program, answer *restoreItem) error {
	s, err := p.verify(ctx, c.Dir.Dir)
	if err != nil {
		return err
	}
	ok := len(s.Damage) == 0
	answer.Verified = &ok
	if !ok {
		return fmt.Errorf("%w: %d places, the first in %s; run: siftkv verify %s", errDamage, len(s.Damage),
			s.Damage[0], c.Dir.Dir)
	}
	return nil
}

// restoring is one run of the command. An interrupted command is run again unchanged: it
// skips the streams before the one that the directory has reached.
type restoring struct {
	ctx    context.Context
	p      *program
	dir    Location
	into   *kv.Options           // an object store; nil: the directory
	start  manifest.RestoreState // of the directory, before the run
	passed string                // the first stream that was skipped, until the reached one is found
	found  bool
	broken error  // a stream that broke off, which the next one may make good
	id     uint64 // its backup
	answer restoreItem
}

// begin finds out which backup the directory or the object store has reached.
func (r *restoring) begin() (end func(), err error) {
	if !r.dir.remote() {
		r.start, err = manifest.Restore(vfs.OS, string(r.dir))
		return func() {}, err
	}
	if err := r.dir.changes(); err != nil {
		return nil, err
	}
	objects, err := r.p.objects(r.ctx, r.dir, true)
	if err != nil {
		return nil, err
	}
	f, err := openDirectory(objects)
	if err == nil {
		r.start, err = backup.Published(f, objectdir.Root)
		err = errors.Join(err, f.Close())
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("%w (objects: %s)", err, r.dir), objects.Store.Close())
	}
	r.into = &kv.Options{Objects: objects}
	return func() { _ = objects.Store.Close() }, nil
}

// input restores all streams of a file.
func (r *restoring) input(name string) error {
	in, err := r.p.openStreams(r.ctx, name, "restore "+name)
	if err != nil {
		return err
	}
	defer in.close()
	for first := true; first || in.more(); first = false {
		if err := r.stream(in); err != nil {
			return err
		}
	}
	return nil
}

// ended returns an error if the last stream has not been restored.
func (r *restoring) ended() error {
	if r.broken == nil && r.passed != "" {
		r.answer.Streams = nil
		return fmt.Errorf("%w: %s has come to backup %016x, and %s does not go on from there", kv.ErrBackupMismatch,
			r.dir, r.at(), r.passed)
	}
	return r.broken
}

// at is the backup that the directory had reached before the run.
func (r *restoring) at() uint64 {
	if r.start.Doing != 0 {
		return r.start.Doing
	}
	return r.start.Done
}

// goesOn reports whether to restore a stream: it is the one that the directory has
// reached, or follows it. Once one was skipped, only the former counts: the others would
// be out of order.
func (r *restoring) goesOn(h backup.Header) bool {
	switch {
	case r.found || r.at() == 0 || h.BackupID == r.at():
		return true
	case r.passed != "":
		return false
	}
	return h.Parent == r.start.Done || h.Parent != 0 && h.Parent == r.start.Doing
}

func (r *restoring) stream(in *streams) error {
	h, started := in.header()
	if r.broken != nil && (!started || h.Parent != r.id) {
		return r.broken
	}
	it := streamItem{Input: keytext.Name(in.name), ID: backupID(h.BackupID), Since: backupID(h.Parent),
		Files: h.Files, Bytes: h.Bytes}
	if started && !r.goesOn(h) {
		if r.passed == "" {
			r.passed = in.name
		}
		it.PassedOver = true
		r.answer.Streams = append(r.answer.Streams, it)
		return passOver(in)
	}
	r.found, r.passed, r.broken = true, "", nil
	base := in.pos() // of the stream, in the input
	if !started && r.into == nil {
		state, err := manifest.Restore(vfs.OS, string(r.dir))
		if err != nil {
			return err
		}
		base -= state.Offset
		it.ID = backupID(state.Doing)
	}
	to := string(r.dir)
	if r.into != nil {
		to = ""
	}
	err := kv.Restore(r.ctx, in, to, r.into)
	var unfinished *kv.RestoreError
	switch {
	case errors.As(err, &unfinished):
		return r.unfinished(in, h, base, unfinished)
	case err != nil && r.into != nil:
		return fmt.Errorf("%w (%s; objects: %s)", err, in.name, r.dir)
	case err != nil:
		return fmt.Errorf("%w (%s)", err, in.name)
	}
	r.answer.Offset, r.answer.Hint = nil, ""
	r.answer.Streams = append(r.answer.Streams, it)
	return nil
}

// passOver reads to the end of a stream. One that broke off ends with its input.
func passOver(in *streams) error {
	_, err := kv.VerifyBackup(in)
	if err != nil && !errors.Is(err, io.ErrUnexpectedEOF) {
		return fmt.Errorf("%w (%s)", err, in.name)
	}
	return nil
}

// unfinished notes how to go on. A stream that breaks off is no error yet: a backup
// since its mark may come next.
func (r *restoring) unfinished(in *streams, h backup.Header, base int64, u *kv.RestoreError) error {
	r.answer.Offset = &u.Offset
	r.answer.Hint = "run the command again"
	if at := base + u.Offset; u.Offset > 0 && at > 0 && in.file != nil {
		r.answer.Hint += fmt.Sprintf(", or: tail -c +%d %s | siftkv restore %s -", at+1, in.name, r.dir)
	} else if u.Offset > 0 {
		r.answer.Hint += ", with the stream or with what follows its offset"
	}
	err := fmt.Errorf("the restore broke off at offset %d of the stream in %s: %w", u.Offset, in.name, u.Err)
	if errors.Is(u.Err, io.ErrUnexpectedEOF) && h.BackupID != 0 && r.into == nil {
		r.broken, r.id = err, h.BackupID
		return nil
	}
	return err
}

type restoreItem struct {
	Restored keytext.Name `json:"restored"` // the directory, or the URL without its parameters
	Streams  []streamItem `json:"streams"`
	// of the stream that was being restored; not there: nothing is unfinished
	Offset   *int64 `json:"unfinished_at,omitempty"`
	Hint     string `json:"hint,omitempty"`
	Verified *bool  `json:"verified,omitempty"`
}

// A streamItem is a stream that was read to its end.
type streamItem struct {
	Input      keytext.Name `json:"input"`
	ID         string       `json:"id"`
	Since      string       `json:"since,omitempty"`
	Files      uint64       `json:"files"`
	Bytes      int64        `json:"bytes"`
	PassedOver bool         `json:"passed_over,omitempty"` // the directory had it
}

func (r *restoreItem) print(p *program) {
	switch {
	case len(r.Streams) == 0 && r.Offset == nil:
		return // nothing was touched: the error says it all
	case p.JSON:
		p.indentJSON(r)
		return
	}
	for _, s := range r.Streams {
		what := "restored"
		if s.PassedOver {
			what = "was there"
		}
		p.printf("%s: backup %s %s: %d files, %d bytes\n", s.Input, s.ID, what, s.Files, s.Bytes)
	}
	switch {
	case r.Offset != nil:
		p.printf("%s: unfinished, at offset %d; %s\n", r.Restored, *r.Offset, r.Hint)
	case r.Verified != nil && *r.Verified:
		p.printf("%s: verified\n", r.Restored)
	}
}
