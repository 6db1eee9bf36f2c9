package api

import (
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// A database that is away fails thousands of requests a second, and logs one of them.
func TestOneErrorASecond(t *testing.T) {
	a := &api{}
	at := time.Unix(1000, 0)
	require.True(t, a.first(at))
	require.False(t, a.first(at.Add(time.Second-1)))
	require.True(t, a.first(at.Add(time.Second)))
}

func TestAnswersAreNotStored(t *testing.T) {
	for _, r := range []reply{{http.StatusNoContent, nil}, {http.StatusOK, "body"}} {
		w := httptest.NewRecorder()
		write(w, r)
		require.Equal(t, r.status, w.Code)
		require.Equal(t, "no-store", w.Header().Get("Cache-Control"))
	}
}
