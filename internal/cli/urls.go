package cli

import (
	"cmp"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// A URL may hold credentials, although none of the project's programs takes any from it: somebody pasted
// it with them. So what is printed of a URL is what stands before its parameters, without its user.

var (
	urlScheme = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9+.-]+://`)
	urlInText = regexp.MustCompile(`[A-Za-z][A-Za-z0-9+.-]*://[^\s"']*`)
)

// DirScheme begins the URL of a directory that is an object store: what follows is a path as it is.
const DirScheme = "dir"

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
	return scheme + "://" + rest[at+1:end]
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
