package stress

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/siftkv/siftkv/internal/doctor"
	"github.com/siftkv/siftkv/internal/doctor/repair"
	"github.com/siftkv/siftkv/internal/survey"
	"github.com/siftkv/siftkv/kv"
)

// A copied store is what an opening is about to find, on the operating system's disk, for
// the doctor to look at.
type copied struct {
	dir    string // empty: there is none
	survey *survey.Store
	report *repair.Report
}

func (c *copied) remove() {
	if c.dir != "" {
		_ = os.RemoveAll(c.dir)
	}
	*c = copied{}
}

func (c *copied) original() string { return filepath.Join(c.dir, "store") }
func (c *copied) repaired() string { return filepath.Join(c.dir, "repaired") }

// copy copies the store before it is opened, verifies the copy and repairs it into another
// directory.
func (r *round) copy(attempt int) *Finding {
	r.copied.remove()
	if attempt > 0 || !r.doctor || r.number == 0 {
		return nil
	}
	dir, err := os.MkdirTemp("", "siftkv-stress-")
	if err != nil {
		return found("harness", "%v", err)
	}
	r.copied.dir = dir
	if err = os.Mkdir(r.copied.original(), 0o700); err == nil {
		err = r.disk.Export(storeDir, r.copied.original())
	}
	if errors.Is(err, fs.ErrNotExist) {
		r.copied.remove() // the power was cut before the directory's name was durable
		return nil
	}
	if err != nil {
		return found("harness", "%v", err)
	}
	r.copied.survey, err = doctor.Verify(context.Background(), r.copied.original(), survey.Options{})
	if err == nil {
		r.copied.report, err = repair.Run(context.Background(), r.copied.original(),
			repair.Options{Out: r.copied.repaired()})
	}
	if errors.Is(err, kv.ErrNotExist) {
		r.copied.remove() // the first opening did not get far
		return nil
	}
	if err != nil {
		return found("repair fails", "after %s: %v", r.lastEnd, err)
	}
	r.counts.repairs++
	return nil
}

// compareRepaired holds the repaired copy against what the store was found to have. A store
// that lost nothing when it was opened was healthy, and so the copy has all of it.
func (r *round) compareRepaired(want content) *Finding {
	defer r.copied.remove()
	if r.copied.dir == "" || r.db.Metrics().RecoveryDrops > 0 {
		return nil
	}
	what := "after " + r.lastEnd
	if len(r.copied.survey.Damage) > 0 {
		return found("healthy and damaged", "%s: a healthy store is found to be damaged: %v", what,
			r.copied.survey.Damage)
	}
	db, err := kv.Open(r.copied.repaired(),
		&kv.Options{ReadOnly: true, Clock: r.oracle.clock.time, Merger: kv.Append(operandSeparator)})
	if err != nil {
		return found("repair loses", "%s: the repaired copy of a healthy store does not open: %v", what, err)
	}
	got, err := readAll(db, "", false)
	if err = errors.Join(err, db.Close()); err != nil {
		return found("repair loses", "%s: the repaired copy of a healthy store cannot be read: %v", what, err)
	}
	if diff := difference(want, got); diff != "" {
		return found("repair loses", "%s: the repaired copy of a healthy store differs: %s\nthe repair: %s", what,
			diff, describeRepair(r.copied.report))
	}
	return r.swap(r.copied.repaired(), want)
}

func describeRepair(r *repair.Report) string {
	var b strings.Builder
	for _, f := range r.Files {
		fmt.Fprintf(&b, "%s %s (%s); ", f.Name, f.Action, f.Why)
	}
	for _, l := range r.Lost {
		fmt.Fprintf(&b, "lost of %s: %s, %.500s; ", l.File, l.What, fmt.Sprintf("%+v", l.Values))
	}
	return b.String()
}
