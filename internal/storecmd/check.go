package storecmd

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"

	"github.com/siftkv/siftkv/internal/doctor"
	"github.com/siftkv/siftkv/internal/doctor/repair"
	"github.com/siftkv/siftkv/internal/objectdir"
	"github.com/siftkv/siftkv/internal/survey"
	"github.com/siftkv/siftkv/kv"
)

type verifyCommand struct{ Dir }

// Run prints a line per file and one per damaged place, which is exit status 4. A file that cannot be read, or that a
// newer release wrote, does not keep it from the others.
func (c *verifyCommand) Run(ctx context.Context, p *program) error {
	s, err := p.verify(ctx, c.Dir.Dir)
	if err != nil {
		if s != nil && ctx.Err() == nil {
			v := s.Verdict()
			v.OK = false // not all was looked at
			err = errors.Join(err, p.report(v))
		}
		return err
	}
	if err := p.report(s.Verdict()); err != nil && !gone(err) || len(s.Damage) == 0 {
		return err
	}
	repair := fmt.Sprintf("siftkv repair %s --dry-run", c.Dir.Dir)
	if c.Dir.Dir.remote() {
		repair = "siftkv repair --out DIR, with this URL"
	}
	return fmt.Errorf("%w: %d places; run: %s", errDamage, len(s.Damage), repair)
}

func (p *program) verify(ctx context.Context, l Location) (*survey.Store, error) {
	step, end := p.progress()
	defer end()
	o := survey.Options{Progress: step, ReadOn: true, BesideWriter: true}
	if !l.remote() {
		return doctor.Verify(ctx, string(l), o)
	}
	return p.surveyObjects(ctx, l, func(ctx context.Context, dir string, o survey.Options) (*survey.Store, error) {
		return survey.Verify(ctx, dir, o, func() error {
			return (&Dir{l}).with(ctx, p, &kv.Options{ReadOnly: true, CacheSize: -1}, false,
				func(*kv.DB) error { return nil })
		})
	}, o)
}

// surveyObjects has a survey taken of a store in an object store, as it is at one moment.
func (p *program) surveyObjects(ctx context.Context, l Location,
	take func(context.Context, string, survey.Options) (*survey.Store, error),
	o survey.Options) (s *survey.Store, err error) {
	f, err := p.freeze(ctx, l)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	if f.current == nil {
		return nil, fmt.Errorf("%w in %s", kv.ErrNotExist, l)
	}
	o.FS = f
	if s, err = take(ctx, objectdir.Root, o); s != nil {
		s.Dir = string(l.name())
	}
	if err != nil {
		return s, fmt.Errorf("%w (objects: %s)", err, l)
	}
	return s, f.outlived(s.Damage)
}

type repairCommand struct {
	Dir
	DryRun bool     `help:"Say what would be done and lost, and change nothing."`
	Out    Location `placeholder:"DIR" help:"${out}"`
	Lost   string   `placeholder:"FILE" help:"${lost}"`
}

// Run repairs and reports; something that was certainly lost is exit status 4.
func (c *repairCommand) Run(ctx context.Context, p *program) error {
	if err := c.Out.onDisk("repair into a directory, and copy that with siftkv copy"); err != nil {
		return err
	}
	dir, o := string(c.Dir.Dir), repair.Options{DryRun: c.DryRun, Out: string(c.Out)}
	if c.Dir.Dir.remote() {
		if c.Out == "" && !c.DryRun {
			return usagef("%s is an object store, where nothing is repaired in place: repair into a directory with "+
				"--out DIR, and copy that to an empty object store with siftkv copy", c.Dir.Dir)
		}
		f, err := p.freeze(ctx, c.Dir.Dir)
		if err != nil {
			return err
		}
		defer func() { _ = f.Close() }() // it was read only
		dir, o.From = objectdir.Root, f
	}
	list := lostList{name: c.Lost}
	if c.Lost != "" {
		o.LostValue = list.add
	}
	step, end := p.progress()
	o.Progress = step
	r, err := repair.Run(ctx, dir, o)
	end()
	err = errors.Join(err, list.close())
	if r == nil {
		return err
	}
	if c.Dir.Dir.remote() {
		r.Dir = c.Dir.Dir.name()
	}
	printed := p.report(r)
	if err == nil && (printed == nil || gone(printed)) && r.LostForSure() {
		return errors.Join(errDamage, errQuiet)
	}
	return errors.Join(err, printed)
}

// A lostList writes the values that a repair has lost to a file, which is made for the first.
type lostList struct {
	name string
	file *os.File
	out  *bufio.Writer
}

func (l *lostList) add(v repair.LostValue) (err error) {
	if l.file == nil {
		if l.file, err = os.OpenFile(l.name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600); err != nil {
			return err
		}
		l.out = bufio.NewWriter(l.file)
	}
	return json.NewEncoder(l.out).Encode(v)
}

func (l *lostList) close() error {
	if l.file == nil {
		return nil
	}
	return errors.Join(l.out.Flush(), l.file.Close())
}
