package load

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"time"
)

// serve plays one visitor, who was due at a time. A visitor to whom the service does not
// answer, or not the truth, leaves.
func (c *client) serve(ctx context.Context, v visit, due time.Time) {
	switch v.want {
	case wantAbsent:
		c.do(ctx, request{
			kind: Absent, method: http.MethodGet, path: userPath(v.user), since: due,
			check: isStatus(http.StatusNotFound, "nobody has this identifier"),
		})
	case wantUser:
		c.lookUp(ctx, v.user, due)
	case wantName:
		if name, ok := c.lookUp(ctx, v.user, due); ok {
			c.askName(ctx, name, true, time.Time{})
		}
	case wantSignUp:
		c.join(ctx, v, due)
	case wantFeed:
		if c.feed(ctx, v.user, due) {
			c.feed(ctx, v.user, time.Time{})
		}
	case wantBan:
		c.misbehave(ctx, v, due)
	}
}

// join plays somebody who chooses a free name, signs up, and finds themselves there.
func (c *client) join(ctx context.Context, v visit, due time.Time) {
	name := newName(v.tag)
	if !c.askName(ctx, name, false, due) {
		return
	}
	user, ok := c.signUp(ctx, name, time.Time{})
	if !ok {
		return
	}
	if _, ok := c.lookUp(ctx, user, time.Time{}); ok {
		c.askName(ctx, name, true, time.Time{})
	}
}

// misbehave plays somebody who signs up, is banned, cannot be looked up, and is forgiven.
func (c *client) misbehave(ctx context.Context, v visit, due time.Time) {
	user, ok := c.signUp(ctx, newName(v.tag), due)
	if !ok || !c.banned(ctx, user, false) || !c.black(ctx, http.MethodPost, user) || !c.banned(ctx, user, true) {
		return
	}
	ok = c.do(ctx, request{
		kind: Lookups, method: http.MethodGet, path: userPath(user),
		check: isStatus(http.StatusForbidden, "the user is banned"),
	})
	if ok && c.black(ctx, http.MethodDelete, user) {
		c.lookUp(ctx, user, time.Time{})
	}
}

// lookUp asks for a user that exists and returns the name.
func (c *client) lookUp(ctx context.Context, user int64, due time.Time) (name string, ok bool) {
	ok = c.do(ctx, request{
		kind: Lookups, method: http.MethodGet, path: userPath(user), since: due,
		check: func(a answer) (err error) {
			var got int64
			if got, name, err = readUser(a, http.StatusOK); err == nil && got != user {
				err = fmt.Errorf("the answer is user %d", got)
			}
			return err
		},
	})
	return name, ok
}

// signUp makes a user of a name that nobody has.
func (c *client) signUp(ctx context.Context, name string, due time.Time) (user int64, ok bool) {
	ok = c.do(ctx, request{
		kind: SignUps, method: http.MethodPost, path: "/users", body: `{"name":"` + name + `"}`, since: due,
		check: func(a answer) (err error) {
			var got string
			if user, got, err = readUser(a, http.StatusCreated); err == nil && got != name {
				err = fmt.Errorf("%q signed up, and the answer is %q", name, got)
			}
			return err
		},
	})
	return user, ok
}

// askName asks whether a name is taken.
func (c *client) askName(ctx context.Context, name string, taken bool, due time.Time) bool {
	return c.do(ctx, request{
		kind: Names, method: http.MethodGet, path: "/names/" + name, since: due,
		check: func(a answer) error {
			var got struct{ Taken *bool }
			if err := read(a, http.StatusOK, &got); err != nil {
				return err
			}
			if got.Taken == nil || *got.Taken != taken {
				return fmt.Errorf("taken must be %t: %.200s", taken, a.body)
			}
			return nil
		},
	})
}

// banned asks whether a user is on the black list.
func (c *client) banned(ctx context.Context, user int64, banned bool) bool {
	return c.do(ctx, request{
		kind: BlackList, method: http.MethodGet, path: bannedPath(user),
		check: func(a answer) error {
			var got struct{ Banned *bool }
			if err := read(a, http.StatusOK, &got); err != nil {
				return err
			}
			if got.Banned == nil || *got.Banned != banned {
				return fmt.Errorf("banned must be %t: %.200s", banned, a.body)
			}
			return nil
		},
	})
}

// black puts a user on the black list, or takes one off it.
func (c *client) black(ctx context.Context, method string, user int64) bool {
	return c.do(ctx, request{
		kind: BlackList, method: method, path: bannedPath(user),
		check: isStatus(http.StatusNoContent, "it must be done"),
	})
}

// feed asks for a page of a feed, which should be of items that the user was not shown before.
func (c *client) feed(ctx context.Context, user int64, due time.Time) bool {
	return c.do(ctx, request{
		kind: Feeds, method: http.MethodGet, path: "/feed/" + strconv.FormatInt(user, 10), since: due,
		check: func(a answer) error {
			var got struct{ Items []int64 }
			if err := read(a, http.StatusOK, &got); err != nil {
				return err
			}
			if c.shown.add(user, got.Items) {
				c.tally.repeat()
			}
			return nil
		},
	})
}

// isStatus returns a check for a status alone.
func isStatus(want int, why string) func(answer) error {
	return func(a answer) error {
		if a.status != want {
			return fmt.Errorf("must be %d: %s", want, why)
		}
		return nil
	}
}

// read takes an answer of a status apart.
func read(a answer, status int, into any) error {
	if a.status != status {
		return fmt.Errorf("must be %d: %.200s", status, a.body)
	}
	if err := json.Unmarshal(a.body, into); err != nil {
		return fmt.Errorf("%w: %.200s", err, a.body)
	}
	return nil
}

// readUser takes apart an answer that is a user.
func readUser(a answer, status int) (user int64, name string, err error) {
	var got struct {
		ID   int64 `json:",string"`
		Name string
	}
	if err := read(a, status, &got); err != nil {
		return 0, "", err
	}
	if got.ID == 0 || got.Name == "" {
		return 0, "", fmt.Errorf("no user is in the answer: %.200s", a.body)
	}
	return got.ID, got.Name, nil
}

// newName is a name that nobody has, unless this seed was played before.
func newName(tag uint64) string { return "new-" + strconv.FormatUint(tag, 36) }

func userPath(user int64) string   { return "/users/" + strconv.FormatInt(user, 10) }
func bannedPath(user int64) string { return "/banned/" + strconv.FormatInt(user, 10) }
