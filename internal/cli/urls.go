package cli

import (
	"cmp"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// A URL may hold credentials, if it was pasted with them, although no program of the project takes any from it. So only
// the part before its parameters is printed, without its user, and the parameters that name a branch or a checkpoint.

var (
	urlScheme = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9+.-]+://`)
	urlInText = regexp.MustCompile(`[A-Za-z][A-Za-z0-9+.-]*://[^\s"']*`)
)

// DirScheme begins the URL of a directory that is an object store: what follows is a path as it is, and parameters.
const DirScheme = "dir"

// BranchParameter and CheckpointParameter are the parameters of a store's URL that say which branch is meant, and which
// of its checkpoints. They are siftkv's own: the opener of the object store does not get them.
const (
	BranchParameter     = "branch"
	CheckpointParameter = "checkpoint"
)

// CutParameters splits a URL before its parameters, which begin with ? or #. Those of a directory follow the last ?,
// and have a = and no /: a directory with such a name is written with a / at its end.
func CutParameters(url string) (address, parameters string) {
	at := strings.IndexAny(url, "?#")
	if Scheme(url) == DirScheme {
		at = strings.LastIndexByte(url, '?')
		if at >= 0 && (!strings.Contains(url[at:], "=") || strings.Contains(url[at:], "/")) {
			at = -1
		}
	}
	if at < 0 {
		return url, ""
	}
	return url[:at], url[at:]
}

// Scheme returns the scheme of a URL in lower case; "" if the text is none, but the name of a directory or a file. One
// letter is no scheme but a drive.
func Scheme(text string) string {
	return strings.ToLower(strings.TrimSuffix(urlScheme.FindString(text), "://"))
}

// RedactURL returns a URL as it may be printed. What is none is returned as it is, as are paths.
func RedactURL(url string) string {
	scheme := Scheme(url)
	if scheme == "" || scheme == DirScheme {
		return url
	}
	rest := url[len(scheme)+len("://"):]
	end, at := strings.IndexAny(rest, "?#"), strings.LastIndexByte(rest, '@')
	switch {
	case end < 0:
		end = len(rest)
	case end < at: // a password may have any character, in a URL that is not valid
		return scheme + "://..."
	}
	return scheme + "://" + rest[at+1:end] + storeParameters(rest[end:])
}

// storeParameter is a parameter that names a branch or a checkpoint: see BranchParameter.
var storeParameter = regexp.MustCompile(`^(` + BranchParameter + `|` + CheckpointParameter +
	`)=[A-Za-z0-9][A-Za-z0-9._-]{0,47}$`)

// storeParameters returns what may be printed of a URL's parameters, which begin with ? or #. In a text,
// punctuation may follow them.
func storeParameters(parameters string) string {
	query, isQuery := strings.CutPrefix(parameters, "?")
	if !isQuery {
		return ""
	}
	bare := strings.TrimRight(query, ":;,.)")
	secret := func(parameter string) bool { return !storeParameter.MatchString(parameter) }
	kept := strings.Join(slices.DeleteFunc(strings.Split(bare, "&"), secret), "&")
	switch {
	case kept == "":
		return ""
	case strings.HasSuffix(bare, kept):
		return "?" + kept + query[len(bare):]
	}
	return "?" + kept
}

// Redact returns a text, such as an error, with the URLs in it as they may be printed: those of the command line,
// which may have any bytes, and what else looks like one.
func Redact(text string, argv []string) string {
	var secret []string
	for _, arg := range argv {
		if at := urlInText.FindStringIndex(arg); at != nil {
			url := arg[at[0]:]
			quoted := strconv.Quote(url)
			secret = append(secret, url, quoted[1:len(quoted)-1])
		}
	}
	slices.SortFunc(secret, func(a, b string) int { return cmp.Compare(len(b), len(a)) })
	for _, url := range secret {
		text = strings.ReplaceAll(text, url, RedactURL(url))
	}
	return urlInText.ReplaceAllStringFunc(text, RedactURL)
}

// RedactArgs returns a command line as it may be printed.
func RedactArgs(argv []string) []string {
	out := make([]string, len(argv))
	for i, arg := range argv {
		out[i] = Redact(arg, argv)
	}
	return out
}
