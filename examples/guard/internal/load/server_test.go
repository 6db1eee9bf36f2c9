package load

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
)

// A server is a service with users in memory, which tells the truth unless lie says
// otherwise. It keeps what it was asked.
type server struct {
	users int64
	// lie may answer in place of the server, and says whether it did.
	lie func(w http.ResponseWriter, r *http.Request) bool

	mu     sync.Mutex
	names  map[string]int64
	banned map[int64]bool
	shown  map[string]int
	asked  []string
}

func newServer(users int64) *server {
	return &server{users: users, names: map[string]int64{}, banned: map[int64]bool{}, shown: map[string]int{}}
}

// RoundTrip answers a request without a network, so that time can be a test's.
func (s *server) RoundTrip(r *http.Request) (*http.Response, error) {
	w := httptest.NewRecorder()
	s.ServeHTTP(w, r)
	if err := r.Context().Err(); err != nil {
		return nil, err
	}
	return w.Result(), nil
}

func (s *server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	s.asked = append(s.asked, r.Method+" "+r.URL.Path)
	s.mu.Unlock()
	if s.lie != nil && s.lie(w, r) {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	mux := http.NewServeMux()
	mux.HandleFunc("GET /users/{id}", s.user)
	mux.HandleFunc("POST /users", s.signUp)
	mux.HandleFunc("GET /names/{name}", func(w http.ResponseWriter, r *http.Request) {
		say(w, http.StatusOK, `{"taken":%t}`, s.id(r.PathValue("name")) != 0)
	})
	mux.HandleFunc("GET /banned/{id}", func(w http.ResponseWriter, r *http.Request) {
		say(w, http.StatusOK, `{"banned":%t}`, s.banned[number(r)])
	})
	mux.HandleFunc("POST /banned/{id}", func(w http.ResponseWriter, r *http.Request) {
		s.banned[number(r)] = true
		w.WriteHeader(http.StatusNoContent)
	})
	mux.HandleFunc("DELETE /banned/{id}", func(w http.ResponseWriter, r *http.Request) {
		delete(s.banned, number(r))
		w.WriteHeader(http.StatusNoContent)
	})
	mux.HandleFunc("GET /feed/{id}", func(w http.ResponseWriter, r *http.Request) {
		id := r.PathValue("id")
		s.shown[id] += 2
		say(w, http.StatusOK, `{"items":[%d,%d]}`, s.shown[id], s.shown[id]+1)
	})
	mux.ServeHTTP(w, r)
}

func (s *server) user(w http.ResponseWriter, r *http.Request) {
	id := number(r)
	switch {
	case s.banned[id]:
		say(w, http.StatusForbidden, `{"error":"banned"}`)
	case s.name(id) == "":
		say(w, http.StatusNotFound, `{"error":"no such user"}`)
	default:
		say(w, http.StatusOK, `{"id":"%d","name":%q}`, id, s.name(id))
	}
}

func (s *server) signUp(w http.ResponseWriter, r *http.Request) {
	var u struct{ Name string }
	body, _ := io.ReadAll(r.Body)
	if json.Unmarshal(body, &u) != nil || s.id(u.Name) != 0 {
		say(w, http.StatusConflict, `{"error":"taken"}`)
		return
	}
	s.names[u.Name] = s.users + int64(len(s.names)) + 1
	say(w, http.StatusCreated, `{"id":"%d","name":%q}`, s.names[u.Name], u.Name)
}

// name returns the name of a user, nothing if there is no such user.
func (s *server) name(id int64) string {
	if id <= s.users {
		return "user" + strconv.FormatInt(id, 10)
	}
	for name, of := range s.names {
		if of == id {
			return name
		}
	}
	return ""
}

// id returns who has a name, 0 if nobody has.
func (s *server) id(name string) int64 {
	if digits, ok := strings.CutPrefix(name, "user"); ok {
		if id, err := strconv.ParseInt(digits, 10, 64); err == nil && id <= s.users {
			return id
		}
	}
	return s.names[name]
}

func number(r *http.Request) int64 {
	id, _ := strconv.ParseInt(r.PathValue("id"), 10, 64)
	return id
}

func say(w http.ResponseWriter, status int, format string, args ...any) {
	w.WriteHeader(status)
	fmt.Fprintf(w, format, args...)
}
