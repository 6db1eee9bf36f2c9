package remote

import (
	"context"
	"errors"
	"time"

	"github.com/siftkv/siftkv/internal/base"
	"github.com/siftkv/siftkv/internal/objectdir"
	"github.com/siftkv/siftkv/internal/sequence"
)

// Consumers of a slot on other machines have a sequence of entries: each consumer puts a fence, which ends the rights
// of those before, and then an entry for each acknowledgement. The body of an entry is what the slot's file would be.

// positions are the entries of a slot.
type positions struct {
	f    *FS
	slot string
	seq  *sequence.Sequence // nil: it is not known where the branch is
	w    *sequence.Writer   // nil: nothing was claimed
	puts int
	told uint64 // the newest entry that a caller of Newest has taken
}

// Positions implements objectdir.Directory.
func (f *FS) Positions(slot string) objectdir.Positions { return &positions{f: f, slot: slot} }

// entries returns the sequence, and a context that ends with ctx, with the span, and with the FS.
func (p *positions) entries(ctx context.Context) (context.Context, func(), error) {
	if p.seq == nil {
		p.f.mu.Lock()
		seq, prefix := p.f.seq, p.f.prefix
		p.f.mu.Unlock()
		if seq == nil || seq.Store() == 0 {
			return nil, nil, base.ErrNotExist
		}
		p.seq = sequence.New(p.f.o.Objects, prefix.Positions(p.slot), sequence.Options{Patience: p.f.o.Patience})
		p.seq.Adopt(seq.Store())
	}
	asked, end := p.f.asked()
	asked, cancel := context.WithCancel(asked)
	stop := context.AfterFunc(ctx, cancel)
	return asked, func() { stop(); cancel(); end() }, nil
}

// Claim implements objectdir.Positions. It is a LIST, and in addition that of Fence unless there is nothing.
func (p *positions) Claim(ctx context.Context, always bool) (newest string, err error) {
	ctx, end, err := p.entries(ctx)
	if err != nil {
		return "", err
	}
	defer end()
	var damaged error
	err = p.seq.Retry(func() error {
		v, err := p.seq.Tail(ctx)
		if err != nil || v.Last == 0 && !always {
			return err
		}
		w, err := p.seq.Fence(ctx, v, func(ctx context.Context) error {
			newest, damaged = "", nil
			if v.Data == 0 {
				return nil
			}
			e, err := p.seq.Data(ctx, v, v.Data)
			if newest = string(e.Body); errors.Is(err, base.ErrCorruption) {
				damaged, err = err, nil
			}
			return err
		})
		if err == nil {
			p.w = w
		}
		return err
	})
	return newest, errors.Join(err, damaged)
}

const (
	// putsPerTrim is how many positions are put before older ones are deleted. The first put of a claim deletes too.
	putsPerTrim = 64
	// listingLag is how long an entry stays after the next: longer than any listing lags.
	listingLag = time.Minute
)

// Put implements objectdir.Positions. It is one PUT, and now and then a LIST and DELETEs.
func (p *positions) Put(ctx context.Context, text string) error {
	if p.w == nil {
		return nil
	}
	ctx, end, err := p.entries(ctx)
	if err != nil {
		return err
	}
	defer end()
	slot, err := p.w.Put(ctx, func(uint64) []byte { return []byte(text) })
	if err != nil {
		return err
	}
	if p.puts++; p.puts%putsPerTrim == 1 {
		if _, err := p.seq.Trim(ctx, slot, slot, p.f.now().Add(-listingLag)); err != nil {
			p.f.o.Log.Debug("acknowledgements that are not needed stay for now", "slot", p.slot, "error", err)
		}
	}
	return nil
}

// Newest implements objectdir.Positions. It is a LIST, and a GET if there is news.
func (p *positions) Newest(ctx context.Context, take func(text string) error) error {
	ctx, end, err := p.entries(ctx)
	if err != nil {
		return err
	}
	defer end()
	var newest sequence.Entry
	err = p.seq.Retry(func() error {
		v, err := p.seq.Tail(ctx)
		if err == nil && v.Data > p.told {
			newest, err = p.seq.Data(ctx, v, v.Data)
		}
		return err
	})
	if err != nil || newest.Slot == 0 {
		return err
	}
	if err = take(string(newest.Body)); err == nil {
		p.told = newest.Slot
	}
	return err
}
