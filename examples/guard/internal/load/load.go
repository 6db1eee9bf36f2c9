// Package load attacks a user service, as a visitor that knows the service's URL and nothing else. Most of its
// visitors ask for users that do not exist, each for another one, which no cache knows; the others ask for users that
// exist, few of them often. It checks every answer and measures how long the users wait.
package load

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"
)

const (
	attackers = 0.9              // the share of visitors who ask for users that do not exist
	workers   = 32               // visitors at once
	patience  = 10 * time.Second // of a visitor
	firstFake = 1 << 40          // users that do not exist have higher identifiers
	skew      = 1.1              // of Zipf's law: the most popular tenth of the users gets most of the visits
)

// Load is an attack that can be repeated. Its figures are those of all times. It is for any number of goroutines.
type Load struct {
	Base  string  // URL of the service, such as http://127.0.0.1:8080
	Users int     // users 1 to Users exist; at least 2
	Rate  float64 // visitors a second

	mu      sync.Mutex
	figures Figures
	waits   []time.Duration // of users since the last call of Waits
}

// Figures are what became of requests. The numbers never go down.
type Figures struct {
	Users   uint64 `json:"users"`   // requests for users that exist
	Absent  uint64 `json:"absent"`  // requests for users that do not
	Failed  uint64 `json:"failed"`  // no answer, or one of status 5xx
	Wrong   uint64 `json:"wrong"`   // answers that are not true
	Mistake string `json:"mistake"` // the last wrong answer, or else the last failure
}

// Figures returns the figures so far.
func (l *Load) Figures() Figures {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.figures
}

// Waits returns the median and the 99th percentile of how long users waited since its last call; 0 without users.
func (l *Load) Waits() (p50, p99 time.Duration) {
	l.mu.Lock()
	waits := l.waits
	l.waits = nil
	l.mu.Unlock()
	if len(waits) == 0 {
		return 0, 0
	}
	slices.Sort(waits)
	return waits[len(waits)/2], waits[len(waits)*99/100]
}

// Run attacks for a time, or until the context ends. It returns when the visitors under way have left.
func (l *Load) Run(ctx context.Context, d time.Duration) {
	ctx, cancel := context.WithTimeout(ctx, d)
	defer cancel()
	transport := &http.Transport{MaxIdleConnsPerHost: workers, MaxConnsPerHost: workers}
	client := &http.Client{Timeout: patience, Transport: transport}
	defer client.CloseIdleConnections()
	begin := time.Now()
	var next atomic.Int64
	var group sync.WaitGroup
	for range workers {
		group.Go(func() {
			for {
				// Each visitor is due at a moment of its own, and waits from then on: a slow service cannot hide
				// how long visitors wait by letting fewer come.
				due := begin.Add(time.Duration(float64(next.Add(1)-1) / l.Rate * float64(time.Second)))
				select {
				case <-time.After(time.Until(due)):
				case <-ctx.Done():
				}
				if ctx.Err() != nil {
					return
				}
				l.visit(client, due)
			}
		})
	}
	group.Wait()
}

// visit plays a visitor who was due at a time.
func (l *Load) visit(client *http.Client, due time.Time) {
	user, exists := rand.Int64N(1<<50)+firstFake, false
	if rand.Float64() >= attackers {
		random := rand.New(rand.NewPCG(rand.Uint64(), 0))
		user, exists = 1+int64(rand.NewZipf(random, skew, 1, uint64(l.Users-1)).Uint64()), true
	}
	path := "/users/" + strconv.FormatInt(user, 10)
	failed, wrong := ask(client, l.Base+path, user, exists)
	wait := time.Since(due)
	l.mu.Lock()
	defer l.mu.Unlock()
	f := &l.figures
	if exists {
		f.Users++
		l.waits = append(l.waits, wait)
	} else {
		f.Absent++
	}
	if wrong != nil {
		f.Wrong++
	} else if failed != nil {
		f.Failed++
	}
	if err := cmp.Or(wrong, failed); err != nil && (wrong != nil || f.Wrong == 0) {
		f.Mistake = fmt.Sprintf("GET %s: %v", path, err)
	}
}

// ask asks for a user. It returns why there is no answer, or why the answer is not true.
func ask(client *http.Client, url string, user int64, exists bool) (failed, wrong error) {
	response, err := client.Get(url)
	if err != nil {
		return errors.Unwrap(err), nil // without the URL
	}
	defer func() { _ = response.Body.Close() }()
	body, err := io.ReadAll(io.LimitReader(response.Body, 1<<16))
	switch {
	case err != nil:
		return err, nil
	case response.StatusCode >= http.StatusInternalServerError:
		return fmt.Errorf("status %d: %.200s", response.StatusCode, body), nil
	case !exists && response.StatusCode == http.StatusNotFound:
		return nil, nil
	}
	var got struct {
		ID int64 `json:",string"`
	}
	if exists && response.StatusCode == http.StatusOK && json.Unmarshal(body, &got) == nil && got.ID == user {
		return nil, nil
	}
	return nil, fmt.Errorf("status %d: %.200s; the user exists: %t", response.StatusCode, body, exists)
}
