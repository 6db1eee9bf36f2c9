package storecmd

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"time"

	"github.com/siftkv/siftkv/filterpolicy"
	"github.com/siftkv/siftkv/kv"
)

type demoCommand struct {
	Dir Location `arg:"" help:"Directory of the store, not there or empty."`
}

// Sizes of the store.
const (
	demoUsers    = 20_000
	demoPhotos   = 200
	demoSessions = 1_000
)

func (c *demoCommand) Run(ctx context.Context, p *program) error {
	if err := c.Dir.onDisk("a store to try things on is in a directory; siftkv copy copies it"); err != nil {
		return err
	}
	if entries, err := os.ReadDir(string(c.Dir)); err == nil && len(entries) > 0 {
		return usagef("%s is not empty", c.Dir)
	}
	filter, err := filterpolicy.Parse("blocked:10")
	if err != nil {
		return err
	}
	o := &kv.Options{Filter: filter, MemtableSize: 256 << 10, SeparateFrom: 4 << 10}
	return using(func(db *kv.DB) error {
		if err := fillDemo(ctx, db); err != nil {
			return err
		}
		files, size := size(db)
		p.answer(object{"demo", c.Dir.name(), "files", files, "bytes", size},
			"%s: %d files, %d bytes; see siftkv stats %[1]s, and siftkv scan %[1]s --prefix user/ --limit 5\n", c.Dir,
			files, size)
		return nil
	})(kv.Open(string(c.Dir), o))
}

// fillDemo writes users in an order that is not that of their keys, so that the runs of a level overlap.
func fillDemo(ctx context.Context, db *kv.DB) error {
	set := func(from, to int) error {
		for i := from; i < to; i++ {
			n := i * 7919 % demoUsers
			value := fmt.Sprintf(`{"name":"User %d","mail":"user-%d@example.com","visits":%d}`, n, n, i)
			if err := db.Set(fmt.Appendf(nil, "user/%06d", n), []byte(value), kv.NoSync); err != nil {
				return err
			}
		}
		return ctx.Err()
	}
	if err := set(0, demoUsers*3/4); err != nil {
		return err
	}
	noise := rand.NewChaCha8([32]byte{})
	for _, photos := range []int{demoPhotos, demoPhotos / 5} { // the second time some are written again
		for i := range photos {
			photo := make([]byte, 5<<10+i*20)
			_, _ = noise.Read(photo) // it never fails
			if err := db.Set(fmt.Appendf(nil, "photo/%04d", i), photo, kv.NoSync); err != nil {
				return err
			}
		}
		if err := db.Compact(ctx, nil, nil); err != nil {
			return err
		}
	}
	for i := range demoSessions {
		err := db.SetTTL(fmt.Appendf(nil, "session/%06d", i*31), []byte("logged in"), 24*time.Hour, kv.NoSync)
		if err != nil {
			return err
		}
	}
	if err := db.DeleteRange([]byte("photo/0050"), []byte("photo/0100"), kv.NoSync); err != nil {
		return err
	}
	if err := set(demoUsers*3/4, demoUsers); err != nil {
		return err
	}
	if err := db.Flush(ctx); err != nil {
		return err
	}
	for i := range 10 {
		if err := db.Delete(fmt.Appendf(nil, "user/%06d", i*100), kv.NoSync); err != nil {
			return err
		}
	}
	return db.Set([]byte("user/latest"), []byte("in the log only"), kv.Sync)
}
