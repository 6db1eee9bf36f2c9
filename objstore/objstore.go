package objstore

import (
	"context"
	"io"
	"iter"
	"time"
)

// A Store keeps objects under keys ([CheckKey] has the rules). An object is written as a whole and never changed.
// A Store is safe for concurrent use, and for several clients, in several processes, of what it keeps.
//
// Reads and listings see all writes, of any client, that returned before they began; they may see concurrent ones or
// not. A write is durable when it returns.
//
// Every call honours its context: one that has ended before the call makes it do nothing; one that ends meanwhile
// makes it return soon. The errors of a call match, by [errors.Is], the values of this package and the context's
// error. They name the operation and the key, and never hold credentials.
//
// A write (Put, PutIfAbsent, Delete) that fails has not been performed and never will be, unless its error
// matches [ErrUnknown]: then it was performed, or not, or will be when a delayed request arrives.
type Store interface {
	// GetRange reads len(p) bytes of an object at the offset off into p. It is one billed request, unless it must be
	// repeated. A negative offset means the object's last -off bytes, or all of an object that has fewer; p must have
	// room for them, else the error is [io.ErrShortBuffer].
	//
	// It returns how many bytes it read. The error is nil if and only if p is full. If the object ends before p is
	// full, the error is [io.EOF] itself, unwrapped. A reply that breaks off is another error ([io.ErrUnexpectedEOF] if
	// nothing better is known), which does not match io.EOF. With any error, all of p may have been written to.
	//
	// The error matches [ErrNotExist] if there is no such object. With an empty p it returns 0 and nil without a
	// request, whether the object exists or not.
	GetRange(ctx context.Context, key string, off int64, p []byte) (int, error)

	// Put writes an object of the first size bytes of r. The object appears whole, or not at all. r is read
	// from several goroutines, and some of it again if a request must be repeated: it must give the same bytes
	// until Put returns, and is not used after that. Big objects may take several requests.
	//
	// Callers give every object a name that is never used again. Put of a key that exists replaces the
	// object whole, so that a Put of unknown outcome can be repeated; for no other purpose.
	Put(ctx context.Context, key string, r io.ReaderAt, size int64) error

	// PutIfAbsent creates an object, or fails with [ErrExists] and leaves the one that is there. Of any number of calls
	// for one key, from any number of clients, at most one ever succeeds until the object is deleted. It is one
	// request, and the point at which the caller's change is committed.
	//
	// ErrExists means that this very call did not create the object. A store that has repeated a request after a lost
	// reply, and finds an object, does not know that: it compares contents, or returns ErrUnknown. [Commit] does what
	// callers need in that case. body is not kept, nor written to.
	PutIfAbsent(ctx context.Context, key string, body []byte) error

	// List yields the objects whose keys begin with prefix and are greater than after, in ascending order of the keys'
	// bytes. Both may be empty, and need not be keys. Foreign objects with keys that CheckKey refuses are skipped. An
	// error ends the listing: it is yielded once, with a zero Object.
	//
	// Objects that are created or deleted meanwhile may be listed or not; the loop's body may do so. No request is sent
	// before the loop begins; each thousand objects or so are a billed request. Some servers' listings lag behind
	// writes, against the rule above: to be sure that an object exists, read it by its key.
	List(ctx context.Context, prefix, after string) iter.Seq2[Object, error]

	// Delete removes an object. That there is none is no error.
	Delete(ctx context.Context, key string) error

	// Close releases what the client holds; the objects stay. Later calls fail with [ErrClosed]; those under way
	// fail, or are performed. Closing again does nothing and returns nil.
	Close() error
}

// An Object is what a listing says of an object.
type Object struct {
	Key     string
	Size    int64     // bytes
	ModTime time.Time // when it was written, by the store's clock
}
