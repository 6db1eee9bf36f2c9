package base

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
)

// Sentinels that every layer shares. The public packages re-export them.
var (
	ErrNotFound   = errors.New("siftkv: not found")
	ErrClosed     = errors.New("siftkv: closed")
	ErrCorruption = errors.New("siftkv: corruption")
	// ErrNewerFormat is matched when a newer version of the program wrote what was read, be it the store, a log or a
	// sorted file.
	ErrNewerFormat = errors.New("siftkv: newer format")

	// ErrTooLarge is returned for what exceeds a limit of keys, values, batches or transactions.
	ErrTooLarge = errors.New("siftkv: too large")

	// ErrInvalidOptions is matched by errors about what a program chose.
	ErrInvalidOptions = errors.New("siftkv: invalid options")

	// ErrFenced is matched when another writer has taken over a store in an object store.
	ErrFenced = errors.New("siftkv: another writer has taken over")

	ErrForeignDirectory = errors.New("siftkv: the directory is not empty and holds no store")

	// ErrNotExist matches fs.ErrNotExist too.
	ErrNotExist error = notExist{}
)

type notExist struct{}

func (notExist) Error() string { return "siftkv: there is no store" }

func (notExist) Is(target error) bool { return target == fs.ErrNotExist }

// A CorruptionError says which bytes of which file cannot be trusted. It matches ErrCorruption, and its cause if it has
// one.
type CorruptionError struct {
	File   string // path, or a name for bytes that are in no file
	Offset int64  // of the damaged structure, in bytes; -1 if not known
	What   string // which structure, and what is wrong with it
	Hint   string // the command that looks further; may be empty
	Cause  error  // may be nil
}

// WithHint adds the command to run to an error about damage that names none.
func WithHint(err error, hint string) error {
	if ce, ok := errors.AsType[*CorruptionError](err); ok && ce.Hint == "" {
		ce.Hint = hint
	}
	return err
}

// Error names the file, the offset, the fault and the command to run.
func (e *CorruptionError) Error() string {
	s := "siftkv: corruption"
	if e.File != "" {
		s += " in " + e.File
	}
	if e.Offset >= 0 {
		s += fmt.Sprintf(" at offset %d", e.Offset)
	}
	s += ": " + e.What
	if e.Cause != nil {
		s += ": " + e.Cause.Error()
	}
	if e.Hint != "" {
		s += "; run: " + e.Hint
	}
	return s
}

// Unwrap makes errors.Is(err, ErrCorruption) true.
func (e *CorruptionError) Unwrap() []error {
	if e.Cause == nil {
		return []error{ErrCorruption}
	}
	return []error{ErrCorruption, e.Cause}
}

// Corruptf returns a CorruptionError for a place in a file.
func Corruptf(file string, offset int64, format string, args ...any) error {
	return &CorruptionError{File: file, Offset: offset, What: fmt.Sprintf(format, args...)}
}

// ErrNotDurable says that a write is visible and stays so, although its sync has failed.
var ErrNotDurable = errors.New("siftkv: the write is visible, and not durable before the store takes writes again")

// ErrContextEnded tells a caller inside the store that work was broken off because its context ended. An application
// sees a ContextError.
var ErrContextEnded = errors.New("siftkv: the context has ended")

// ContextError returns the error of what ended with its context, with its cause if that says more. Its text begins with
// what, the interrupted work.
func ContextError(ctx context.Context, what string) error {
	err := ctx.Err()
	if cause := context.Cause(ctx); !errors.Is(cause, err) {
		err = fmt.Errorf("%w: %w", err, cause)
	}
	return fmt.Errorf("siftkv: %s: %w", what, err)
}

// UnknownKind returns the error for an entry that this version does not understand.
func UnknownKind(key []byte, kind Kind) error {
	return &CorruptionError{Offset: -1, What: "an entry of key " +
		InternalKey{User: key, Trailer: MakeTrailer(0, kind)}.String() + " is of no known kind"}
}

// A ValueError names a key whose value cannot be returned: it is damaged or cannot be read, or its operands cannot be
// combined.
type ValueError struct {
	Key   []byte
	Cause error
}

// Error names the key and the cause.
func (e *ValueError) Error() string {
	return fmt.Sprintf("siftkv: read the value of key %q: %v", e.Key, e.Cause)
}

func (e *ValueError) Unwrap() error { return e.Cause }

// WithKey returns an error as a ValueError; nil for nil.
func WithKey(key []byte, err error) error {
	if err == nil || IsValueError(err) {
		return err
	}
	return &ValueError{Key: append([]byte{}, key...), Cause: err}
}

// IsValueError reports whether an error is, or wraps, a ValueError.
func IsValueError(err error) bool {
	_, ok := errors.AsType[*ValueError](err)
	return ok
}
