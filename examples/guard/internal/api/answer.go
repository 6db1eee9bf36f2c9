package api

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"time"

	"github.com/siftkv/siftkv/examples/guard/internal/guard"
	"github.com/siftkv/siftkv/examples/guard/internal/limit"
)

// maxBody is the longest body of a request, in bytes.
const maxBody = 4096

// retryAfter is how many seconds a client waits that came when there was no room.
const retryAfter = "1"

// statusGone is what nginx logs for a client that went away before the answer.
const statusGone = 499

// answered makes a handler of a function that returns a reply or an error.
func (a *api) answered(answer func(*http.Request) (reply, error), timeout time.Duration) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		began := time.Now()
		ctx, cancel := context.WithTimeout(r.Context(), timeout)
		defer cancel()
		r.Body = http.MaxBytesReader(w, r.Body, maxBody)
		got, err := answer(r.WithContext(ctx))
		if err != nil {
			got = a.failed(w, r, err)
		}
		write(w, got)
		a.guard.Counters.Request(got.status, time.Since(began))
	})
}

// failed returns the reply for an error. The text of errors of the service itself is
// for its log, and not for clients.
func (a *api) failed(w http.ResponseWriter, r *http.Request, err error) reply {
	status, text, level := status(err), err.Error(), slog.LevelDebug
	switch {
	case r.Context().Err() != nil:
		status = statusGone
	case status == http.StatusServiceUnavailable:
		w.Header().Set("Retry-After", retryAfter)
		text = "the service is overloaded or a part of it is away; try again after " + retryAfter + " s"
		if errors.Is(err, guard.ErrDatabase) && a.first(time.Now()) {
			level = slog.LevelError
		}
	case status == http.StatusInternalServerError:
		text, level = "the service failed; its log says how", slog.LevelError
	}
	if status >= statusGone {
		a.log.Log(r.Context(), level, "not answered",
			"method", r.Method, "path", r.URL.Path, "status", status, "error", err)
	}
	return reply{status, struct {
		Error string `json:"error"`
	}{text}}
}

// first reports whether no error of the database was logged yet in this second: while it is away, every
// request has one, and the counters have them all.
func (a *api) first(now time.Time) bool { return a.logged.Swap(now.Unix()) != now.Unix() }

func status(err error) int {
	var input *inputError
	switch {
	case errors.As(err, &input):
		return http.StatusBadRequest
	case errors.Is(err, guard.ErrNotFound):
		return http.StatusNotFound
	case errors.Is(err, guard.ErrBanned):
		return http.StatusForbidden
	case errors.Is(err, guard.ErrTaken):
		return http.StatusConflict
	case errors.Is(err, limit.ErrFull), errors.Is(err, guard.ErrUnsure), errors.Is(err, guard.ErrDatabase),
		errors.Is(err, guard.ErrCache), errors.Is(err, context.DeadlineExceeded):
		return http.StatusServiceUnavailable
	}
	return http.StatusInternalServerError
}

func write(w http.ResponseWriter, r reply) {
	w.Header().Set("Cache-Control", "no-store") // a feed moves on, a ban is lifted
	if r.body == nil {
		w.WriteHeader(r.status)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(r.status)
	_ = json.NewEncoder(w).Encode(r.body) // the client may be gone: there is nobody to tell
}
