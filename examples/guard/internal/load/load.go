// Package load plays what happens to a user service: an attack of keys that do
// not exist, a cold cache, a normal day. It is a visitor like any other: it knows
// the service's URL and nothing else, checks every answer, and measures how long
// visitors wait.
//
// What visitor i wants depends on the seed and i alone, so two runs of one seed
// send the same requests, whatever the service does and however many workers
// there are.
package load

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// A Scenario is what visitors come for.
type Scenario string

// The scenarios.
const (
	Attack Scenario = "attack" // most ask for users that do not exist, each for another one
	Cold   Scenario = "cold"   // all ask for users, few of them often, after the cache was emptied
	Normal Scenario = "normal" // lookups, sign-ups with a check of the name, feeds, a few bans
)

// Scenarios are all of them.
var Scenarios = []Scenario{Attack, Cold, Normal}

// Config says what to play. Base, Scenario and Users must be set.
type Config struct {
	Base     string // URL of the service, such as http://127.0.0.1:8080
	Scenario Scenario
	Users    int // users 1 to Users exist

	For     time.Duration // 0: until the context ends
	Workers int           // visitors at once; default 32
	// Visitors a second; default: UsualRate of the scenario. Each is due at a moment of its own,
	// and its latency counts from then, so a slow service cannot hide the wait of those who came
	// meanwhile.
	Rate float64
	// Each worker sends its next visitor as soon as the last one has left, at no Rate: this finds
	// how much a service can do, not how long visitors wait.
	Unpaced bool
	// Sign-ups of a seed take names of their own: play it once against a database. 0: a random one.
	Seed       uint64
	Attackers  float64                     // share of visitors who attack; default 0.9
	Timeout    time.Duration               // of one request; default 10 s
	EmptyCache func(context.Context) error // before Cold; nil: the cache is as it is
	Transport  http.RoundTripper           // default: one that keeps Workers connections
}

// UsualRate is a number of visitors a second that a laptop serves.
func (s Scenario) UsualRate() float64 {
	if s == Normal { // its visitors stay longer, and ask for more
		return 300
	}
	return 1000
}

// ErrConfig means that a Config cannot be played.
var ErrConfig = errors.New("load: the configuration is not valid")

// A Load is one scenario with its figures.
type Load struct {
	config Config
	plan   plan
	client *client
	tally  *tally

	next   atomic.Uint64 // the next visitor
	served atomic.Uint64
	late   atomic.Uint64 // visitors who were due and not served when the time was over
	once   sync.Once
	played atomic.Pointer[span]
}

// span is when a load ran.
type span struct {
	start time.Time
	end   time.Time // zero: it is running
}

// New prepares a load, which Run plays.
func New(config Config) (*Load, error) {
	config.Workers = cmp.Or(config.Workers, 32)
	config.Attackers = cmp.Or(config.Attackers, 0.9)
	config.Timeout = cmp.Or(config.Timeout, 10*time.Second)
	config.Rate = cmp.Or(config.Rate, config.Scenario.UsualRate())
	config.Seed = cmp.Or(config.Seed, rand.Uint64())
	if err := config.check(); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrConfig, err)
	}
	if config.Transport == nil {
		config.Transport = &http.Transport{MaxIdleConnsPerHost: config.Workers, MaxConnsPerHost: config.Workers}
	}
	l := &Load{config: config, plan: newPlan(config), tally: newTally()}
	l.client = &client{
		base: strings.TrimSuffix(config.Base, "/"), tally: l.tally, timeout: config.Timeout,
		http: &http.Client{Transport: config.Transport},
	}
	return l, nil
}

// check returns what is wrong with a configuration.
func (c *Config) check() error {
	base, err := url.Parse(c.Base)
	switch {
	case err != nil:
		return err
	case base.Scheme != "http" && base.Scheme != "https" || base.Host == "":
		return fmt.Errorf("%q is no URL of a service, such as http://127.0.0.1:8080", c.Base)
	case c.Users < 2:
		return fmt.Errorf("%d users: at least 2 must exist", c.Users)
	case c.Workers < 1:
		return fmt.Errorf("%d workers: at least 1 is needed", c.Workers)
	case c.Rate < 0 || c.Rate > 1e6:
		return fmt.Errorf("%g visitors a second: the rate is from 0 to a million", c.Rate)
	case c.Attackers < 0 || c.Attackers > 1:
		return fmt.Errorf("%g of the visitors attack: the share is from 0 to 1", c.Attackers)
	case c.For < 0 || c.Timeout < 0:
		return errors.New("a negative time")
	}
	if !slices.Contains(Scenarios, c.Scenario) {
		return fmt.Errorf("%q is no scenario; there are %v", c.Scenario, Scenarios)
	}
	return nil
}

// Run plays a scenario. See Load.Run.
func Run(ctx context.Context, config Config) (Report, error) {
	l, err := New(config)
	if err != nil {
		return Report{}, err
	}
	return l.Run(ctx)
}
