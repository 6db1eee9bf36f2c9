package objstore

import (
	"errors"
	"fmt"

	"github.com/siftkv/siftkv/internal/requests"
)

// What calls of a [Store] fail with, to be matched with [errors.Is].
var (
	// ErrNotExist says that there is no such object.
	ErrNotExist = errors.New("no such object")

	// ErrExists says that PutIfAbsent found an object and left it alone.
	ErrExists = errors.New("object already exists")

	// ErrUnknown says that it is unknown whether a write was performed, or still will be. Its reply was lost or did not
	// come in time, or the store itself does not know (HTTP 409 of a conditional put). Put and Delete may be repeated;
	// [Commit] finds out for PutIfAbsent.
	ErrUnknown = errors.New("outcome unknown")

	// ErrThrottled says that the store refused too many requests in a row for coming too fast. The call was
	// not performed.
	ErrThrottled = errors.New("throttled by the object store")

	// ErrInvalidKey says that a key breaks the rules of [CheckKey].
	ErrInvalidKey = errors.New("invalid key")

	// ErrClosed says that the store was closed.
	ErrClosed = errors.New("object store is closed")
)

// An Error says which call failed, and why. All errors of a [Store] are of this type, but [io.EOF].
type Error struct {
	Op  Kind
	Key string // for List, the prefix
	Err error  // matches one of the package's values, where one fits
}

func (e *Error) Error() string { return fmt.Sprintf("objstore: %s %q: %v", e.Op, e.Key, e.Err) }

// Unwrap returns the reason.
func (e *Error) Unwrap() error { return e.Err }

// A Kind is a kind of request: the method of [Store] that needs it.
type Kind = requests.Kind

// The kinds of requests.
const (
	Get         = requests.Get
	Put         = requests.Put
	PutIfAbsent = requests.PutIfAbsent
	List        = requests.List
	Delete      = requests.Delete

	NumKinds = requests.NumKinds // the number of kinds
)
