// Package callback calls functions of the application in such a way that a panic or a runtime.Goexit in one of them
// does not unwind the frames of the store. Those frames may belong to a goroutine that others wait for, and their
// deferred calls may expect locks that were released for the call.
package callback

import (
	"errors"
	"fmt"
	"log/slog"
	"runtime"
	"runtime/debug"
)

// An Error says that a function of the application panicked, or ended the goroutine that called it.
type Error struct {
	Of    string // the function, such as "Events.Flushed"
	Value any    // of the panic; nil: the function called runtime.Goexit
	Stack []byte // of the panic
}

// Error names the function, and says what it panicked with.
func (e *Error) Error() string {
	if e.Value == nil {
		return fmt.Sprintf("siftkv: %s called runtime.Goexit", e.Of)
	}
	return fmt.Sprintf("siftkv: %s panicked: %v", e.Of, e.Value)
}

// OfOptions are the functions that a flush or compaction calls.
const OfOptions = "Filter, RangeFilter, Prefix, Merger or Clock"

// Do calls f on a goroutine of its own, and returns its error when it has ended. If f panics or calls runtime.Goexit,
// that is an *Error. It takes about a microsecond.
func Do(of string, f func() error) error {
	err := error(&Error{Of: of}) // unless f returns or panics
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer recovered(of, &err)
		err = f()
	}()
	<-done
	return err
}

// Catch calls f and returns its error, which is an *Error if f panics. A runtime.Goexit ends the caller's goroutine.
func Catch(of string, f func() error) (err error) {
	defer recovered(of, &err)
	return f()
}

// Resume lets what err tells of, if it is an *Error, unwind the caller's goroutine too: the one on which the
// application expects it.
func Resume(err error) {
	e, ok := errors.AsType[*Error](err)
	switch {
	case !ok:
	case e.Value == nil:
		runtime.Goexit()
	default:
		panic(e.Value)
	}
}

// recovered makes an error of a panic. It is deferred.
func recovered(of string, err *error) {
	if v := recover(); v != nil {
		*err = &Error{Of: of, Value: v, Stack: debug.Stack()}
	}
}

// Log logs the stack of the panic that err tells of. It does nothing if err tells of none.
func Log(l *slog.Logger, err error) {
	if e, ok := errors.AsType[*Error](err); ok {
		l.Error("a function of the application did not return", "function", e.Of, "error", e, "stack", string(e.Stack))
	}
}
