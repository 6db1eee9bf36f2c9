// Package api is the service over HTTP. Requests and answers are JSON; identifiers
// are strings in it, as JavaScript's numbers are too short for them.
//
//	GET    /users/{id}        200 {"id":"7","name":"ann"}, 403 banned, 404
//	POST   /users             {"name":"ann"}: 201 {"id":"7","name":"ann"}, 409 taken
//	GET    /names/{name}      200 {"name":"ann","taken":true}
//	GET    /banned/{id}       200 {"id":"7","banned":true}
//	POST   /banned/{id}       204
//	DELETE /banned/{id}       204
//	GET    /feed/{id}?n=10    200 {"id":"7","items":[3,1,2]}
//
// An error is {"error":"what, and what to do"}. Input that is not understood is
// 400; 503 comes with Retry-After when the database's queue is full, or when a
// filter cannot tell and the service fails closed.
package api

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/siftkv/siftkv/examples/guard/internal/guard"
	"github.com/siftkv/siftkv/examples/guard/internal/users"
)

// api answers requests.
type api struct {
	guard  *guard.Guard
	log    *slog.Logger
	logged atomic.Int64 // when an error of the database was logged last, in seconds since 1970
}

// New returns the service's handler. Every request has a context that ends after
// timeout, and is counted in the guard's counters.
func New(g *guard.Guard, timeout time.Duration) http.Handler {
	a := &api{guard: g, log: g.Logger}
	mux := http.NewServeMux()
	for pattern, answer := range map[string]func(*http.Request) (reply, error){
		"GET /users/{id}":     a.user,
		"POST /users":         a.signUp,
		"GET /names/{name}":   a.taken,
		"GET /banned/{id}":    a.banned,
		"POST /banned/{id}":   a.ban,
		"DELETE /banned/{id}": a.unban,
		"GET /feed/{id}":      a.feed,
	} {
		mux.Handle(pattern, a.answered(answer, timeout))
	}
	return mux
}

// reply is an answer that is no error.
type reply struct {
	status int
	body   any // nil for none
}

type userBody struct {
	ID   string `json:"id"`
	Name string `json:"name"`
}

func newUserBody(u users.User) userBody {
	return userBody{ID: strconv.FormatInt(u.ID, 10), Name: u.Name}
}

func (a *api) user(r *http.Request) (reply, error) {
	id, err := parseID(r.PathValue("id"))
	if err != nil {
		return reply{}, err
	}
	u, err := a.guard.User(r.Context(), id)
	return reply{http.StatusOK, newUserBody(u)}, err
}

func (a *api) signUp(r *http.Request) (reply, error) {
	var body struct {
		Name string `json:"name"`
	}
	if err := json.NewDecoder(r.Body).Decode(&body); err != nil {
		return reply{}, &inputError{fmt.Sprintf(`the body is not {"name":"..."}: %v`, err)}
	}
	name, err := parseName(body.Name)
	if err != nil {
		return reply{}, err
	}
	u, err := a.guard.SignUp(r.Context(), name)
	return reply{http.StatusCreated, newUserBody(u)}, err
}

func (a *api) taken(r *http.Request) (reply, error) {
	name, err := parseName(r.PathValue("name"))
	if err != nil {
		return reply{}, err
	}
	taken, err := a.guard.Taken(r.Context(), name)
	return reply{http.StatusOK, struct {
		Name  string `json:"name"`
		Taken bool   `json:"taken"`
	}{name, taken}}, err
}

func (a *api) banned(r *http.Request) (reply, error) {
	id, err := parseID(r.PathValue("id"))
	if err != nil {
		return reply{}, err
	}
	banned, err := a.guard.IsBanned(r.Context(), id)
	return reply{http.StatusOK, struct {
		ID     string `json:"id"`
		Banned bool   `json:"banned"`
	}{r.PathValue("id"), banned}}, err
}

func (a *api) ban(r *http.Request) (reply, error) {
	id, err := parseID(r.PathValue("id"))
	if err != nil {
		return reply{}, err
	}
	return reply{status: http.StatusNoContent}, a.guard.Ban(r.Context(), id)
}

func (a *api) unban(r *http.Request) (reply, error) {
	id, err := parseID(r.PathValue("id"))
	if err != nil {
		return reply{}, err
	}
	return reply{status: http.StatusNoContent}, a.guard.Unban(r.Context(), id)
}

func (a *api) feed(r *http.Request) (reply, error) {
	id, err := parseID(r.PathValue("id"))
	if err != nil {
		return reply{}, err
	}
	n, err := parseCount(r.URL.Query().Get("n"))
	if err != nil {
		return reply{}, err
	}
	items, err := a.guard.Feed(r.Context(), id, n)
	return reply{http.StatusOK, struct {
		ID    string `json:"id"`
		Items []int  `json:"items"`
	}{r.PathValue("id"), append([]int{}, items...)}}, err // [], not null
}
