package objstore

import (
	"cmp"
	"context"
	"iter"
	"path"
	"slices"
	"strings"
)

// List implements [Store]. It holds the names of one directory of each depth in memory.
func (d *dir) List(ctx context.Context, prefix, after string) iter.Seq2[Object, error] {
	return func(yield func(Object, error) bool) {
		l := dirListing{d: d, ctx: ctx, prefix: prefix, after: after, yield: yield}
		if err := l.walk(".", ""); err != nil {
			yield(Object{}, d.failure(List, prefix, err))
		}
	}
}

type dirListing struct {
	d             *dir
	ctx           context.Context // of the one call that the listing is
	prefix, after string
	yield         func(Object, error) bool
	stopped       bool
}

// A dirEntry is a file or directory. All keys below a directory begin with its key, which ends with a slash, and
// no others do: the order of entries is that of the keys.
type dirEntry struct {
	name, key string
}

func (e dirEntry) isDir() bool { return strings.HasSuffix(e.key, "/") }

// walk yields the objects of a directory, and of those below it. All of their keys begin with base.
func (l *dirListing) walk(name, base string) error {
	if err := l.d.check(l.ctx); err != nil {
		return err
	}
	entries, err := l.entries(name, base)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if e.isDir() {
			err = l.walk(e.name, e.key)
		} else {
			err = l.object(e)
		}
		if err != nil || l.stopped {
			return err
		}
	}
	return nil
}

// entries returns what is of interest in a directory, in the order of keys.
func (l *dirListing) entries(name, base string) (entries []dirEntry, err error) {
	f, err := l.d.root.Open(name)
	if isAbsent(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	files, err := f.ReadDir(-1)
	for _, file := range files {
		segment, ok := segmentOf(file.Name())
		e := dirEntry{path.Join(name, file.Name()), base + segment}
		switch {
		case !ok:
			continue
		case file.IsDir():
			e.key += "/"
			ok = len(e.key) < MaxKey && (strings.HasPrefix(e.key, l.prefix) || strings.HasPrefix(l.prefix, e.key)) &&
				(e.key > l.after || strings.HasPrefix(l.after, e.key))
		default:
			ok = file.Type().IsRegular() && strings.HasPrefix(e.key, l.prefix) && e.key > l.after &&
				CheckKey(e.key) == nil
		}
		if ok {
			entries = append(entries, e)
		}
	}
	slices.SortFunc(entries, func(a, b dirEntry) int { return cmp.Compare(a.key, b.key) })
	return entries, err
}

// object yields an object, if it is still there.
func (l *dirListing) object(e dirEntry) error {
	if err := l.d.check(l.ctx); err != nil {
		return err
	}
	info, err := l.d.root.Lstat(e.name)
	if isAbsent(err) {
		return nil
	}
	if err != nil {
		return err
	}
	l.stopped = !l.yield(Object{Key: e.key, Size: info.Size(), ModTime: info.ModTime()}, nil)
	return nil
}
