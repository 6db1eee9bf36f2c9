package storecmd

import (
	"context"
	"errors"
	"fmt"
	"io"
	"syscall"

	"github.com/siftkv/siftkv/internal/backup"
	"github.com/siftkv/siftkv/internal/cli"
	"github.com/siftkv/siftkv/internal/keytext"
	"github.com/siftkv/siftkv/kv"
)

type backupCommand struct {
	Store  Location `arg:"" optional:"" name:"dir" help:"${store}"`
	Out    string   `arg:"" optional:"" help:"File of the backup, which must not be there; - is standard output."`
	Since  cli.File `placeholder:"MARK" help:"${since}"`
	Mark   string   `placeholder:"FILE" help:"${mark}"`
	Force  bool     `help:"${force}"`
	Verify cli.File `placeholder:"FILE" help:"${verify}"`
}

func (c *backupCommand) Run(ctx context.Context, p *program) error {
	if c.Verify != "" {
		return c.verify(ctx, p)
	}
	if c.Store == "" || c.Out == "" {
		return usagef("backup wants a store and a file: siftkv backup DIR OUT, or siftkv backup --verify FILE; " +
			"see siftkv backup --help")
	}
	if err := Location(c.Out).onDisk("a backup goes to a file or a pipe; siftkv copy copies a store"); err != nil {
		return err
	}
	since, err := readMark(string(c.Since))
	if err != nil {
		return err
	}
	if err := c.checkOutputs(); err != nil {
		return err
	}
	do := func(db *kv.DB) error { return c.backUp(ctx, p, db, since) }
	return (&Dir{c.Store}).writeOrRead(ctx, p, do, do)
}

func (c *backupCommand) backUp(ctx context.Context, p *program, db *kv.DB, since kv.BackupMark) error {
	out, err := c.create(p)
	if err != nil {
		return err
	}
	_, total := size(db)
	if !since.IsZero() {
		total = 0 // it is not known yet what came since
	}
	m := p.meter("backup", total)
	mark, err := db.Backup(ctx, io.MultiWriter(out, m), since)
	m.end()
	return c.settle(p, out, since, mark, m.bytes, err)
}

// verify checks a stream, and saves its mark if asked to.
func (c *backupCommand) verify(ctx context.Context, p *program) error {
	switch {
	case c.Store != "" || c.Since != "":
		return usagef("--verify makes no backup: it goes without a store and --since")
	case c.Mark != "":
		if err := c.checkMark(c.Mark); err != nil {
			return err
		}
	}
	in, err := p.openStreams(ctx, string(c.Verify), "verify")
	if err != nil {
		return err
	}
	defer in.close()
	h, started := in.header()
	mark, err := kv.VerifyBackup(in)
	switch {
	case errors.Is(err, io.ErrUnexpectedEOF):
		return fmt.Errorf("%w: %s: %w", errDamage, in.name, err)
	case err != nil:
		return fmt.Errorf("%w (in %s)", err, in.name)
	case in.more():
		return fmt.Errorf("%w: %s goes on after the end of the backup, at offset %d", errDamage, in.name, in.pos())
	case c.Mark != "":
		if err := writeMark(c.Mark, mark); err != nil {
			return err
		}
	}
	in.close()
	b := describeBackup(in.name, mark, in.pos())
	if started {
		b.Since = backupID(h.Parent)
	}
	b.Mark, b.Whole = keytext.Name(c.Mark), true
	return b.print(p, p.out)
}

// settle gives the stream and its mark their names, and prints them, after a backup that
// ended with err.
func (c *backupCommand) settle(p *program, out *outFile, since, mark kv.BackupMark, bytes int64, err error) error {
	if errors.Is(err, syscall.EPIPE) { // elsewhere that is no error
		// it must not match what it is made of
		err = fmt.Errorf("the reader of the backup has gone: %v", err) //nolint:errorlint // on purpose
	}
	b := describeBackup(c.Out, mark, bytes)
	parent := parse(since)
	b.Since, b.Whole = backupID(parent.BackupID), err == nil
	useful := b.id != 0 && b.id != parent.BackupID
	name, endErr := out.end(err == nil, useful)
	if endErr != nil { // the file's content is unknown: no mark is better than a wrong one
		return errors.Join(err, endErr)
	}
	markName := c.Mark
	if markName == "" && out.f != nil {
		markName = name + markSuffix
	}
	b.Backup, b.Mark = keytext.Name(name), keytext.Name(markName)
	if markName != "" && b.id != 0 && (useful || c.Mark != "") {
		if markErr := writeMark(markName, mark); markErr != nil {
			return errors.Join(err, fmt.Errorf(
				"the mark could not be saved (siftkv backup --verify makes it again from a whole backup): %w", markErr))
		}
	}
	if err != nil && !useful {
		return err
	}
	to := io.Writer(p.out)
	if out.f == nil {
		to = p.stderr // the stream is where results go otherwise
	}
	return errors.Join(err, b.print(p, to))
}

type backupItem struct {
	Backup  keytext.Name `json:"backup"` // its file; "-": a standard stream
	ID      string       `json:"id"`
	Store   string       `json:"store_id"`
	Since   string       `json:"since,omitempty"` // id of the backup that it goes on from
	Bytes   int64        `json:"bytes"`           // of the stream
	Files   int          `json:"files"`           // of the store, in this stream and those that it goes on from
	LastSeq uint64       `json:"last_seq"`
	Whole   bool         `json:"whole"`
	Offset  int64        `json:"offset"` // in the stream: everything before it counts
	Mark    keytext.Name `json:"mark,omitempty"`

	id uint64
}

func describeBackup(name string, mark kv.BackupMark, bytes int64) *backupItem {
	m := parse(mark)
	return &backupItem{
		Backup: keytext.Name(name), ID: backupID(m.BackupID), Store: backupID(m.StoreID), id: m.BackupID,
		Bytes: bytes, Files: len(m.Files()), LastSeq: uint64(m.LastSeq), Offset: m.Offset,
	}
}

// parse opens a mark up.
func parse(mark kv.BackupMark) *backup.Mark {
	b, err := mark.MarshalBinary()
	if err != nil || len(b) == 0 {
		return &backup.Mark{}
	}
	m, err := backup.DecodeMark(b)
	if err != nil {
		return &backup.Mark{}
	}
	return m
}

// backupID is the text of an id; zero has none.
func backupID(id uint64) string {
	if id == 0 {
		return ""
	}
	return fmt.Sprintf("%016x", id)
}

func (b *backupItem) print(p *program, w io.Writer) error {
	if p.JSON {
		return encodeJSON(w, b, "")
	}
	kind := "full backup"
	if b.Since != "" {
		kind = "what came since backup " + b.Since
	}
	line := fmt.Sprintf("%s: backup %s of store %s: %s, %d bytes; %d files, sequence number %d\n", b.Backup, b.ID,
		b.Store, kind, b.Bytes, b.Files, b.LastSeq)
	if !b.Whole {
		line = fmt.Sprintf("%s: backup %s of store %s broke off; everything before offset %d counts: keep it\n",
			b.Backup, b.ID, b.Store, b.Offset)
	}
	if b.Mark != "" {
		line += fmt.Sprintf("mark for the next backup: --since %s\n", b.Mark)
	}
	if !b.Whole && b.Mark != "" {
		line += "restore takes both, in order\n"
	}
	_, err := io.WriteString(w, line)
	return err
}
