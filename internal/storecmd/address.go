package storecmd

import (
	"strings"

	"github.com/siftkv/siftkv/internal/cli"
)

// An address is what the URL of a store in an object store says.
type address struct {
	url        string // of the object store, without the parameters that are siftkv's own
	branch     string // empty: the main one
	checkpoint string // of the branch; empty: the branch itself
}

// address takes a URL apart. No error repeats a part of it, which may be a secret.
func (l Location) address() (a address, err error) {
	url, parameters := cli.CutParameters(string(l))
	query, isQuery := strings.CutPrefix(parameters, "?")
	if !isQuery {
		return address{url: string(l)}, nil
	}
	var others []string
	for parameter := range strings.SplitSeq(query, "&") {
		name, value, _ := strings.Cut(parameter, "=")
		var field *string
		switch {
		case name == cli.BranchParameter:
			field = &a.branch
		case name == cli.CheckpointParameter:
			field = &a.checkpoint
		case cli.Scheme(url) == cli.DirScheme:
			return a, usagef("the parameters of a dir:// URL are branch=NAME and checkpoint=NAME; a directory " +
				"whose name looks like parameters is written with a / at its end")
		default:
			others = append(others, parameter)
			continue
		}
		if *field != "" {
			return a, usagef("the URL has %s= twice", name)
		}
		if !plainName(value) {
			return a, usagef("%s= is followed by no name of a %s: 1 to 48 letters, digits, and -_.; without it, the "+
				"URL is that of %s", name, name, without[name])
		}
		*field = value
	}
	a.url = url
	if len(others) > 0 {
		a.url += "?" + strings.Join(others, "&")
	}
	return a, nil
}

// without says what a URL names that lacks a parameter.
var without = map[string]string{cli.BranchParameter: "the main branch", cli.CheckpointParameter: "the branch"}

// plainName reports whether a name has what names are made of; the object store's library knows the rest.
func plainName(name string) bool {
	strange := func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && !strings.ContainsRune("-_.", r)
	}
	return name != "" && len(name) <= 48 && !strings.ContainsFunc(name, strange)
}

// String returns the address as it may be printed.
func (a address) String() string {
	text, sign := cli.RedactURL(a.url), "?"
	if a.branch != "" {
		text, sign = text+sign+cli.BranchParameter+"="+a.branch, "&"
	}
	if a.checkpoint != "" {
		text += sign + cli.CheckpointParameter + "=" + a.checkpoint
	}
	return text
}

// changes returns an error if the location is a checkpoint, for a command that writes.
func (l Location) changes() error {
	if !l.remote() {
		return nil
	}
	a, err := l.address()
	if err == nil && a.checkpoint != "" {
		err = usagef("%s is a checkpoint, which does not change: make a branch of it with siftkv clone, and write to "+
			"that with ?branch=NAME", a)
	}
	return err
}
