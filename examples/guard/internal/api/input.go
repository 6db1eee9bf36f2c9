package api

import (
	"fmt"
	"regexp"
	"strconv"

	"github.com/siftkv/siftkv/examples/guard/internal/guard"
)

// inputError is what is wrong with a request, in words for who sent it.
type inputError struct{ text string }

func (e *inputError) Error() string { return e.text }

// names are short and of few characters: they are keys in Redis, in logs and in
// paths, and two names that look alike are one to a reader.
var names = regexp.MustCompile(`^[a-z0-9][a-z0-9._-]{1,31}$`)

func parseName(s string) (string, error) {
	if !names.MatchString(s) {
		return "", &inputError{fmt.Sprintf(
			"%.40q is no name: 2 to 32 of a-z, 0-9, '.', '_' and '-', the first a letter or a digit", s)}
	}
	return s, nil
}

// parseID takes an identifier in the one form that is written out: no sign, no
// leading zero. Another form of the same number would be another key.
func parseID(s string) (int64, error) {
	id, err := strconv.ParseInt(s, 10, 64)
	if err != nil || id <= 0 || strconv.FormatInt(id, 10) != s {
		return 0, &inputError{fmt.Sprintf("%.40q is no identifier: a positive number of up to 63 bits", s)}
	}
	return id, nil
}

func parseCount(s string) (int, error) {
	if s == "" {
		return 10, nil
	}
	n, err := strconv.Atoi(s)
	if err != nil || n < 1 || n > guard.MaxFeed {
		return 0, &inputError{fmt.Sprintf("n=%.40q is not a number from 1 to %d", s, guard.MaxFeed)}
	}
	return n, nil
}
