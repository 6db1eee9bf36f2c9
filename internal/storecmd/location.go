package storecmd

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"os"
	"strings"

	"github.com/siftkv/siftkv/internal/cli"
	"github.com/siftkv/siftkv/internal/keytext"
	"github.com/siftkv/siftkv/kv"
	"github.com/siftkv/siftkv/kv/objects"
	"github.com/siftkv/siftkv/objstore"
)

// A Location is an argument that names a store: a directory, or the URL of an object store. The URL's parameters may
// name a branch and a checkpoint. A directory with a name like a URL is written with ./ before it. Its text, for
// people, has no credentials.
type Location string

// Validate is called by kong.
func (l Location) Validate() error {
	if l.remote() {
		_, err := l.address()
		return err
	}
	return cli.Directory(l).Validate()
}

// String returns the location as it may be printed.
func (l Location) String() string { return l.name().String() }

// name is String for reports.
func (l Location) name() keytext.Name { return keytext.Name(cli.RedactURL(string(l))) }

// remote reports whether the location is an object store.
func (l Location) remote() bool { return cli.Scheme(string(l)) != "" }

// onDisk returns an error that says what to do instead, unless the location is a directory.
func (l Location) onDisk(instead string) error {
	if l.remote() {
		return usagef("%s is an object store: %s", l, instead)
	}
	return nil
}

// An Opener opens the object store that a URL names. Of a URL that is none the error is a WrongURL.
type Opener func(ctx context.Context, url string) (objstore.Store, error)

// WrongURL returns the error of a URL that is none: the command line is wrong.
func WrongURL(err error) error { return usagef("%w", err) }

// Openers open object stores, by the scheme of their URLs, in addition to dir://.
type Openers map[string]Opener

// elsewhere says which program opens the URLs of a scheme.
var elsewhere = map[string]string{
	"s3": "the siftkv of github.com/siftkv/siftkv/objstore/s3/cmd/siftkv opens it: " +
		"go install github.com/siftkv/siftkv/objstore/s3/cmd/siftkv@latest",
}

// objects opens the object store of a location, for the branch and the checkpoint that it names. All requests end with
// the context. One in a directory that is not there is made if create is set. The caller closes the Store.
func (p *program) objects(ctx context.Context, l Location, create bool) (*objects.Config, error) {
	a, err := l.address()
	if err != nil {
		return nil, err
	}
	return p.objectsAt(ctx, a, create)
}

// objectsAt is objects for an address.
func (p *program) objectsAt(ctx context.Context, a address, create bool) (*objects.Config, error) {
	scheme := cli.Scheme(a.url)
	open, known := p.openers[scheme]
	var s objstore.Store
	var err error
	switch {
	case scheme == cli.DirScheme:
		s, err = openDir(a.url[len("dir://"):], create && a.branch == "")
	case known:
		s, err = open(ctx, a.url)
	case elsewhere[scheme] != "":
		return nil, usagef("%s: this siftkv has no client of %s; %s", a, strings.ToUpper(scheme), elsewhere[scheme])
	default:
		return nil, usagef("%s: object stores are dir://PATH or s3://BUCKET/PREFIX; %s:// is neither", a, scheme)
	}
	if err != nil {
		return nil, err
	}
	return &objects.Config{Store: interruptible{s, ctx}, Branch: a.branch, Checkpoint: a.checkpoint}, nil
}

// openDir opens a directory that is an object store.
func openDir(path string, create bool) (objstore.Store, error) {
	if path == "" {
		return nil, usagef("dir:// is followed by a path, such as dir:///var/objects or dir://objects")
	}
	if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) && !create {
		return nil, fmt.Errorf("%w in dir://%s: there is no such directory", kv.ErrNotExist, path)
	}
	return objstore.OpenDir(path)
}

// interruptible is an objstore.Store; all of its requests end with a context too.
type interruptible struct {
	objstore.Store
	ctx context.Context
}

// with returns a context that ends with both.
func (s interruptible) with(ctx context.Context) (context.Context, func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	stop := context.AfterFunc(s.ctx, func() { cancel(context.Cause(s.ctx)) })
	return ctx, func() {
		stop()
		cancel(nil)
	}
}

func (s interruptible) GetRange(ctx context.Context, key string, off int64, b []byte) (int, error) {
	ctx, end := s.with(ctx)
	defer end()
	return s.Store.GetRange(ctx, key, off, b)
}

func (s interruptible) Put(ctx context.Context, key string, r io.ReaderAt, size int64) error {
	ctx, end := s.with(ctx)
	defer end()
	return s.Store.Put(ctx, key, r, size)
}

func (s interruptible) PutIfAbsent(ctx context.Context, key string, body []byte) error {
	ctx, end := s.with(ctx)
	defer end()
	return s.Store.PutIfAbsent(ctx, key, body)
}

func (s interruptible) List(ctx context.Context, prefix, after string) iter.Seq2[objstore.Object, error] {
	return func(yield func(objstore.Object, error) bool) {
		ctx, end := s.with(ctx)
		defer end()
		s.Store.List(ctx, prefix, after)(yield)
	}
}

func (s interruptible) Delete(ctx context.Context, key string) error {
	ctx, end := s.with(ctx)
	defer end()
	return s.Store.Delete(ctx, key)
}
