package guard

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"regexp"
	"strconv"
	"time"
)

const maxBody = 4096 // bytes of a request

// api answers requests over HTTP.
type api struct {
	*Guard
	timeout time.Duration
}

// Handler returns the service over HTTP; README.md has its requests and answers. Each request has a context that ends
// after timeout, and is counted. Identifiers are strings in JSON, as JavaScript's numbers are too short for them.
//
// An error is {"error":"what, and what to do"}. Malformed input is 400. 503 comes with Retry-After: the database's
// queue is full, or a filter cannot tell and the service fails closed.
func (g *Guard) Handler(timeout time.Duration) http.Handler {
	a := &api{Guard: g, timeout: timeout}
	mux := http.NewServeMux()
	mux.Handle("GET /users/{id}", a.ofID(http.StatusOK, func(ctx context.Context, id int64) (any, error) {
		return a.User(ctx, id)
	}))
	mux.Handle("POST /users", a.answered(http.StatusCreated, a.signUp))
	mux.Handle("GET /names/{name}", a.answered(http.StatusOK, a.taken))
	mux.Handle("GET /banned/{id}", a.ofID(http.StatusOK, func(ctx context.Context, id int64) (any, error) {
		banned, err := a.IsBanned(ctx, id)
		return map[string]any{"id": strconv.FormatInt(id, 10), "banned": banned}, err
	}))
	mux.Handle("POST /banned/{id}", a.ofID(http.StatusNoContent, func(ctx context.Context, id int64) (any, error) {
		return nil, a.Ban(ctx, id)
	}))
	mux.Handle("DELETE /banned/{id}", a.ofID(http.StatusNoContent, func(ctx context.Context, id int64) (any, error) {
		return nil, a.Unban(ctx, id)
	}))
	return mux
}

func (a *api) signUp(r *http.Request) (any, error) {
	var body struct{ Name string }
	if err := json.NewDecoder(r.Body).Decode(&body); err != nil {
		return nil, &inputError{fmt.Sprintf(`the body is not {"name":"..."}: %v`, err)}
	}
	if err := checkName(body.Name); err != nil {
		return nil, err
	}
	return a.SignUp(r.Context(), body.Name)
}

func (a *api) taken(r *http.Request) (any, error) {
	name := r.PathValue("name")
	if err := checkName(name); err != nil {
		return nil, err
	}
	taken, err := a.Taken(r.Context(), name)
	return map[string]any{"name": name, "taken": taken}, err
}

// ofID makes a handler of a function that answers for an identifier.
func (a *api) ofID(status int, answer func(context.Context, int64) (any, error)) http.Handler {
	return a.answered(status, func(r *http.Request) (any, error) {
		id, err := parseID(r.PathValue("id"))
		if err != nil {
			return nil, err
		}
		return answer(r.Context(), id)
	})
}

// answered makes a handler of a function that returns a body, to be sent with a status, or an error.
func (a *api) answered(status int, answer func(*http.Request) (any, error)) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		began := time.Now()
		ctx, cancel := context.WithTimeout(r.Context(), a.timeout)
		defer cancel()
		r.Body = http.MaxBytesReader(w, r.Body, maxBody)
		status := status
		body, err := answer(r.WithContext(ctx))
		if err != nil {
			status, body = a.failed(w, r, err)
		}
		w.Header().Set("Cache-Control", "no-store") // a ban may be lifted at any time
		if body == nil {
			w.WriteHeader(status)
		} else {
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(status)
			_ = json.NewEncoder(w).Encode(body) // fails if the client is gone
		}
		a.Counters.request(strconv.Itoa(status), time.Since(began))
	})
}

// failed returns the answer for an error. Clients get no text of the service's own errors; its log does.
func (a *api) failed(w http.ResponseWriter, r *http.Request, err error) (int, any) {
	status, text, level := statusOf(err), err.Error(), slog.LevelDebug
	switch status {
	case http.StatusServiceUnavailable:
		w.Header().Set("Retry-After", "1")
		text = "the service is overloaded or a part of it is away; try again after 1 s"
	case http.StatusInternalServerError:
		text, level = "the service failed; its log says how", slog.LevelError
	}
	if status >= http.StatusInternalServerError {
		a.Logger.Log(r.Context(), level, "not answered",
			"method", r.Method, "path", r.URL.Path, "status", status, "error", err)
	}
	return status, map[string]string{"error": text}
}

func statusOf(err error) int {
	var input *inputError
	switch {
	case errors.As(err, &input):
		return http.StatusBadRequest
	case errors.Is(err, ErrNotFound):
		return http.StatusNotFound
	case errors.Is(err, ErrBanned):
		return http.StatusForbidden
	case errors.Is(err, ErrTaken):
		return http.StatusConflict
	case errors.Is(err, ErrOverload), errors.Is(err, ErrUnsure), errors.Is(err, ErrDatabase),
		errors.Is(err, ErrCache), errors.Is(err, context.DeadlineExceeded):
		return http.StatusServiceUnavailable
	}
	return http.StatusInternalServerError
}

// inputError is what is wrong with a request, in words for the client.
type inputError struct{ text string }

func (e *inputError) Error() string { return e.text }

// names are short and of few characters: they are in keys of Redis, in logs and in paths, and no two look alike.
var names = regexp.MustCompile(`^[a-z0-9][a-z0-9._-]{1,31}$`)

func checkName(s string) error {
	if !names.MatchString(s) {
		return &inputError{fmt.Sprintf(
			"%.40q is no name: 2 to 32 of a-z, 0-9, '.', '_' and '-', the first a letter or a digit", s)}
	}
	return nil
}

// parseID takes an identifier in one form: no sign, no leading zero. Another form of a number would be another key.
func parseID(s string) (int64, error) {
	id, err := strconv.ParseInt(s, 10, 64)
	if err != nil || id <= 0 || strconv.FormatInt(id, 10) != s {
		return 0, &inputError{fmt.Sprintf("%.40q is no identifier: a positive number of up to 63 bits", s)}
	}
	return id, nil
}
